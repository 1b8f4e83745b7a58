"""The kernel's events of an engine: how an engine tells them, and what the records make of them."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.domain.agent_event import (
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
from kode_sidecar.domain.message import TextBlock, ToolUseBlock, Usage
from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import Watch
from kode_sidecar.headless_run.run_log import EventLog
from kode_sidecar.headless_run.transcript import Transcript
from kode_sidecar.kernel.contracts import Emit


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


class EngineRecorder:
    """Takes the events of an engine; tells the log, the transcript and whoever watches.

    `tools` are the names of all tools of the run. Without `stream` nobody is told of growing text.
    `final_text` is that of the newest answer that has some.
    """

    def __init__(
        self,
        log: EventLog,
        transcript: Transcript,
        watch: Watch,
        tools: Sequence[str],
        *,
        stream: bool,
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
        self.final_text = ""

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
            case BlockStarted(block=TextBlock()) if event.message_id == self._answer:
                self._growing.add(event.block_id)
            case BlockDropped():
                self._growing.discard(event.block_id)
            case BlockCompleted() if event.message_id == self._answer:
                self._block(event)
            case MessageCompleted(is_api_error_message=False) if event.message_id == self._answer:
                self._answered(event)
            case Notice():
                self._note(event.code, event.message)
            case ModelWaiting(state="retrying"):
                self._note("Retrying", event.message)
            case _:
                pass

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
