"""Define what scouts need from a session, and what they return. Open to all packages."""

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
    RunCall,
    Sampling,
    Tool,
    ToolCall,
    run_call,
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
            description="Complete in itself: the scout knows nothing of this conversation",
        ),
    ]
    hints: Annotated[str, Meta(description="Where to begin")] | None = None


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
    """The report of one scout.

    Unless `done` it is partial: `note` says why, and `read` names the files that the scout read.
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
        """Close the file."""
        ...


@dataclass(frozen=True)
class ScoutServices:
    """Shared by all scouts. `system_prompt` returns theirs, or raises KodeError `ConfigInvalid`.

    `own_model` is asked in place of the session's, if it can be.
    """

    model: ModelClient
    clock: Clock
    new_id: NewId
    system_prompt: Callable[[], str]
    report_bug: Callable[[str, BaseException], None]
    traits: Traits
    sampling: Sampling = field(default_factory=Sampling)
    limits: ScoutLimits = field(default_factory=ScoutLimits)
    own_model: str | None = None


@dataclass(frozen=True)
class ExploreRequest:
    """One `explore` call of a session: the tools of its scouts, and where they report.

    `tools` only read, and see what the session sees; `text_of` returns a path's text as the session
    sees it, with LF line ends, or raises KodeError. `emit` takes `scout.updated`, and its `flow`
    ends scouts with their turn. `spend` counts each answer, `open_log` makes a scout's record,
    `run_call` runs each call of one.
    `report_tool` makes another `report_findings`, which hands its summary on and ends the scout.
    """

    call: ToolCall
    model: str
    tools: Sequence[Tool]
    text_of: Callable[[str], str]
    emit: Emit
    spend: Callable[[Message], None]
    open_log: Callable[[str], ScoutLog]
    save_artifact: Callable[[str], Blob]
    run_call: RunCall = run_call
    report_tool: Callable[[Callable[[str], None]], Tool] | None = None
