"""Compaction (C11): ask the model for a summary and place it in the conversation as a message."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from kode_sidecar.agent.context.compaction import (
    kept_from,
    stays_beside,
    summary_content,
    summary_meta,
    why_no_summary,
    without_pictures,
    words_from,
)
from kode_sidecar.agent.context.fitting import shortened_results
from kode_sidecar.agent.turns.context import TurnContext, report_message, write_incoming
from kode_sidecar.agent.turns.inspection import unwritten
from kode_sidecar.agent.turns.prompt import reminder_input
from kode_sidecar.agent.turns.services import Hooks, SessionServices
from kode_sidecar.core.domain.agent_event import (
    ContextCompacted,
    ContextUse,
    ModelWaiting,
    Notice,
    NoticeLevel,
    PlanItem,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import LostUsage, Message, TextBlock, texts_of
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
# After a failure the conversation must grow by this share before a summary is asked for again.
_GROWN = 1.25


@dataclass(frozen=True)
class Summary:
    """What the model wrote, and which of the messages it was shown it takes the place of.

    `known` are the fields of the new message that come from the answer: usage, cost, model.
    """

    text: str
    dropped: Sequence[Message]
    kept: Sequence[Message]
    tokens_before: int
    known: Mapping[str, Any]


class Compactor:
    """Sums up what a `TurnContext` shows, and reports it with `emit`.

    `plan` outlives it; `lost` returns what else is to be said again after it,
    `hooks` may forbid it.
    """

    def __init__(
        self,
        services: SessionServices,
        emit: Emit,
        plan: Callable[[], Sequence[PlanItem]],
        lost: Callable[[TurnContext], Sequence[Incoming]],
        hooks: Callable[[], Hooks],
    ) -> None:
        self._services = services
        self._emit = emit
        self._plan = plan
        self._lost = lost
        self._hooks = hooks
        self._failed_at: tuple[str, float] = ("", 0.0)

    async def compact(self, context: TurnContext, tools: Sequence[ToolSpec]) -> bool:
        """Compact within a turn; return whether it was done. A failure is a notice to the user.

        A model that would not sum up is not asked again before there is much more to sum up.
        Raises KodeError `Storage`.
        """
        weight = context.fitted(tools, "none").whole.weight
        model, failed_at = self._failed_at
        if model == context.model and weight < _GROWN * failed_at:
            return False
        summary = await self.ask(context, tools)
        if isinstance(summary, ErrorInfo):
            if summary.code != "InvalidParams":
                self._failed_at = (context.model, weight)
                text = f"The conversation could not be summed up: {summary.message}"
                self._notify_user(context, "CompactionFailed", text, level="warning")
            return False
        self._failed_at = ("", 0.0)
        self.place(context, summary, tools)
        return True

    async def ask(self, context: TurnContext, tools: Sequence[ToolSpec]) -> Summary | ErrorInfo:
        """Ask for a summary. The request begins like the last one, which hosts have cached.

        An answer that is none is asked for again: with less before it, then of the older half.
        """
        refused = await self._hooks().before_compaction(context.turn_id)
        if refused is not None:
            return failure("Denied", refused)
        before = context.fitted(tools, "auto").whole.tokens
        failed: ErrorInfo | None = None
        spent: LostUsage | None = None
        clock = self._services.clock
        for model, dropped, kept, shorter in self._attempts(context):
            if failed is None:
                text = "Summing up the conversation to make room."
                self._notify_user(context, "CompactingContext", text)
                self._emit(ModelWaiting(turn_id=context.turn_id, state="compacting", message=text))
            started = clock.monotonic()
            shown = dropped if shorter else [*dropped, *kept]
            answer = await self._question(context, tools, shown, model, shorter=shorter)
            failed = _failure(answer, dropped)
            if failed is None:
                known = {
                    "usage": answer.usage,
                    "cost": answer.cost,
                    "cost_usd": answer.cost_usd,
                    "lost": spent.plus(answer.lost) if spent is not None else answer.lost,
                    "duration_ms": round((clock.monotonic() - started) * 1000),
                    "response_id": answer.response_id,
                    "model": answer.model,
                }
                text = "\n\n".join(texts_of(answer.blocks))
                return Summary(text, dropped, kept, before, known)
            spent = _with(spent, answer)
            if model != context.model:
                text = f"{model} did not sum up: {failed.message} {context.model} is asked now."
                self._notify_user(context, "OtherModelTaken", text, level="warning")
            elif not _may_ask_again(failed):
                break
        if spent is not None:
            context.owe(spent)
        nothing = failure("InvalidParams", "There is nothing to sum up yet: go on first.")
        return failed or nothing

    def _attempts(
        self, context: TurnContext
    ) -> Iterator[tuple[str, Sequence[Message], Sequence[Message], bool]]:
        """Yield who sums up, what, what to keep, and whether the model gets less than all of it.

        A model for summaries reads nothing from a cache, so it gets no more than it needs.
        """
        shown = context.shown
        kept = kept_from(shown, context.window, context.pinned)
        if kept < _NOTHING_TO_SUM_UP:
            return
        own, other = context.model, self._services.summary_model
        if other is not None and other != own:
            yield other, shown[:kept], shown[kept:], True
        yield own, shown[:kept], shown[kept:], False
        yield own, shown[:kept], shown[kept:], True
        starts = (at for at in range(kept // 2, kept) if shown[at].role in ("user", "assistant"))
        half = next(starts, kept)
        if _NOTHING_TO_SUM_UP <= half < kept:
            yield own, shown[:half], shown[half:], True

    def place(
        self, context: TurnContext, summary: Summary, tools: Sequence[ToolSpec]
    ) -> ContextCompacted:
        """Write the summary below the newest message; from now on the context begins with it.

        Raises KodeError `Storage`.
        """
        texts, dropped = self._services.compaction_texts(), summary.dropped
        words = words_from(dropped, context.window)
        content = summary_content(texts, summary.text, dropped, words)
        incoming = Incoming("user", content, summary_meta(summary.kept, words))
        message = write_incoming(context, incoming, self._services.new_id, **summary.known)
        beside = stays_beside(dropped, context.pinned, words)
        context.show([message, *beside, *summary.kept])
        report_message(self._emit, message, context.turn_id)
        self._say_again(context)
        after = context.fitted(tools, "auto", [*map(unwritten, context.incoming(None))])
        event = ContextCompacted(
            turn_id=context.turn_id,
            dropped_messages=len(dropped) - len(beside),
            tokens_before=summary.tokens_before,
            tokens_after=after.size.tokens,
            summary_message_id=message.id,
        )
        context.use = ContextUse(tokens=event.tokens_after, window=context.window)
        self._emit(event)
        gone = [one for one in dropped if one.is_of_user and one not in beside]
        if gone:
            text = (
                f"{len(gone)} older messages of yours are only in the summary now, for want of "
                "room: your newest words stay as they are, up to a quarter of the model's window."
            )
            self._notify_user(context, "LeftOut", text)
        return event

    def _say_again(self, context: TurnContext) -> None:
        """Let the next request hold what the summary may have lost, and the plan as it stands."""
        for incoming in self._lost(context):
            context.remember(incoming)
        plan = self._plan()
        if any(item.state != "done" for item in plan):
            steps = "\n".join(f"- {item.state}: {item.text}" for item in plan)
            context.remember(reminder_input(f"Your plan as it stands:\n{steps}"))

    async def _question(
        self,
        context: TurnContext,
        tools: Sequence[ToolSpec],
        shown: Sequence[Message],
        model: str,
        *,
        shorter: bool,
    ) -> MessageAssembler:
        """Ask for a summary of messages; the window is known to be smaller if they are refused."""
        instruction = self._services.compaction_texts().instruction
        asked = Message(id="", session_id="", role="user", content=(TextBlock(text=instruction),))
        messages = [*map(without_pictures, shortened_results(shown) if shorter else shown)]
        question = context.fitted(tools, "none", [asked], messages)
        if model != context.model:
            return await self._answer(context, replace(question.request, model=model, effort=None))
        answer = await self._answer(context, question.request)
        if answer.error is not None and answer.error.code == "ContextOverflow":
            context.was_too_long(question)
        return answer

    async def _answer(self, context: TurnContext, question: ModelRequest) -> MessageAssembler:
        assembler = MessageAssembler(lambda: "", context.turn_id, "")
        question = replace(question, asker=f"summary {context.session_id}")
        async with aclosing(self._services.model.stream(question)) as batches:
            async for batch in batches:
                for event in assembler.feed(batch):
                    if isinstance(event, Notice | ModelWaiting):
                        self._emit(event)
                await self._emit.flow()
        assembler.finish()
        return assembler

    def _notify_user(
        self, context: TurnContext, code: NoticeCode, text: str, level: NoticeLevel = "info"
    ) -> None:
        self._emit(Notice(turn_id=context.turn_id, code=code, message=text, level=level))


def _failure(answer: MessageAssembler, dropped: Sequence[Message]) -> ErrorInfo | None:
    """Return why an answer cannot take the place of messages; None if it can."""
    if answer.error is not None:
        return answer.error
    why = why_no_summary(answer.blocks, answer.finish_reason, dropped)
    return failure("EmptyAnswer", f"the model's answer is no summary: {why}.") if why else None


def _may_ask_again(error: ErrorInfo) -> bool:
    """Whether less to read may help."""
    return error.code in ("EmptyAnswer", "ContextOverflow", "ContentFiltered", "TooLarge")


def _with(spent: LostUsage | None, answer: MessageAssembler) -> LostUsage | None:
    """Return what was spent with an answer that is of no use."""
    lost = answer.lost if spent is None else spent.plus(answer.lost)
    if answer.usage is None:
        return lost
    return LostUsage(usage=answer.usage, cost=answer.cost, cost_usd=answer.cost_usd).plus(lost)


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
