"""One turn: the one that runs in a session, its run to the end, its lines in the log."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.event_log import NewSession, SessionStream
from kode_sidecar.agent.turns.context import TurnContext, report_message, write_incoming
from kode_sidecar.agent.turns.goal import GoalCheck
from kode_sidecar.agent.turns.services import Hooks, SessionServices, recall
from kode_sidecar.core.domain.agent_event import (
    ContextUse,
    TurnCompleted,
    TurnStarted,
    UsageUpdated,
)
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.event_parts import Attention
from kode_sidecar.core.domain.message import OUR_ORIGINS, Message, unanswered
from kode_sidecar.core.kernel import message_completed
from kode_sidecar.core.kernel.contracts import (
    ArtifactSink,
    CutOff,
    Emit,
    Incoming,
    NewId,
    NextRound,
    Tool,
    TurnEnd,
    TurnLimits,
    TurnScope,
)
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.protocol.turn import TurnStartResult
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.spending import Totals

REMEMBERED_TURN_KEYS = 1_000

_TURN_KEY = "clientTurnKey"
_NEVER_RAN = "Not run: the call could not be saved."


@dataclass
class RunningTurn:
    """The turn that occupies the session until its last event is out."""

    id: str
    context: TurnContext
    options: NewSession
    mode: Mode
    hooks: Hooks
    saved: asyncio.Event
    started: float
    cut_off: CutOff
    goal: GoalCheck | None = None
    running: bool = False
    ending: bool = False

    def name(self) -> dict[str, object] | None:
        """Return its id for an error's details, None until the client has got it (O1)."""
        return {"turnId": self.id} if self.saved.is_set() else None


def turn_active(turn: RunningTurn) -> KodeError:
    """Return the error for a request that must wait for the end of this turn."""
    text = (
        "A turn is running in this session; wait for turn.completed or cancel it with "
        "kode/turn/cancel."
    )
    return KodeError("TurnActive", text, details=turn.name())


def turn_to_steer(turn: RunningTurn | None, turn_id: str) -> RunningTurn:
    """Return the running turn if it is the one meant. Raises `NoActiveTurn`, `TurnMismatch`."""
    if turn is None or turn.ending:
        text = "No turn is running in this session; start one with kode/turn/start."
        raise KodeError("NoActiveTurn", text)
    if turn.id != turn_id:
        text = "Another turn is running; steer that one or cancel it with kode/turn/cancel."
        raise KodeError("TurnMismatch", text, details=turn.name())
    return turn


class TurnKeys:
    """The newest turns that clients started with a key, by that key.

    The key is stored with the prompt, so a repeat after a crash still finds its turn.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._results: dict[str, TurnStartResult] = {}
        self._starting: dict[str, asyncio.Event] = {}
        for message in messages:
            key = message.meta.get(_TURN_KEY)
            if isinstance(key, str):
                result = TurnStartResult(turn_id=message.turn_id, message_id=message.id)
                self.remember(key, result)

    @asynccontextmanager
    async def starting(self, key: str | None) -> AsyncGenerator[TurnStartResult | None]:
        """Start a turn with this key inside, unless this gives the one that was started with it.

        Whoever repeats a key waits until the first start with it has succeeded or failed.
        """
        if key is None:
            yield None
            return
        while key in self._starting:
            await self._starting[key].wait()
        self._starting[key] = done = asyncio.Event()
        try:
            yield self._results.get(key)
        finally:
            del self._starting[key]
            done.set()

    def remember(self, key: str | None, result: TurnStartResult) -> None:
        """Keep the result of a start for repeats of its key."""
        if key is None:
            return
        self._results[key] = result
        if len(self._results) > REMEMBERED_TURN_KEYS:
            del self._results[next(iter(self._results))]


def with_turn_key(meta: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Return the meta of a prompt with the key it was sent with."""
    return {**meta} if key is None else {**meta, _TURN_KEY: key}


def write_opening(
    turn: RunningTurn,
    agent: str,
    opening: Sequence[Incoming],
    known: Mapping[str, Any],
    new_id: NewId,
    emit: Emit,
) -> str:
    """Write what a turn begins with, then report it; the id of the last of it.

    `known` are more fields of the prompt. Raises KodeError `Storage`.
    """

    def fields(one: Incoming) -> Mapping[str, Any]:
        return {} if one.meta.get("origin") in OUR_ORIGINS else known

    try:
        for one in opening:
            write_incoming(turn.context, one, new_id, **fields(one))
    except KodeError:  # what is written stays, so it is reported
        _report_written(turn, emit)
        raise
    prompt_id = turn.context.leaf_id or ""
    emit(TurnStarted(turn_id=turn.id, message_id=prompt_id, agent=agent, mode=turn.mode))
    _report_written(turn, emit)
    return prompt_id


def _report_written(turn: RunningTurn, emit: Emit) -> None:
    for message in turn.context.messages:
        report_message(emit, message, turn.id)


async def run_to_end(
    turn: RunningTurn,
    services: SessionServices,
    agent: AgentProfile,
    tools: Callable[[], Sequence[Tool]],
    save_artifact: ArtifactSink,
    emit: Emit,
    ended: Callable[[TurnEnd], Awaitable[None]],
) -> None:
    """Run the turn; its end goes to `ended`, also when it was cancelled or failed by a bug."""
    scope = TurnScope(
        session_id=turn.context.session_id,
        turn_id=turn.id,
        new_id=services.new_id,
        clock=services.clock,
        save_artifact=save_artifact,
        report_bug=services.report_bug,
        silence_seconds=services.silence_seconds,
        cut_off=turn.cut_off,
        uri_of=services.workspace.uri_of,
        call_ended=services.call_ended,
        run_call=turn.hooks.run_call,
        next_round=_next_round(turn.goal, turn.hooks.next_round(turn.id)),
    )
    limits = TurnLimits(agent.max_tool_rounds, services.limit_instruction())
    try:
        turn.running = True
        await services.beginnings.wait()
        await recall(turn.context, services.recall, emit)
        end = await services.run_turn(scope, services.model, tools(), turn.context, limits, emit)
    except asyncio.CancelledError:
        end = TurnEnd("cancelled")
    except Exception as error:
        services.report_bug("turn", error)
        text = (
            "The sidecar failed inside this turn; the log has the details. "
            "The conversation is intact: send the prompt again."
        )
        end = TurnEnd("error", failure("InternalError", text))
    await ended(end)


def _next_round(goal: GoalCheck | None, hooked: NextRound | None) -> NextRound | None:
    """Return what may make a turn go on: its goal, and once that is reached the user's hooks."""
    if goal is None or hooked is None:
        return hooked if goal is None else goal.next_round

    async def following() -> Incoming | ErrorInfo | None:
        return await goal.next_round() or await hooked()

    return following


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
    stream.hold_end()
    try:
        steering = context.take_steering()
        for incoming in (*_refused(context, stream, steering), *steering):
            message = write_incoming(context, incoming, services.new_id)
            report_message(stream, message, turn.id)
    except KodeError as error:
        stream.not_saved(error)
    totals.add(context.totals)  # with what was written only now
    report_usage(totals, stream, context.use)
    services.budgets.model.sum_up(context.session_id)
    spent = context.totals
    completed = TurnCompleted(
        turn_id=turn.id,
        stop_reason=end.stop_reason,
        usage=spent.usage,
        context=context.use,
        cost=spent.cost,
        cost_usd=spent.cost_usd,
        duration_ms=round((services.clock.monotonic() - turn.started) * 1000),
        error=end.error,
        attention=_attention(end),
        estimated=spent.estimated,
    )
    stream(completed)
    return completed


def _attention(end: TurnEnd) -> Attention | None:
    """Return what the user is notified of: not of the end that they made themselves."""
    if end.stop_reason == "cancelled":
        return None
    return "failed" if end.error else "done"


def _refused(context: TurnContext, emit: Emit, steering: Sequence[Incoming]) -> Sequence[Incoming]:
    """Write what the disk refused above these words; the results of its calls, which never ran."""
    message = context.commit_refused() if steering else None
    if message is None:
        return ()
    emit(message_completed(message, context.turn_id))
    results = tuple(unanswered(call, _NEVER_RAN) for call in message.calls)
    return (Incoming("tool", results, {}),) if results else ()


def report_usage(totals: Totals, emit: Emit, use: ContextUse | None) -> None:
    """Emit what the session has cost so far, and how full the window is."""
    emit(UsageUpdated(usage=totals.usage, context=use, cost=totals.cost, cost_usd=totals.cost_usd))
