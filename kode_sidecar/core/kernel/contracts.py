"""What the turn loop needs from the world, and what it promises. All packages may import it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from kode_sidecar.core.domain.agent_event import BlockDelta, Event, StopReason
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import (
    Blob,
    Block,
    ImageBlock,
    LostUsage,
    Message,
    Role,
    ToolKind,
)
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
        """Wait until the consumers have caught up; awaited after each batch and before each tool.

        Raises KodeError `Storage` when the journal cannot be written, and
        asyncio.CancelledError once the turn is being cancelled.
        """
        ...


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool as described to the model. `schema` is the JSON Schema of its arguments.

    Specs compare by identity, so that providers can cache what they derive from one.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Sampling:
    """How the model picks its words; None leaves a value to the host.

    `chosen`: the user set them, so that dropping one is reported.
    """

    temperature: float | None = 0.3
    top_p: float | None = 0.95
    chosen: bool = True


class AnswerMeter:
    """Estimates what an answer has used so far, for one that is cut off: its host charges for it.

    Who fetches the answer sets `lost`; None: nothing that is known.
    """

    def __init__(self) -> None:
        self.lost: Callable[[], LostUsage | None] = lambda: None


@dataclass(frozen=True)
class ModelRequest:
    """One question to the model.

    `model` is a logical name (`ide-chat`), `provider/id`, or an id of the default provider.
    With `stream` False the host sends the whole answer at once, as the same events. A provider
    leaves out what of `sampling` and `max_tokens` the model does not accept.
    `effort` is how hard the model thinks; None leaves it to the model.
    `prompt_tokens` estimates the size of the request with a safety margin, `prompt_likely` without
    it, and `prompt_at_most` is an upper bound; None if unknown. `cache_key` is stable over a
    session. `asker` names the source: one source sends its requests one after another. `meter`
    returns what an answer used that is cut off.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = "auto"
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    effort: Effort | None = None
    prompt_tokens: int | None = None
    prompt_likely: int | None = None
    prompt_at_most: int | None = None
    cache_key: str = ""
    stream: bool = True
    asker: str = ""
    meter: AnswerMeter = field(default_factory=AnswerMeter, compare=False)


class ModelClient(Protocol):
    """A model behind some provider."""

    def missing(self, model: str) -> ErrorInfo | None:
        """Why `model` cannot be asked at all, such as a missing key; None if it can."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Ask, and yield the answer in batches, one per socket read (order: `domain.model_event`).

        Failures are events, not exceptions. Closing the iterator or cancelling the task that
        drives it closes the connection at once.
        """
        ...


class ToolOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a tool call. A failure is a value whose text says what the model can do next.

    `content` and `images` go to the model, `summary` is one line for cards and logs. `whole` names
    the full text for the user, if the tool itself has cut it. `unchanging` is the content without
    what differs each time, such as how long it took; to repeat a call that `polls` is no mistake.
    """

    ok: bool
    summary: str
    content: str = ""
    data: Any = None
    images: tuple[ImageBlock, ...] = ()
    artifacts: tuple[str, ...] = ()
    whole: Blob | None = None
    error: ErrorInfo | None = None
    unchanging: str = ""
    polls: bool = False


def tool_failure(error: ErrorInfo) -> ToolOutcome:
    """A failed outcome whose text is the error's message."""
    return ToolOutcome(ok=False, summary=error.message, content=error.message, error=error)


class CallPlace(NamedTuple):
    """A path as the model spelled it, with the first and last line if the call names them."""

    path: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class CallCard:
    """What a client shows of a call: a title for people, and the files it is about."""

    title: str
    places: Sequence[CallPlace] = ()


def _no_progress(_message: str, _completed: int | None, _total: int | None) -> None:
    """Ignore progress: the default where no client shows it."""


def _no_growth(_text: str) -> None:
    """Ignore output: the default where no client shows it."""


@dataclass(frozen=True)
class ToolCall:
    """One call as a tool sees it. `progress(message, completed, total)` reaches the user only.

    `grow` adds to the text of the result while the tool runs, for the user; the model gets the
    result when the call ends.
    `block_id` is the block of the call, the id by which the client knows it.
    """

    tool_use_id: str
    name: str
    session_id: str
    turn_id: str
    message_id: str
    block_id: str = ""
    progress: Callable[[str, int | None, int | None], None] = _no_progress
    grow: Callable[[str], None] = _no_growth


@dataclass(frozen=True)
class Tool:
    """A tool: its params struct (the model reads its docstring as the description) and its `run`.

    Adjacent calls of `read_only` tools run in parallel; all others run alone, in order.
    A successful call of an `ends_turn` tool ends the turn. The model is not offered a tool without
    `offered`; if it calls one anyway, `run` says why it does nothing. Requests do not describe a
    `deferred` tool, which is found.
    `run` gets an instance of `params`; a KodeError it raises becomes a failed outcome. A tool that
    takes more than `params` describes parses its arguments with `accept`, which raises
    msgspec.ValidationError; `run` then gets what `accept` returns. `spec` is what the model is
    shown, if not what `params` says; the arguments of a `foreign` tool, which a user's MCP server
    has, are taken as they are. `kind` and `card` (called with what `run` gets) serve clients that
    do not know the tool. `passes_on` (called likewise) may name a tool that runs instead of this
    one, and its arguments.
    """

    name: str
    params: type[Struct]
    run: Callable[[Any, ToolCall], Awaitable[ToolOutcome]]
    read_only: bool = False
    accept: Callable[[Mapping[str, Any]], Any] | None = None
    ends_turn: bool = False
    offered: bool = True
    deferred: bool = False
    spec: ToolSpec | None = None
    foreign: bool = False
    kind: ToolKind = "other"
    card: Callable[[Any], CallCard] | None = None
    passes_on: "Callable[[Any], tuple[Tool, Mapping[str, Any]] | None] | None" = None


RunCall = Callable[[Tool, Any, ToolCall], Awaitable[ToolOutcome]]
"""`(tool, params, call)`: runs a call whose arguments are valid."""


async def run_call(tool: Tool, params: Any, call: ToolCall) -> ToolOutcome:
    """Run a call as it is: the default where nothing stands before it."""
    return await tool.run(params, call)


CallEnded = Callable[[str, ToolOutcome], None]
"""`(tool_use_id, outcome)`: called for every call that ended, even if it never ran."""

ArtifactSink = Callable[[str], Blob]
"""Stores a large text and returns the reference that a client reads it by."""


@dataclass(frozen=True)
class Incoming:
    """Input that joins a running turn: a reminder to the model, or the user's steering."""

    role: Role
    content: tuple[Block, ...]
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Context(Protocol):
    """The conversation as one turn sees it; it owns the tree and the store."""

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        """Return a new, empty message below the newest of this turn. Writes nothing."""
        ...

    def commit(self, message: Message) -> None:
        """Save the finished message and make it the newest. Raises KodeError `Storage`."""
        ...

    async def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        """Return the exact next request; may first commit messages that shorten the context.

        Raises KodeError `Storage`.
        """
        ...

    async def recover(self, error: ErrorInfo) -> bool:
        """True if another request can replace the one that failed with `error`.

        The failure is then not reported. Raises KodeError `Storage`.
        """
        ...

    def take_incoming(self) -> Sequence[Incoming]:
        """Return input due before the next model request, oldest first; each item only once."""
        ...

    def wants_another_step(self) -> bool:
        """True if the user has steered since the last request; the turn then goes on."""
        ...


@dataclass(frozen=True)
class TurnLimits:
    """What a turn may use.

    After `max_tool_rounds` answers with tool calls the model gets `limit_instruction` and must
    sum up without tools. A tool result longer than `max_result_chars` is cut, and its full text
    saved as an artifact. Without `notices_repeats` the same call may come as often as the rounds
    allow.
    """

    max_tool_rounds: int
    limit_instruction: str
    max_result_chars: int = 60_000
    notices_repeats: bool = True


def _nowhere(_path: str) -> str | None:
    return None


def ignore_outcome(_tool_use_id: str, _outcome: "ToolOutcome") -> None:
    """Do nothing: the default where the block of an outcome is enough."""


NextRound = Callable[[], Awaitable["Incoming | ErrorInfo | None"]]
"""Checks a goal when the model stops: None if it is reached, else what begins the next round.

An error is why there is no next one.
"""


class CutOff:
    """Ends an answer that is still arriving, before the task that reads it is cancelled.

    The reader of an answer sets `end`, which commits what has arrived; nothing is added after it.
    """

    def __init__(self) -> None:
        self.end: Callable[[], None] | None = None

    def __call__(self) -> bool:
        """End the answer; False when none is arriving. Raises KodeError `Storage`."""
        end, self.end = self.end, None
        if end is not None:
            end()
        return end is not None


@dataclass(frozen=True)
class TurnScope:
    """Identity and services of one turn.

    `report_bug(where, error)` gets unexpected exceptions; they reach the log only.
    The user is notified every `silence_told` seconds that the model stays silent. Call `cut_off`
    just before cancelling the turn's task. `uri_of` maps a path in a call to the file's URI, None
    if it may have none. `call_ended(tool_use_id, outcome)` gets the outcome of a call before its
    block is completed; it must not raise. `run_call` runs each valid call. With `next_round` the
    turn goes on until its goal is reached.
    """

    session_id: str
    turn_id: str
    new_id: NewId
    clock: Clock
    save_artifact: ArtifactSink
    report_bug: Callable[[str, BaseException], None]
    silence_seconds: float = 10.0
    cut_off: CutOff = field(default_factory=CutOff)
    uri_of: Callable[[str], str | None] = _nowhere
    call_ended: CallEnded = ignore_outcome
    run_call: RunCall = run_call
    next_round: NextRound | None = None


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended. Its cost is in the messages it committed."""

    stop_reason: StopReason
    error: ErrorInfo | None = None


class RunTurn(Protocol):
    """The loop of a turn: the kernel's `run_turn`, or another one with the same guarantees."""

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
