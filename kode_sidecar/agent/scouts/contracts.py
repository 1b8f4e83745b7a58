"""What scouts need from a session, and what they bring back. Open to all rooms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from kode_sidecar.agent.context.builder import Traits
from kode_sidecar.agent.scouts.scout_rules import ScoutLimits
from kode_sidecar.core.domain.message import Blob, Message
from kode_sidecar.core.kernel.contracts import (
    Clock,
    Emit,
    ModelClient,
    NewId,
    Tool,
    ToolCall,
)


class ExploreTask(Struct, frozen=True, forbid_unknown_fields=True):
    """One question for one scout."""

    title: Annotated[
        str, Meta(min_length=1, max_length=120, description="A few words, for the user")
    ]
    question: Annotated[
        str,
        Meta(
            min_length=1,
            description="What to find out, complete in itself: the scout knows nothing else of "
            "this conversation",
        ),
    ]
    hints: Annotated[str, Meta(description="Paths, names or words to begin with")] | None = None


class Finding(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One thing found out, with its evidence."""

    claim: Annotated[str, Meta(min_length=1, description="What is true, in a sentence")]
    path: Annotated[str, Meta(min_length=1, description="The file that shows it")]
    start_line: Annotated[int, Meta(ge=1, description="First line of the evidence, from 1")]
    end_line: Annotated[int, Meta(ge=1, description="Last line, inclusive")]
    quote: Annotated[
        str,
        Meta(min_length=1, description="The words there, copied exactly, without line numbers"),
    ]


Evidence = Literal["verified", "unverified"]


class CheckedFinding(Finding, frozen=True, kw_only=True):
    """`unverified`: the quote is not at the cited lines of the text that the session sees."""

    evidence: Evidence


Outcome = Literal["done", "failed", "timed_out"]
ReportState = Literal[Outcome, "refused"]


class ExploreReport(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one scout brings back.

    Unless `done` it is partial and `note` says why; `read` then names the files it had read.
    `left_out` counts findings that did not fit.
    """

    title: str
    state: ReportState
    note: str = ""
    summary: str = ""
    findings: tuple[CheckedFinding, ...] = ()
    open_questions: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    left_out: int = 0
    tool_calls: int = 0


class ScoutLog(Protocol):
    """One scout's record on disk."""

    def append(self, message: Message, /) -> None:
        """Write a finished message. Raises KodeError `Storage`."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


@dataclass(frozen=True)
class ScoutServices:
    """Shared by all scouts. `system_prompt` is the scout's; KodeError `ConfigInvalid`."""

    model: ModelClient
    clock: Clock
    new_id: NewId
    system_prompt: Callable[[], str]
    report_bug: Callable[[str, BaseException], None]
    traits: Traits
    temperature: float | None = 0.3
    top_p: float | None = 0.95
    sampling_chosen: bool = True
    limits: ScoutLimits = field(default_factory=ScoutLimits)


@dataclass(frozen=True)
class ExploreRequest:
    """One `explore` call of a session: what its scouts read with, and where they report.

    `tools` are those that read, and see what the session sees; `text_of` is that text of a path,
    LF line ends, and raises KodeError. `emit` takes `scout.updated`, and its `flow` ends scouts
    with their turn. `spend` counts each answer, `open_log` makes a scout's record.
    """

    call: ToolCall
    model: str
    tools: Sequence[Tool]
    text_of: Callable[[str], str]
    emit: Emit
    spend: Callable[[Message], None]
    open_log: Callable[[str], ScoutLog]
    save_artifact: Callable[[str], Blob]
