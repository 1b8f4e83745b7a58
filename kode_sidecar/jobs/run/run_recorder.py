"""Writes the records of a run as a projection of its session's events (B5).

`events.jsonl`, `logs/tools.jsonl` and the conversation in `transcript.md` shorten what the
session's journal holds whole; large values go to artifacts.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    ContextCompacted,
    Event,
    MessageAdded,
    MessageCompleted,
    ModelWaiting,
    Notice,
    PlanUpdated,
    ScoutUpdated,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import TextBlock, ToolResultBlock, ToolUseBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.spending import Totals
from kode_sidecar.jobs.run.contracts import Watch
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.tool_log import ToolLog
from kode_sidecar.jobs.run.transcript import Transcript


class RunRecorder:
    """Records every event of the session, in order.

    `tools` are the names of all tools of the run. Without `stream` growing text is not passed on.
    `final_text` is the text of the newest answer that has any. `spent` is called with the totals of
    all answers whenever they grow. `limited` is set while the engine waits only for the host's rate
    limit.
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
        self._known = tools
        self._stream = stream
        self._spent = spent
        self._totals = Totals()
        self._steps = 0
        self._answer = ""
        self._growing: set[str] = set()
        self._texts: list[str] = []
        self._calls: list[str] = []
        self.tools = ToolLog(log, transcript)
        self.final_text = ""
        self.limited: ErrorInfo | None = None

    def __call__(self, event: Event | BlockDelta) -> None:
        """Record the event. A failing disk is noted in the log, which stops the run."""
        with suppress(KodeError):
            self._record(event)

    def sum_up(self, totals: Totals) -> None:
        """Report what the whole session used, including scouts and lost attempts."""
        with suppress(KodeError):
            self._spent(totals)

    def _record(self, event: Event | BlockDelta) -> None:
        match event:
            case BlockDelta():
                if self._stream and event.block_id in self._growing:
                    self._watch(event)
            case MessageAdded(role="assistant"):
                self._answer_started(event.message_id)
            case BlockStarted():
                self.limited = None
                if isinstance(event.block, ToolResultBlock):
                    self.tools.started(event, event.block)
                elif isinstance(event.block, TextBlock) and event.message_id == self._answer:
                    self._growing.add(event.block_id)
            case BlockDropped():
                self._growing.discard(event.block_id)
            case BlockCompleted():
                self._block(event)
            case MessageCompleted():
                self._count(event)
                if event.message_id == self._answer and not event.is_api_error_message:
                    self._answered(event)
            case _:
                self._beside(event)

    def _beside(self, event: Event) -> None:
        """Record events other than answers and calls."""
        match event:
            case Notice():
                self._note(event.code, event.message)
            case ModelWaiting(state="retrying"):
                self._note("Retrying", event.message)
                self.limited = _limit(event)
            case ContextCompacted():
                self._log.event(
                    "context.compacted",
                    f"Summed up {event.dropped_messages} messages: "
                    f"about {event.tokens_before} tokens became {event.tokens_after}",
                    actor="engine",
                    data={"messages": event.dropped_messages, "tokens": event.tokens_after},
                )
            case PlanUpdated():
                done = sum(item.state == "done" for item in event.items)
                self._log.event(
                    "plan.updated",
                    f"Plan: {done} of {len(event.items)} steps done",
                    actor="model",
                    data={"items": msgspec.to_builtins(event.items)},
                )
            case ScoutUpdated() if event.state not in ("running", "reporting"):
                self._log.event(
                    "scout.ended",
                    f"Scout {event.title}: {event.state}, {event.tool_calls} calls",
                    actor="engine",
                    severity="info" if event.state == "done" else "warning",
                    data={"state": event.state, "tool_calls": event.tool_calls},
                    correlation_id=event.tool_use_id,
                )
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
            case TextBlock(text=text) if event.message_id == self._answer:
                self._texts.append(text)
            case ToolUseBlock(name=name, invalid_input=invalid):
                self._calls.append(name)
                self.tools.asked(event.block)
                if name not in self._known:
                    self._note("UnknownTool", f"The model asked for a tool {name!r}.")
                elif invalid is not None:
                    self._note("InvalidArguments", f"{name} was called without valid JSON.")
            case ToolResultBlock():
                self.tools.ended(event, event.block)
            case _:
                pass

    def _answered(self, event: MessageCompleted) -> None:
        text, calls = "\n".join(self._texts), self._calls
        self.final_text = text.strip() or self.final_text
        reported = f"calls {', '.join(calls)}" if calls else "no calls"
        self._log.event(
            "model.answered",
            f"Step {self._steps}: {len(text)} characters, {reported}",
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


def _limit(event: ModelWaiting) -> ErrorInfo | None:
    """Return the failure that a run ends with if its time runs out during this wait."""
    if event.code != "RateLimited":
        return None
    text = f"The host's rate limit lasted until the run's time was over: {event.message}"
    return failure("RateLimited", text)
