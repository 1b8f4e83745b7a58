"""A turn without a process: scripted model, in-memory conversation, recorded events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import (
    Blob,
    Message,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import (
    Incoming,
    ModelRequest,
    Tool,
    ToolCall,
    ToolChoice,
    ToolOutcome,
    ToolSpec,
    TurnEnd,
    TurnLimits,
    TurnScope,
)

Batches = Sequence[Sequence[ModelEvent]]


def says(*pieces: str, finish: str = "stop") -> Batches:
    """An answer of text, one batch per piece."""
    start = [ResponseStarted("r", "m")]
    return [start, *([TextDelta(p)] for p in pieces), [ResponseFinished(finish, finish)]]  # type: ignore[list-item]


def calls(*wanted: tuple[str, str], finish: str = "tool_calls") -> Batches:
    """An answer of tool calls, each `(name, raw arguments)`."""
    batches: list[list[ModelEvent]] = [[ResponseStarted("r", "m")]]
    for index, (name, arguments) in enumerate(wanted):
        batches.append([ToolUseStarted(index, f"{name}:{index}", name)])
        batches.append([ToolUseDelta(index, arguments)])
    batches.append([ResponseFinished(finish, finish)])  # type: ignore[arg-type]
    return batches


class ScriptedModel:
    """Answers in order; an answer may be a callable that gets the request."""

    def __init__(self, *answers: Batches) -> None:
        self._answers = list(answers)
        self.requests: list[ModelRequest] = []

    def missing(self, model: str) -> None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        self.requests.append(request)
        for batch in self._answers.pop(0):
            await asyncio.sleep(0)
            yield batch


class Recorder:
    """An Emit that keeps everything and can act at the n-th event."""

    def __init__(self, at_event: Callable[[int], None] | None = None) -> None:
        self.seen: list[Event | BlockDelta] = []
        self._at_event = at_event

    def __call__(self, event: Event | BlockDelta) -> int:
        self.seen.append(event)
        if self._at_event is not None:
            self._at_event(len(self.seen))
        return len(self.seen)

    async def flow(self) -> None:
        await asyncio.sleep(0)

    def names(self) -> list[str]:
        """`type` of each event, `delta` for deltas."""
        return [
            "delta" if isinstance(e, BlockDelta) else str(msgspec.to_builtins(e)["type"])
            for e in self.seen
        ]


class MemoryContext:
    """A conversation in a list."""

    def __init__(self, prompt: str = "hello") -> None:
        self.messages: list[Message] = []
        self.incoming: list[Incoming] = []
        self.steered = False
        self.recoveries = 0
        self.refusals: list[str] = []
        self._count = 0
        message = self.open("user", {})
        self.commit(msgspec.structs.replace(message, content=(TextBlock(text=prompt),)))

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        self._count += 1
        parent = self.messages[-1].id if self.messages else None
        return Message(
            id=f"m{self._count}", session_id="s", role=role, parent_id=parent, meta=dict(meta)
        )

    def commit(self, message: Message) -> None:
        self.messages.append(message)

    async def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        return ModelRequest(
            model="m",
            system="s",
            messages=tuple(self.messages),
            tools=tools,
            tool_choice=tool_choice,
        )

    async def recover(self, error: ErrorInfo) -> bool:
        """As often as `recoveries` says."""
        self.refusals.append(error.code)
        self.recoveries -= 1
        return self.recoveries >= 0

    def take_incoming(self) -> Sequence[Incoming]:
        taken, self.incoming = self.incoming, []
        self.steered = False
        return taken

    def wants_another_step(self) -> bool:
        return self.steered


class TickClock:
    def timestamp(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    def monotonic(self) -> float:
        return 0.0


def scope(bugs: list[str] | None = None, artifacts: list[str] | None = None) -> TurnScope:
    """Counting ids, a still clock."""
    count = 0

    def new_id(kind: str) -> str:
        nonlocal count
        count += 1
        return f"{kind}-{count}"

    def save_artifact(text: str) -> Blob:
        (artifacts if artifacts is not None else []).append(text)
        return Blob(ref="s.artifact-1", bytes=len(text), sha256="0" * 64)

    return TurnScope(
        session_id="s",
        turn_id="t",
        new_id=new_id,
        clock=TickClock(),
        save_artifact=save_artifact,
        report_bug=lambda where, error: (bugs if bugs is not None else []).append(where),
    )


class EchoParams(msgspec.Struct):
    """Echo a text."""

    text: str = ""


def echo_tool(
    name: str = "echo",
    *,
    read_only: bool = True,
    run: Callable[[EchoParams, ToolCall], Any] | None = None,
) -> Tool:
    async def echo(params: EchoParams, call: ToolCall) -> ToolOutcome:
        await asyncio.sleep(0)
        return ToolOutcome(ok=True, summary=f"echoed {params.text}", content=params.text)

    return Tool(name=name, params=EchoParams, run=run or echo, read_only=read_only)


LIMITS = TurnLimits(max_tool_rounds=5, limit_instruction="Sum up now.")


async def turn(
    model: ScriptedModel,
    *tools: Tool,
    context: MemoryContext,
    emit: Recorder,
    limits: TurnLimits = LIMITS,
    bugs: list[str] | None = None,
    artifacts: list[str] | None = None,
) -> TurnEnd:
    return await run_turn(scope(bugs, artifacts), model, tools, context, limits, emit)


def assert_valid_history(messages: Sequence[Message]) -> None:
    """Every tool call is answered, once, by the message right after it."""
    for position, message in enumerate(messages):
        asked = [b.tool_use_id for b in message.content if isinstance(b, ToolUseBlock)]
        if not asked:
            continue
        answer = messages[position + 1]
        assert answer.role == "tool"
        results = [b for b in answer.content if isinstance(b, ToolResultBlock)]
        assert [b.tool_use_id for b in results] == asked


def assert_block_order(events: Sequence[Event | BlockDelta]) -> None:
    """O4: started, deltas, then completed or dropped, once each; messages are completed, too."""
    state: dict[str, str] = {}
    messages: list[str] = []
    for event in events:
        if isinstance(event, BlockDelta):
            assert state.get(event.block_id) == "open", event
            continue
        kind = msgspec.to_builtins(event)["type"]
        if kind == "block.started":
            assert event.block_id not in state
            state[event.block_id] = "open"
        elif kind in ("block.completed", "block.dropped"):
            assert state[event.block_id] == "open"
            state[event.block_id] = "closed"
        elif kind == "message.added":
            messages.append(event.message_id)
        elif kind == "message.completed":
            messages.remove(event.message_id)
    assert set(state.values()) <= {"closed"}
    assert messages == []
