"""What the turn loop needs from the world, and what it promises. Open to all rooms."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from kode_sidecar.core.domain.agent_event import BlockDelta, Event, StopReason
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import Blob, Block, ImageBlock, Message, Role, ToolKind
from kode_sidecar.core.domain.model_event import ModelEvent

T = TypeVar("T")

ToolChoice = Literal["auto", "none", "required"]
IdKind = Literal[
    "session",
    "turn",
    "message",
    "block",
    "change_set",
    "hunk",
    "request",
    "artifact",
    "scout",
    "memory",
]
NewId = Callable[[IdKind], str]


class Clock(Protocol):
    """Time, replaceable in replays."""

    def timestamp(self) -> str:
        """Now, RFC 3339 in UTC with milliseconds, e.g. `2026-01-02T03:04:05.678Z`."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...


class Emit(Protocol):
    """Where the loop reports what happens."""

    def __call__(self, event: Event | BlockDelta) -> int:
        """Store and publish, in call order. Never raises and never blocks.

        Returns the event's `seq`, 0 for what is not stored.
        """
        ...

    async def flow(self) -> None:
        """Wait for room downstream; awaited after each batch and before each tool.

        Raises KodeError `Storage` when the journal cannot be written, and
        asyncio.CancelledError once the turn is being cancelled.
        """
        ...


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool as the model is told of it. `schema` is JSON Schema for the arguments.

    Specs are compared by identity: what a provider makes of one is worth keeping.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """One question to the model.

    `model` is a logical name (`ide-chat`), `provider/id`, or an id of the default provider.
    With `stream` False the host answers at once, with the same events. `temperature`, `top_p`
    and `max_tokens` are wishes: a provider leaves out what the model does not accept, and says so
    where the first two are the user's (`sampling_chosen`) and no defaults.
    `effort` is how hard it thinks, None: as it does by itself.
    `prompt_tokens` is what all of it takes by the count of who made it, `prompt_likely` and
    `prompt_at_most` the same without a margin, and what it cannot exceed; None: who needs the size
    guesses. `cache_key` is stable over a session. `asker` is who asks: requests of one asker follow
    each other.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = "auto"
    temperature: float | None = 0.3
    top_p: float | None = 0.95
    sampling_chosen: bool = True
    max_tokens: int | None = None
    effort: Effort | None = None
    prompt_tokens: int | None = None
    prompt_likely: int | None = None
    prompt_at_most: int | None = None
    cache_key: str = ""
    stream: bool = True
    asker: str = ""


class ModelClient(Protocol):
    """A model behind some provider."""

    def missing(self, model: str) -> ErrorInfo | None:
        """What keeps `model` from being asked at all, such as a missing key; None if ready."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Ask, and yield the answer in batches, one per socket read (order: `domain.model_event`).

        Failures are events, not exceptions. Closing the iterator or cancelling the task that
        drives it closes the connection at once.
        """
        ...


class ToolOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool hands back. A failure is a value that tells the model what to do next.

    `content` is what the model reads, `images` what it sees, `summary` the one line for cards and
    logs. `whole` is where the user finds all of the text, if the tool itself has cut it.
    """

    ok: bool
    summary: str
    content: str = ""
    data: Any = None
    images: tuple[ImageBlock, ...] = ()
    artifacts: tuple[str, ...] = ()
    whole: Blob | None = None
    error: ErrorInfo | None = None


def tool_failure(error: ErrorInfo) -> ToolOutcome:
    """A failed outcome whose text is the error's message."""
    return ToolOutcome(ok=False, summary=error.message, content=error.message, error=error)


class CallPlace(NamedTuple):
    """A path as the model spelled it, with the first and last line if the call names some."""

    path: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class CallCard:
    """What a client shows of a call: a title for people, and the files it is about."""

    title: str
    places: Sequence[CallPlace] = ()


def _no_progress(_message: str, _completed: int | None, _total: int | None) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class ToolCall:
    """One call as a tool sees it. `progress(message, completed, total)` reaches the user only.

    `block_id` is the block of the call, under which the client knows it.
    """

    tool_use_id: str
    name: str
    session_id: str
    turn_id: str
    message_id: str
    block_id: str = ""
    progress: Callable[[str, int | None, int | None], None] = _no_progress


@dataclass(frozen=True)
class Tool:
    """A tool: its params struct (the docstring is the description the model reads) and its run.

    Neighbouring calls of `read_only` tools run in parallel; all others run alone, in order.
    A call of an `ends_turn` tool that did well is the last thing in its turn. One that is not
    `offered` is kept from the model, and says why it does not run if it is called all the same.
    `run` gets an instance of `params`; a KodeError it raises becomes a failed outcome. A tool that
    understands more than `params` says reads its arguments by `accept`, and `run` gets what that
    returns; it raises msgspec.ValidationError. A tool that is described elsewhere, by a server of
    the user's, brings its own `spec`. `kind` and `card`, of what `run` gets, are for clients that
    know no tool.
    """

    name: str
    params: type[Struct]
    run: Callable[[Any, ToolCall], Awaitable[ToolOutcome]]
    read_only: bool = False
    accept: Callable[[Mapping[str, Any]], Any] | None = None
    ends_turn: bool = False
    offered: bool = True
    spec: ToolSpec | None = None
    kind: ToolKind = "other"
    card: Callable[[Any], CallCard] | None = None


CallEnded = Callable[[str, ToolOutcome], None]
"""`(tool_use_id, outcome)`: told of every call that ended, also of one that never ran."""

ArtifactSink = Callable[[str], Blob]
"""Stores a large text and returns the name under which the user finds it."""


@dataclass(frozen=True)
class Incoming:
    """Input that joins a running turn: a reminder to the model, or the user's steering."""

    role: Role
    content: tuple[Block, ...]
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Context(Protocol):
    """The conversation as one turn sees it; it owns the tree and the store."""

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        """A new, empty message below the newest of this turn. Nothing is written yet."""
        ...

    def commit(self, message: Message) -> None:
        """Write the finished message and make it the newest. Raises KodeError `Storage`."""
        ...

    async def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        """The exact next request; messages that make room for it may be committed first.

        Raises KodeError `Storage`.
        """
        ...

    async def recover(self, error: ErrorInfo) -> bool:
        """The model refused the last request. Is there another one to ask instead?

        Then the failure is not told. Raises KodeError `Storage`.
        """
        ...

    def take_incoming(self) -> Sequence[Incoming]:
        """Input due before the next model request, oldest first; each is handed out once."""
        ...

    def wants_another_step(self) -> bool:
        """Has the user steered since the last request? Then the turn does not end yet."""
        ...


@dataclass(frozen=True)
class TurnLimits:
    """What a turn may use.

    After `max_tool_rounds` answers with tool calls the model gets `limit_instruction` and must
    sum up without tools. A tool result longer than `max_result_chars` is cut and kept whole
    as an artifact.
    """

    max_tool_rounds: int
    limit_instruction: str
    max_result_chars: int = 60_000


def _nowhere(_path: str) -> str | None:
    return None


def ignore_outcome(_tool_use_id: str, _outcome: "ToolOutcome") -> None:
    """Do nothing: nobody needs more of an outcome than its block."""


class CutOff:
    """Ends an answer that is still coming before the task that reads it is unwound.

    Whoever reads one sets `end`, which commits what came, once, and is followed by nothing more.
    """

    def __init__(self) -> None:
        self.end: Callable[[], None] | None = None

    def __call__(self) -> bool:
        """End the answer; False when none is coming. Raises KodeError `Storage`."""
        end, self.end = self.end, None
        if end is not None:
            end()
        return end is not None


@dataclass(frozen=True)
class TurnScope:
    """Identity and services of one turn.

    `report_bug(where, error)` gets exceptions that should not exist; they reach the log only.
    A model that is silent for `silence_told` seconds is told of, each time again. `cut_off` is for
    who cancels the task of the turn, just before. `uri_of` a path in a call is the file's URI, None
    where there may be none. `call_ended(tool_use_id, outcome)` gets what a call came to before its
    block is completed; it must not raise.
    """

    session_id: str
    turn_id: str
    new_id: NewId
    clock: Clock
    save_artifact: ArtifactSink
    report_bug: Callable[[str, BaseException], None]
    silence_told: float = 10.0
    cut_off: CutOff = field(default_factory=CutOff)
    uri_of: Callable[[str], str | None] = _nowhere
    call_ended: CallEnded = ignore_outcome


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended. What it cost stands in the messages it committed."""

    stop_reason: StopReason
    error: ErrorInfo | None = None


class RunTurn(Protocol):
    """The loop of a turn: the kernel's `run_turn`, or another one with its promises."""

    async def __call__(
        self,
        scope: TurnScope,
        model: ModelClient,
        tools: Sequence[Tool],
        context: Context,
        limits: TurnLimits,
        emit: Emit,
        /,
    ) -> TurnEnd:
        """Run one turn to its end."""
        ...
