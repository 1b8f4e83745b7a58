"""The agent loop: ask the model, run its tools, ask again, until it is done."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from kode_sidecar.core.domain.agent_event import StopReason
from kode_sidecar.core.domain.error_info import error_info
from kode_sidecar.core.domain.message import OWN_WORDS, TextBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import FinishReason
from kode_sidecar.core.kernel.call_cards import CallCards
from kode_sidecar.core.kernel.contracts import (
    Context,
    Emit,
    Incoming,
    ModelClient,
    Tool,
    TurnEnd,
    TurnLimits,
    TurnScope,
)
from kode_sidecar.core.kernel.model_step import (
    ModelStep,
    block_events,
    message_added,
    message_completed,
)
from kode_sidecar.core.kernel.repeats import Repeats
from kode_sidecar.core.kernel.tool_runner import ToolRun, tool_specs
from kode_sidecar.errors import KodeError


async def run_turn(
    scope: TurnScope,
    model: ModelClient,
    tools: Sequence[Tool],
    context: Context,
    limits: TurnLimits,
    emit: Emit,
) -> TurnEnd:
    """Run one turn to its end.

    The prompt is already in `context`. Every message is committed before it is reported
    complete, and every tool call gets its result, whatever happens. A failure of the model or
    the store ends the turn and raises nothing.

    Raises asyncio.CancelledError when cancelled, once the history is valid.
    """
    turn = _Turn(scope, context, emit, Repeats(counts=limits.notices_repeats))
    specs = tool_specs(tools)
    cards = CallCards(tools, scope.uri_of)
    rounds = 0
    try:
        while True:
            summing_up = rounds >= limits.max_tool_rounds
            turn.add_incoming(limits.limit_instruction if summing_up else None)
            await emit.flow()
            request = await context.request(specs, "none" if summing_up else "auto")
            step = ModelStep(scope, context, emit, cards)
            await step.run(model, request)
            if step.ask_again:
                continue
            answer = step.assembler
            may_run = _calls_may_run(answer.finish_reason, summing_up=summing_up)
            if answer.error is None and answer.tool_uses:
                ended = await turn.answer_calls(answer.tool_uses, tools, limits, may_run=may_run)
                if turn.repeats.stuck is not None:
                    return TurnEnd("error", turn.repeats.stuck)
                if ended:
                    return TurnEnd("end_turn")
                if may_run:
                    rounds += 1
                    continue
            if _wants_to_go_on(answer.finish_reason, summing_up=summing_up):
                rounds += 1
                continue
            if context.wants_another_step():
                continue
            if answer.error is not None:
                reached = answer.error.code == "BudgetReached"
                return TurnEnd("budget" if reached else "error", answer.error)
            stop = _stop_reason(answer.finish_reason, summing_up=summing_up)
            end = await turn.finished(stop)
            if end is not None:
                return end
            rounds = 0
    except KodeError as error:
        return TurnEnd("error", error_info(error))


@asynccontextmanager
async def tool_message(
    scope: TurnScope,
    context: Context,
    tools: Sequence[Tool],
    limits: TurnLimits,
    emit: Emit,
    calls: Sequence[ToolUseBlock],
    repeats: Repeats | None = None,
) -> AsyncGenerator[ToolRun]:
    """Open the message that answers `calls`; on exit every call has a result.
    Raises KodeError `Storage`.
    """
    message = context.open("tool", {})
    emit(message_added(message, scope.turn_id))
    run = ToolRun(scope, tools, limits, emit, message.id, calls, repeats)
    try:
        yield run
    finally:
        run.answer_rest("Cancelled before it finished.")
        message = msgspec.structs.replace(message, content=run.results)
        context.commit(message)
        emit(message_completed(message, scope.turn_id))


class _Turn:
    """What the steps of one turn share."""

    def __init__(self, scope: TurnScope, context: Context, emit: Emit, repeats: Repeats) -> None:
        self._scope = scope
        self._context = context
        self._emit = emit
        self.repeats = repeats

    def add_incoming(self, limit_instruction: str | None) -> None:
        """Append reminders, steering and the instruction to sum up to the conversation."""
        for incoming in self._context.take_incoming():
            self.add(incoming)
        if limit_instruction is not None:
            text = TextBlock(text=limit_instruction)
            self.add(Incoming("user", (text,), {"origin": "reminder", OWN_WORDS: True}))

    async def finished(self, stop: StopReason) -> TurnEnd | None:
        """Return how the turn ends; None if its goal makes it go on."""
        next_round = self._scope.next_round
        if next_round is None or stop not in ("end_turn", "max_tool_rounds"):
            return TurnEnd(stop)
        following = await next_round()
        if not isinstance(following, Incoming):
            return TurnEnd("end_turn" if following is None else "error", following)
        self.add(following)
        return None

    async def answer_calls(
        self,
        calls: Sequence[ToolUseBlock],
        tools: Sequence[Tool],
        limits: TurnLimits,
        *,
        may_run: bool,
    ) -> bool:
        """Commit one tool message with a result for every call; True if a call ended the turn."""
        answers = tool_message(
            *(self._scope, self._context, tools, limits, self._emit, calls), self.repeats
        )
        async with answers as run:
            if may_run:
                await run.run()
            else:
                run.answer_rest("Not run: the answer was cut off or out of rounds.")
        return run.ends_turn

    def add(self, incoming: Incoming) -> None:
        """Commit it before reporting any of it: no half message of the user may remain."""
        blocks = tuple(
            msgspec.structs.replace(block, id=self._scope.new_id("block"))
            for block in incoming.content
        )
        opened = self._context.open(incoming.role, incoming.meta)
        message = msgspec.structs.replace(opened, content=blocks)
        self._context.commit(message)
        self._emit(message_added(message, self._scope.turn_id))
        for block in blocks:
            for event in block_events(block, self._scope.turn_id, message.id):
                self._emit(event)
        self._emit(message_completed(message, self._scope.turn_id))


def _calls_may_run(finish: FinishReason | None, *, summing_up: bool) -> bool:
    """False for a cut answer, whose calls may be cut too, and for a summary."""
    return not summing_up and finish in ("stop", "tool_calls", "other", None)


def _wants_to_go_on(finish: FinishReason | None, *, summing_up: bool) -> bool:
    """True if the host paused in the middle of an answer: ask it to go on, within the rounds."""
    return finish == "paused" and not summing_up


def _stop_reason(finish: FinishReason | None, *, summing_up: bool) -> StopReason:
    """Return why a turn ended whose last answer called no tool."""
    if finish == "length":
        return "max_tokens"
    if finish == "content_filter":
        return "refusal"
    return "max_tool_rounds" if summing_up else "end_turn"
