"""A turn from its first step to its end, whatever happens."""

import asyncio
from collections.abc import Callable, Sequence

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.domain.agent_event import TurnCompleted, UsageUpdated
from kode_sidecar.domain.error_info import failure
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import SessionStream
from kode_sidecar.kernel import run_turn
from kode_sidecar.kernel.contracts import ArtifactSink, Emit, Tool, TurnEnd, TurnLimits, TurnScope
from kode_sidecar.turns.recalling import recall
from kode_sidecar.turns.running_turn import RunningTurn
from kode_sidecar.turns.services import SessionServices
from kode_sidecar.turns.totals import Totals
from kode_sidecar.turns.whole_message import report_message, write_incoming


async def run_to_end(
    turn: RunningTurn,
    services: SessionServices,
    agent: AgentProfile,
    tools: Callable[[], Sequence[Tool]],
    save_artifact: ArtifactSink,
    emit: Emit,
) -> TurnEnd:
    """Run the engine; cancellation and bugs are ends like any other."""
    scope = TurnScope(
        session_id=turn.context.session_id,
        turn_id=turn.id,
        new_id=services.new_id,
        clock=services.clock,
        save_artifact=save_artifact,
        report_bug=services.report_bug,
        silence_told=services.silence_told,
        cut_off=turn.cut_off,
    )
    limits = TurnLimits(agent.max_tool_rounds, services.limit_instruction)
    try:
        turn.running = True
        await recall(turn.context, services.recall, emit)
        return await run_turn(scope, services.model, tools(), turn.context, limits, emit)
    except asyncio.CancelledError:
        return TurnEnd("cancelled")
    except Exception as error:
        services.report_bug("turn", error)
        text = (
            "The sidecar failed inside this turn; the log has the details. "
            "The conversation is intact: send the prompt again."
        )
        return TurnEnd("error", failure("InternalError", text))


def report_end(
    turn: RunningTurn,
    end: TurnEnd,
    services: SessionServices,
    totals: Totals,
    stream: SessionStream,
) -> TurnCompleted:
    """The last events of a turn; they are held until the caller releases them.

    What was said to it after its last step comes before: the next turn has it.
    """
    turn.ending = True
    context = turn.context
    totals.add(context.totals)
    stream.hold_end()
    try:
        for incoming in context.take_steering():
            message = write_incoming(context, incoming, services.new_id)
            report_message(stream, message, turn.id)
    except KodeError as error:
        stream.not_saved(error)
    report_usage(totals, stream)
    spent = context.totals
    completed = TurnCompleted(
        turn_id=turn.id,
        stop_reason=end.stop_reason,
        usage=spent.usage,
        cost=spent.cost,
        cost_usd=spent.cost_usd,
        duration_ms=round((services.clock.monotonic() - turn.started) * 1000),
        error=end.error,
    )
    stream(completed)
    return completed


def report_usage(totals: Totals, emit: Emit) -> None:
    """What the session has cost so far."""
    emit(UsageUpdated(usage=totals.usage, cost=totals.cost, cost_usd=totals.cost_usd))
