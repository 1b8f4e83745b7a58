"""Writes `agent.log` as things happen: what a killed process did is there up to the last moment."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import chain
from typing import TYPE_CHECKING, Any

from kode_sidecar.agent.event_log.history import EventHistory
from kode_sidecar.core.domain.agent_event import (
    AskRequested,
    AskResolved,
    BlockCompleted,
    BlockStarted,
    ChangeSetUpdated,
    ContextCompacted,
    DecisionRequested,
    DecisionResolved,
    Event,
    MessageCompleted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    ScoutUpdated,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import ToolResultBlock, ToolUseBlock, texts_of
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    RequestHeld,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    RetryPlanned,
    UsageReported,
)
from kode_sidecar.infrastructure.records.json_log import JsonLog, Level, LogScope

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.core.kernel.contracts import Clock, ModelClient, ModelRequest

_MODULE = "turns"


class ActivityLog:
    """Writes a line for each event of one session that shows what was done.

    `provider` returns who serves the model of the running turn.
    """

    def __init__(
        self, log: JsonLog, clock: "Clock", session_id: str, provider: Callable[[], str]
    ) -> None:
        self._log = log
        self._clock = clock
        self._session_id = session_id
        self._provider = provider
        self._names: dict[str, str] = {}
        self._begun: dict[str, float] = {}

    def event(self, event: Event, history: EventHistory) -> None:
        """Log an event before `history` takes it. Contents are people's and models' words only."""
        match event:
            case MessageCompleted():
                self._message(event, history)
            case BlockStarted(block=ToolUseBlock() as block):
                self._names[block.id] = block.name
            case BlockStarted(block=ToolResultBlock() as block):
                self._begun[block.id] = self._clock.monotonic()
                self._write("info", "tool_begun", event, tool=self._names.get(block.call_block_id))
            case BlockCompleted(block=ToolResultBlock() as block):
                self._result(event, block)
            case TurnStarted():
                self._write("info", "turn_started", event, agent=event.agent, mode=event.mode)
            case TurnCompleted():
                self._end(event)
            case ChangeSetUpdated():
                hunks = list(chain.from_iterable(file.hunks for file in event.files))
                states = {one.state for one in hunks}
                counts = {state: sum(one.state == state for one in hunks) for state in states}
                self._write("info", "edits", event, hunks=counts)
            case _:
                self._work(event)

    def _work(self, event: Event) -> None:
        """Log what happens within a turn beside its messages and edits."""
        match event:
            case PermissionRequested() | AskRequested() | DecisionRequested():
                self._write("info", "question", event, kind=event.__struct_config__.tag)
            case PermissionResolved() | AskResolved() | DecisionResolved():
                self._write("info", "answered", event, by=event.by)
            case ScoutUpdated(state="done" | "failed" | "timed_out" | "cancelled"):
                self._write("info", "scout", event, state=event.state, calls=event.tool_calls)
            case ContextCompacted():
                before, after = event.tokens_before, event.tokens_after
                self._write("info", "compaction", event, before=before, after=after)
            case Notice():
                self._write(event.level, "notice", event, code=event.code, message=event.message)
            case _:
                pass

    def _message(self, event: MessageCompleted, history: EventHistory) -> None:
        opened = history.messages.get(event.message_id)
        if opened is None:
            return
        blocks = opened.blocks.values()
        text = "".join(texts_of(blocks))
        if opened.added.role == "user":
            self._write("info", "prompt", event, content={"prompt": text})
        elif opened.added.role == "assistant":
            provider = event.provider or self._provider()
            self._log.write(
                "error" if event.is_api_error_message else "info",
                _MODULE,
                "answer",
                LogScope(event.turn_id, self._session_id, event.message_id, provider),
                duration_ms=event.duration_ms,
                tokens=event.usage,
                content={"reply": text},
                model=event.model,
                tools=[one.name for one in blocks if isinstance(one, ToolUseBlock)],
            )

    def _result(self, event: BlockCompleted, block: ToolResultBlock) -> None:
        now = self._clock.monotonic()
        self._write(
            "info",
            "tool_result",
            event,
            duration_ms=round((now - self._begun.pop(block.id, now)) * 1000),
            tool=self._names.pop(block.call_block_id, None),
            tool_use_id=block.tool_use_id,
            status=block.status,
            summary=block.summary,
        )

    def _end(self, event: TurnCompleted) -> None:
        error = event.error
        self._write(
            "error" if error else "info",
            "turn_completed",
            event,
            duration_ms=event.duration_ms,
            tokens=event.usage,
            stop_reason=event.stop_reason,
            error=error and error.code,
            error_message=error and error.message,
            error_details=error and error.details,
        )

    def _write(self, level: Level, name: str, event: Event, **fields: Any) -> None:
        scope = LogScope(event.turn_id or None, self._session_id, event.message_id or None)
        self._log.write(level, _MODULE, name, scope, **fields)


class LoggedModel:
    """A `ModelClient` that logs each request: out, first byte, attempts, end."""

    def __init__(self, model: "ModelClient", log: JsonLog, clock: "Clock") -> None:
        self._model = model
        self._log = log
        self._clock = clock

    def missing(self, model: str) -> ErrorInfo | None:
        """See `ModelClient`."""
        return self._model.missing(model)

    async def stream(self, request: "ModelRequest") -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `ModelClient`. A request that is given up ends as `left`."""
        scope, begun = LogScope(None, request.cache_key or None), self._clock.monotonic()

        def write(name: str, level: Level = "info", **fields: Any) -> None:
            self._log.write(level, "model", name, scope, **fields)

        def passed() -> int:
            return round((self._clock.monotonic() - begun) * 1000)

        write(
            "request",
            model=request.model,
            asker=request.asker,
            messages=len(request.messages),
            prompt_tokens=request.prompt_tokens,
        )
        ended, usage = False, None
        try:
            async with aclosing(self._model.stream(request)) as batches:
                async for batch in batches:
                    for event in batch:
                        match event:
                            case ResponseStarted():
                                write("first_byte", duration_ms=passed(), model=event.model)
                            case RequestHeld(reason=reason):
                                write("held", reason=reason)
                            case RetryPlanned(reason, seconds, attempt, code):
                                more = {"seconds": seconds, "attempt": attempt, "code": code}
                                write("retry", "warning", reason=reason, **more)
                            case UsageReported(usage=usage):
                                pass
                            case ResponseFinished(reason):
                                ended = True
                                write("response", duration_ms=passed(), tokens=usage, end=reason)
                            case ResponseFailed(error):
                                ended = True
                                write("response", "error", duration_ms=passed(), error=error.code)
                            case _:
                                pass
                    yield batch
        finally:
            if not ended:
                write("response", duration_ms=passed(), tokens=usage, end="left")
