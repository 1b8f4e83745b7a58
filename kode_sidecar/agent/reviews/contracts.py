"""What a review needs from a session, and its limits. Open to all packages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kode_sidecar.agent.reviews.session_findings import SessionFindings
from kode_sidecar.agent.scouts import Dispatch
from kode_sidecar.agent.scouts.contracts import ExploreRequest
from kode_sidecar.agent.tools.changes import ChangesView
from kode_sidecar.core.kernel.contracts import Tool, ToolCall


@dataclass(frozen=True)
class ReviewLimits:
    """The limits of one review. A reader gets one part: so many files and changed lines.

    Money is limited as for every turn; the calls and the time of a reader as for every scout.
    """

    parts: int = 60
    part_files: int = 8
    part_lines: int = 600
    refuted_at_once: int = 8
    findings: int = 50
    seconds: float = 1_800.0


@dataclass(frozen=True)
class ReviewServices:
    """The readers that look for faults, and those that try to refute what was found."""

    find: Dispatch
    refute: Dispatch
    limits: ReviewLimits = ReviewLimits()


@dataclass(frozen=True)
class ReviewPlace:
    """One session: its changes, its findings, and what its readers work with."""

    view: ChangesView
    findings: SessionFindings
    reading: Callable[[], Sequence[Tool]]
    request: Callable[[ToolCall, Sequence[Tool]], ExploreRequest]
