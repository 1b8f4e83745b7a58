"""Compaction (C11): ask the model for a summary and place it in the conversation as a message."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from kode_sidecar.agent.context.compaction import (
    kept_from,
    summary_content,
    summary_meta,
)
from kode_sidecar.agent.context.user_edits import only_pinned
from kode_sidecar.agent.turns.context import TurnContext, report_message, write_incoming
from kode_sidecar.agent.turns.prompt import reminder_input
from kode_sidecar.agent.turns.services import SessionServices
from kode_sidecar.core.domain.agent_event import (
    ContextCompacted,
    ContextUse,
    Notice,
    NoticeLevel,
    PlanItem,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import Message, TextBlock, texts_of
from kode_sidecar.core.domain.notice_codes import NoticeCode
from kode_sidecar.core.kernel import MessageAssembler
from kode_sidecar.core.kernel.contracts import (
    Emit,
    Incoming,
    ModelRequest,
    ToolSpec,
)
from kode_sidecar.core.protocol.turn import ContextCompactResult
from kode_sidecar.errors import ERRORS, INTERNAL_ERROR, KodeError

_NOTHING_TO_SUM_UP = 2


@dataclass(frozen=True)
class Summary:
    """What the model wrote, and which of the messages it was shown it takes the place of.

    `known` are the fields of the message to be that the answer tells: usage, cost, model.
    """

    text: str
    dropped: Sequence[Message]
    kept: Sequence[Message]
    tokens_before: int
    known: Mapping[str, Any]


class Compactor:
    """Sums up what a `TurnContext` shows, and tells of it with `emit`.

    `plan` outlives it; `lost` returns what else is to be said again after it.
    """

    def __init__(
        self,
        services: SessionServices,
        emit: Emit,
        plan: Callable[[], Sequence[PlanItem]],
        lost: Callable[[TurnContext], Sequence[Incoming]],
    ) -> None:
        self._services = services
        self._emit = emit
        self._plan = plan
        self._lost = lost

    async def compact(self, context: TurnContext, tools: Sequence[ToolSpec]) -> bool:
        """Compact within a turn; return whether it was done. A failure is a notice to the user.

        Raises KodeError `Storage`.
        """
        summary = await self.ask(context, tools)
        if isinstance(summary, ErrorInfo):
            if summary.code != "InvalidParams":
                text = f"The conversation could not be summed up: {summary.message}"
                self._tell_user(context, "CompactionFailed", text, level="warning")
            return False
        self.place(context, summary, tools)
        for incoming in self._lost(context):
            context.remember(incoming)
        plan = self._plan()
        if any(item.state != "done" for item in plan):
            steps = "\n".join(f"- {item.state}: {item.text}" for item in plan)
            context.remember(reminder_input(f"Your plan as it stands:\n{steps}"))
        return True

    async def ask(self, context: TurnContext, tools: Sequence[ToolSpec]) -> Summary | ErrorInfo:
        """Ask for a summary. The request begins like the last one, which hosts have cached."""
        shown = context.shown
        kept = kept_from(shown, context.window, context.pinned)
        if kept < _NOTHING_TO_SUM_UP:
            return failure("InvalidParams", "There is nothing to sum up yet: go on first.")
        texts = self._services.compaction_texts()
        before = context.fitted(tools, "none").whole.tokens
        instruction = Message(
            id="", session_id="", role="user", content=(TextBlock(text=texts.instruction),)
        )
        self._tell_user(context, "CompactingContext", "Summing up the conversation to make room.")
        started = self._services.clock.monotonic()
        question = context.fitted(tools, "none", [instruction])
        answer = await self._answer(context, question.request)
        if answer.error is not None and answer.error.code == "ContextOverflow":
            context.was_too_long(question)
            question = context.fitted(tools, "none", [instruction])
            answer = await self._answer(context, question.request)
        if answer.error is not None:
            return answer.error
        text = "\n\n".join(texts_of(answer.blocks))
        if not text.strip():
            return failure("EmptyAnswer", "the model wrote no summary.")
        known = {
            "usage": answer.usage,
            "cost": answer.cost,
            "cost_usd": answer.cost_usd,
            "lost": answer.lost,
            "duration_ms": round((self._services.clock.monotonic() - started) * 1000),
            "response_id": answer.response_id,
            "model": answer.model,
        }
        return Summary(text, shown[:kept], shown[kept:], before, known)

    def place(
        self, context: TurnContext, summary: Summary, tools: Sequence[ToolSpec]
    ) -> ContextCompacted:
        """Write the summary below the newest message; from now on the context begins with it.

        Raises KodeError `Storage`.
        """
        content = summary_content(self._services.compaction_texts(), summary.text, summary.dropped)
        incoming = Incoming("user", content, summary_meta(summary.kept))
        message = write_incoming(context, incoming, self._services.new_id, **summary.known)
        beside = only_pinned(summary.dropped, context.pinned)
        context.show([message, *beside, *summary.kept])
        report_message(self._emit, message, context.turn_id)
        event = ContextCompacted(
            turn_id=context.turn_id,
            dropped_messages=len(summary.dropped),
            tokens_before=summary.tokens_before,
            tokens_after=context.fitted(tools, "none").whole.tokens,
            summary_message_id=message.id,
        )
        context.use = ContextUse(tokens=event.tokens_after, window=context.window)
        self._emit(event)
        return event

    async def _answer(self, context: TurnContext, question: ModelRequest) -> MessageAssembler:
        assembler = MessageAssembler(lambda: "", context.turn_id, "")
        question = replace(question, asker=f"summary {context.session_id}")
        async with aclosing(self._services.model.stream(question)) as batches:
            async for batch in batches:
                for event in assembler.feed(batch):
                    if isinstance(event, Notice):
                        self._emit(event)
                await self._emit.flow()
        assembler.finish()
        return assembler

    def _tell_user(
        self, context: TurnContext, code: NoticeCode, text: str, level: NoticeLevel = "info"
    ) -> None:
        self._emit(Notice(turn_id=context.turn_id, code=code, message=text, level=level))


def answer_of(error: ErrorInfo) -> KodeError:
    """Return the error for a client that asked for a summary and gets none.

    An error without a code of its own counts as `Provider`.
    """
    own = ERRORS[error.code][0] != INTERNAL_ERROR
    return KodeError(
        error.code if own else "Provider",
        error.message,
        http_status=error.http_status,
        retry_after_ms=error.retry_after_ms,
        retryable=error.retryable,
        details=error.details if own else {"reason": error.code},
    )


def compact_result(event: ContextCompacted) -> ContextCompactResult:
    """Return the result for a client that asked for a summary."""
    return ContextCompactResult(
        summary_message_id=event.summary_message_id,
        dropped_messages=event.dropped_messages,
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
    )
