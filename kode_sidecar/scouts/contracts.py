"""What scouts need from a session, and what they bring back. Open to all rooms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from kode_sidecar.domain.agent_event import ScoutState
from kode_sidecar.domain.message import Blob, Message
from kode_sidecar.kernel.contracts import (
    Alarm,
    Clock,
    Emit,
    ModelClient,
    NewId,
    Tool,
    ToolCall,
    Work,
)

MAX_TASKS = 5
"""Tasks of one `explore`, and scouts at once in a session."""


@dataclass(frozen=True)
class ScoutLimits:
    """What scouts may use; times in seconds on the monotonic clock.

    `calls` counts all but `report_findings`; `prompt_tokens` is the host's count of a scout's
    history, at most `window_share` of the model's window. Beyond either, and after `report_after`,
    a scout can only report; after `seconds` it ends. `report_bytes` is the JSON of one report in
    UTF-8, about three bytes a token.
    """

    at_once: int = MAX_TASKS
    calls: int = 100
    prompt_tokens: int = 160_000
    window_share: float = 0.7
    report_after: float = 570.0
    seconds: float = 600.0
    report_bytes: int = 6_000
    result_chars: int = 20_000


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

    def append(self, message: Message) -> None:
        """Write a finished message. Raises KodeError `Storage`."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


@dataclass(frozen=True)
class ScoutServices:
    """Shared by all scouts. `system_prompt` is the scout's; KodeError `ConfigInvalid`.

    `window` is how many tokens a model reads, None where nobody knows it, `returns_thinking`
    whether it gets its reasoning back.
    """

    model: ModelClient
    clock: Clock
    alarm: Alarm
    work: Work
    new_id: NewId
    system_prompt: Callable[[], str]
    report_bug: Callable[[str, BaseException], None]
    window: Callable[[str], int | None]
    returns_thinking: Callable[[str], bool]
    temperature: float | None = 0.3
    top_p: float | None = 0.95
    limits: ScoutLimits = ScoutLimits()


@dataclass(frozen=True)
class Errand:
    """One `explore` call of a session, as its scouts need it.

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


__all__ = [
    "MAX_TASKS",
    "CheckedFinding",
    "Errand",
    "Evidence",
    "ExploreReport",
    "ExploreTask",
    "Finding",
    "Outcome",
    "ReportState",
    "ScoutLimits",
    "ScoutLog",
    "ScoutServices",
    "ScoutState",
]
