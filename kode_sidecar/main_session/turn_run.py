"""A turn from its first step to its end, whatever happens."""

import asyncio
from collections.abc import Callable, Sequence

from kode_sidecar.context.agents import AgentProfile
from kode_sidecar.domain.agent_event import TurnCompleted
from kode_sidecar.domain.error_info import failure
from kode_sidecar.kernel import run_turn
from kode_sidecar.kernel.contracts import ArtifactSink, Emit, Tool, TurnEnd, TurnLimits, TurnScope
from kode_sidecar.main_session.recalling import recall
from kode_sidecar.main_session.running_turn import RunningTurn
from kode_sidecar.main_session.services import SessionServices
from kode_sidecar.main_session.turn_context import TurnContext
from kode_sidecar.main_session.whole_message import report_message, write_incoming


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
        work=services.work,
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


def keep_unsent(context: TurnContext, services: SessionServices, emit: Emit) -> None:
    """What was said to a turn that ended before its next step; the next turn has it.

    Raises KodeError `Storage`.
    """
    for incoming in context.take_steering():
        message = write_incoming(context, incoming, services.new_id)
        report_message(emit, message, context.turn_id)


def turn_completed(context: TurnContext, end: TurnEnd, duration_ms: int) -> TurnCompleted:
    """The last event of a turn, with all that it cost."""
    spent = context.totals
    return TurnCompleted(
        turn_id=context.turn_id,
        stop_reason=end.stop_reason,
        usage=spent.usage,
        cost=spent.cost,
        cost_usd=spent.cost_usd,
        duration_ms=duration_ms,
        error=end.error,
    )
