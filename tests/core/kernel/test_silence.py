"""The user hears of a silent model, and only of that (W9)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from kode_sidecar.core.domain.agent_event import BlockDelta, Event, MessageCompleted, ModelWaiting
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    RequestHeld,
    RequestSent,
    ResponseFinished,
    ResponseStarted,
    RetryPlanned,
    TextDelta,
)
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import ModelRequest
from tests.support.turn_world import LIMITS, MemoryContext, Recorder, scope

HANG_CEILING = 20.0
TOLD_AFTER = 0.01


class LoopClock:
    def timestamp(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Pausing:
    """Answers when it is told to."""

    def __init__(self, *, silent: bool) -> None:
        self.go_on = asyncio.Event()
        if not silent:
            self.go_on.set()

    def missing(self, model: str) -> None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        yield [ResponseStarted("r", "m")]
        await self.go_on.wait()
        yield [TextDelta("Hi")]
        yield [RetryPlanned("overloaded", 2.5, 2)]
        yield [ResponseFinished("stop", "stop")]


class Slow(Recorder):
    """A downstream that is slow, or that lets go what it waited for."""

    def __init__(self, model: Pausing, seconds: float) -> None:
        super().__init__()
        self._model = model
        self._seconds = seconds

    def __call__(self, event: Event | BlockDelta) -> int:
        seq = super().__call__(event)
        if len(self.waits()) == 3:
            self._model.go_on.set()
        return seq

    async def flow(self) -> None:
        await asyncio.sleep(self._seconds)

    def waits(self) -> list[ModelWaiting]:
        found = [event for event in self.seen if isinstance(event, ModelWaiting)]
        return [event for event in found if event.state == "silent"]


async def run(model: Pausing, emit: Slow) -> None:
    reported = replace(scope(), clock=LoopClock(), silence_seconds=TOLD_AFTER)
    async with asyncio.timeout(HANG_CEILING):
        await run_turn(reported, model, (), MemoryContext(), LIMITS, emit)


async def test_a_silence_is_told_again_and_again_until_it_ends() -> None:  # W9
    model = Pausing(silent=True)
    emit = Slow(model, 0)
    await run(model, emit)
    first, second, *_ = emit.waits()
    assert first.turn_id == "t"
    assert first.silent_ms is not None
    assert second.silent_ms is not None
    assert second.silent_ms > first.silent_ms >= TOLD_AFTER * 1000
    assert isinstance(emit.seen[-1], MessageCompleted), "nothing is told after the answer"


async def test_a_slow_reader_is_not_the_models_silence() -> None:
    emit = Slow(Pausing(silent=False), TOLD_AFTER * 4)
    await run(Pausing(silent=False), emit)
    assert emit.waits() == []


async def test_a_further_attempt_is_told() -> None:  # W9
    emit = Slow(Pausing(silent=False), 0)
    await run(Pausing(silent=False), emit)
    (retry,) = [event for event in emit.seen if isinstance(event, ModelWaiting)]
    assert (retry.state, retry.retry_in_ms, retry.attempt) == ("retrying", 2500, 2)
    assert retry.message == "overloaded"


class Held(Pausing):
    """A host that lets the request go only after a while."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        yield [RequestHeld("limited", "three a minute", 40.0)]
        await asyncio.sleep(TOLD_AFTER * 5)
        yield [RequestSent()]
        await self.go_on.wait()
        yield [ResponseStarted("r", "m"), TextDelta("Hi"), ResponseFinished("stop", "stop")]


async def test_no_model_is_silent_before_it_is_asked() -> None:
    model = Held(silent=True)
    emit = Slow(model, 0)
    await run(model, emit)
    states = [event.state for event in emit.seen if isinstance(event, ModelWaiting)]
    assert states[:2] == ["limited", "sent"]
    assert set(states[2:]) == {"silent"}


async def test_silence_behind_a_slow_reader_is_told() -> None:
    model = Pausing(silent=True)
    emit = Slow(model, seconds=5 * TOLD_AFTER)
    await run(model, emit)
    assert len(emit.waits()) >= 3
