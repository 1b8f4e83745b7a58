"""Emits the kernel's events for engines without its loop, and writes them into a run's records."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    Event,
    MessageAdded,
    MessageCompleted,
    ModelWaiting,
    Notice,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import TextBlock, ToolUseBlock, Usage
from kode_sidecar.core.kernel.contracts import Emit
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.spending import Totals
from kode_sidecar.jobs.run.contracts import Watch
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.transcript import Transcript


class AnswerEvents:
    """Emits the events of one answer, for an engine that does not run the kernel's loop."""

    def __init__(self, emit: Emit, number: int) -> None:
        self._emit = emit
        self._message_id = f"answer-{number}"
        self._text_id = f"text-{number}"
        self._shown = 0
        emit(MessageAdded(message_id=self._message_id, role="assistant"))

    def grow(self, text: str) -> None:
        """Emit more text of the answer."""
        if not text:
            return
        if not self._shown:
            block = TextBlock(id=self._text_id, text="")
            self._emit(
                BlockStarted(message_id=self._message_id, block_id=self._text_id, block=block)
            )
        self._emit(BlockDelta(self._text_id, self._shown, text))
        self._shown += len(text)

    def end(
        self,
        text: str,
        calls: Sequence[ToolUseBlock],
        *,
        model: str,
        usage: Usage | None = None,
    ) -> None:
        """Emit the whole answer."""
        for block in (TextBlock(id=self._text_id, text=text), *calls):
            self._emit(BlockCompleted(message_id=self._message_id, block_id=block.id, block=block))
        self._emit(MessageCompleted(message_id=self._message_id, model=model, usage=usage))


def _limit(event: ModelWaiting) -> ErrorInfo | None:
    """Return the failure that a run ends with when its time is over in this wait."""
    if event.code != "RateLimited":
        return None
    text = f"The host's rate limit lasted until the run's time was over: {event.message}"
    return failure("RateLimited", text)


class EngineRecorder:
    """Passes the events of an engine on to the log, the transcript and the watcher.

    `tools` are the names of all tools of the run. Without `stream` growing text is not passed on.
    `final_text` is the text of the newest answer that has any. `spent` is called with the sum of
    what all answers used when there is more. `limited` is there while the host's rate limit is
    all that the engine waits for.
    """

    def __init__(
        self,
        log: EventLog,
        transcript: Transcript,
        watch: Watch,
        tools: Sequence[str],
        *,
        stream: bool,
        spent: Callable[[Totals], None],
    ) -> None:
        self._log = log
        self._transcript = transcript
        self._watch = watch
        self._tools = tools
        self._stream = stream
        self._steps = 0
        self._answer = ""
        self._growing: set[str] = set()
        self._texts: list[str] = []
        self._calls: list[str] = []
        self._spent = spent
        self._totals = Totals()
        self.final_text = ""
        self.limited: ErrorInfo | None = None

    def __call__(self, event: Event | BlockDelta) -> int:
        """Record the event. A failing disk is noted in the log, which stops the run."""
        with suppress(KodeError):
            self._record(event)
        return 0

    async def flow(self) -> None:
        """Return at once: every event is on disk when it is emitted."""

    def _record(self, event: Event | BlockDelta) -> None:
        match event:
            case BlockDelta():
                if self._stream and event.block_id in self._growing:
                    self._watch(event)
            case MessageAdded(role="assistant"):
                self._answer_started(event.message_id)
            case BlockStarted():
                self.limited = None
                if isinstance(event.block, TextBlock) and event.message_id == self._answer:
                    self._growing.add(event.block_id)
            case BlockDropped():
                self._growing.discard(event.block_id)
            case BlockCompleted() if event.message_id == self._answer:
                self._block(event)
            case MessageCompleted():
                self._count(event)
                if event.message_id == self._answer and not event.is_api_error_message:
                    self._answered(event)
            case Notice():
                self._note(event.code, event.message)
            case ModelWaiting(state="retrying"):
                self._note("Retrying", event.message)
                self.limited = _limit(event)
            case _:
                pass

    def _count(self, event: MessageCompleted) -> None:
        if event.usage is not None or event.cost is not None:
            self._totals.add_answer(event.usage, event.cost, event.cost_usd)
            self._spent(self._totals)

    def _answer_started(self, message_id: str) -> None:
        self._answer = message_id
        self._texts, self._calls = [], []
        self._steps += 1
        self._log.event(
            "model.asked",
            f"Asking the model, step {self._steps}",
            actor="engine",
            correlation_id=f"step-{self._steps}",
        )

    def _block(self, event: BlockCompleted) -> None:
        self._growing.discard(event.block_id)
        match event.block:
            case TextBlock(text=text):
                self._texts.append(text)
            case ToolUseBlock(name=name, invalid_input=invalid):
                self._calls.append(name)
                if name not in self._tools:
                    self._note("UnknownTool", f"The model asked for a tool {name!r}.")
                elif invalid is not None:
                    self._note("InvalidArguments", f"{name} was called without valid JSON.")
            case _:
                pass

    def _answered(self, event: MessageCompleted) -> None:
        text, calls = "\n".join(self._texts), self._calls
        self.final_text = text.strip() or self.final_text
        told = f"calls {', '.join(calls)}" if calls else "no calls"
        self._log.event(
            "model.answered",
            f"Step {self._steps}: {len(text)} characters, {told}",
            actor="model",
            data={
                "text": text,
                "calls": calls,
                "model": event.model or "",
                "usage": None if event.usage is None else msgspec.to_builtins(event.usage),
            },
            correlation_id=f"step-{self._steps}",
        )
        self._transcript.said(self._steps, text)

    def _note(self, code: str, message: str) -> None:
        self._log.event("engine.note", message, actor="engine", data={"code": code})
