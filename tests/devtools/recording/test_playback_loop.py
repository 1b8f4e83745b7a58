"""Inputs come in in the order of the recording, when all is said that came before them."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from kode_sidecar.devtools.recording.lanes import Lanes
from kode_sidecar.devtools.recording.playback_loop import PlaybackLoop
from kode_sidecar.devtools.recording.recorded_lines import (
    AnswerBytes,
    AnswerEnded,
    AnswerOpened,
    AnyLine,
    CallDone,
    FrameIn,
    FrameOut,
    TimerRang,
)

T = TypeVar("T")
AGENTS = ("one", "two", "three")


def out(name: str) -> FrameOut:
    return FrameOut(frame=Raw(json.dumps({"method": f"x/{name}", "params": {}}).encode()))


def say(loop: PlaybackLoop, name: str) -> None:
    loop.said([*Lanes().said(bytes(out(name).frame))])


def run(loop: PlaybackLoop, main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)


async def settle() -> None:
    """Until nothing is left to do."""
    for _ in range(9):
        await asyncio.sleep(0)


@given(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=12))
def test_answers_that_race_come_as_they_came(order: Sequence[str]) -> None:
    """Each of three readers reads as fast as it can; what they get interleaves as recorded."""
    loop = PlaybackLoop(
        [
            AnswerBytes(t=number, agent=agent, ask=1, text=f"{number}")
            for number, agent in enumerate(order)
        ]
    )
    received: list[str] = []

    async def read(agent: str) -> None:
        while (line := await loop.next_of(agent, 1)) is not None:
            assert isinstance(line, AnswerBytes)
            assert loop.time() >= line.t
            received.append(line.text or "")

    async def main() -> None:
        await asyncio.gather(*(read(agent) for agent in reversed(AGENTS)))

    run(loop, main())
    assert received == [str(number) for number in range(len(order))]


def test_the_next_input_waits_for_what_was_said_before_it() -> None:
    loop = PlaybackLoop(
        [
            AnswerOpened(t=1, agent="a", ask=1, status=200),
            out("first"),
            out("second"),
            AnswerEnded(t=2, agent="a", ask=1),
        ]
    )

    async def main() -> None:
        assert isinstance(await loop.next_of("a", 1), AnswerOpened)
        ended = asyncio.create_task(loop.next_of("a", 1))
        for name in ("second", "first"):  # in any order: these are two lanes
            await settle()
            assert not ended.done()
            say(loop, name)
        assert isinstance(await ended, AnswerEnded)

    run(loop, main())


def test_a_frame_that_comes_early_waits_for_its_turn() -> None:
    frame = FrameIn(t=2, frame=Raw(b'{"method":"x"}'))
    loop = PlaybackLoop([AnswerBytes(t=1, agent="a", ask=1, text="x"), frame])

    async def main() -> None:
        taken = asyncio.Event()
        loop.frame_is_there, loop.take_frame = lambda: True, taken.set
        assert not loop.frame_may_come()
        await loop.next_of("a", 1)
        await taken.wait()
        assert loop.frame_may_come()
        assert loop.time() >= 2
        assert loop.frame_may_come()  # beyond the recording nobody waits

    run(loop, main())


def test_a_timer_rings_in_its_place_and_not_when_it_was_taken_back() -> None:
    lines: list[AnyLine] = [
        AnswerBytes(t=1, agent="a", ask=1, text="x"),
        TimerRang(t=601, seconds=600),
        AnswerBytes(t=602, agent="a", ask=1, text="y"),
        AnswerBytes(t=603, agent="a", ask=1, text="z"),
    ]
    for taken_back in (False, True):
        loop = PlaybackLoop(lines)
        rung: list[tuple[str, float]] = []

        def note(name: str, loop: PlaybackLoop = loop, rung: Any = rung) -> None:
            rung.append((name, loop.time()))

        async def main(loop: PlaybackLoop = loop, taken_back: bool = taken_back) -> None:
            loop.call_later(599, note, "another one")
            timer = loop.call_later(600, note, "this")
            if taken_back:
                timer.cancel()
            await loop.next_of("a", 1)
            await loop.next_of("a", 1)

        run(loop, main())
        assert rung == ([] if taken_back else [("this", 601)])


def test_after_the_recording_timers_ring_when_it_is_time() -> None:
    loop = PlaybackLoop([AnswerBytes(t=5, agent="a", ask=1, text="x")])

    async def main() -> float:
        slept = asyncio.create_task(asyncio.sleep(0.05))  # it was never over in the recording
        await loop.next_of("a", 1)
        before = loop.time()
        await slept
        await asyncio.sleep(0.05)
        return loop.time() - before

    assert run(loop, main()) >= 0.05


def test_what_nobody_wants_any_more_holds_up_nobody() -> None:
    loop = PlaybackLoop(
        [
            AnswerBytes(t=1, agent="a", ask=1, text="unread"),
            AnswerBytes(t=2, agent="b", ask=1, text="read"),
        ]
    )

    async def main() -> None:
        reading = asyncio.create_task(loop.next_of("b", 1))
        await settle()
        assert not reading.done()
        loop.give_up("a", 1)
        assert isinstance(await reading, AnswerBytes)
        assert await loop.next_of("a", 1) is None

    run(loop, main())


def hello(name: str) -> str:
    return name


def test_a_call_is_over_when_it_was_over() -> None:
    loop = PlaybackLoop(
        [
            CallDone(t=1, name="hello", number=2),
            AnswerBytes(t=2, agent="a", ask=1, text="x"),
            CallDone(t=3, name="hello", number=1),
            AnswerBytes(t=4, agent="a", ask=1, text="y"),
        ]
    )

    async def main() -> None:
        first = asyncio.create_task(asyncio.to_thread(hello, "first"))
        second = asyncio.create_task(asyncio.to_thread(hello, "second"))
        assert await asyncio.to_thread(str.upper, "not recorded") == "NOT RECORDED"
        assert await second == "second"
        await loop.next_of("a", 1)
        await settle()
        assert not first.done()
        reading = asyncio.create_task(loop.next_of("a", 1))
        assert await first == "first"
        await reading

    run(loop, main())


def test_a_call_that_was_given_up_comes_in_when_nothing_else_can() -> None:
    """It is over where the recording has it, or else before all stands still."""
    loop = PlaybackLoop(
        [
            CallDone(t=1, name="hello", number=1),
            CallDone(t=2, name="somebody else", number=1),
            out("hello"),
            AnswerBytes(t=3, agent="a", ask=1, text="x"),
        ]
    )

    async def main() -> None:
        assert await asyncio.to_thread(hello, "first") == "first"
        given_up = asyncio.create_task(asyncio.to_thread(hello, "second"))
        reading = asyncio.create_task(loop.next_of("a", 1))
        assert await given_up == "second"  # what is said next may hang on it
        assert not reading.done()
        say(loop, "hello")
        await reading

    run(loop, main())


def test_an_input_that_met_a_busy_process_meets_it_again() -> None:
    """It came in the middle of what the input before it had brought about."""

    async def main(loop: PlaybackLoop) -> list[str]:
        seen: list[str] = []

        async def consequences(name: str) -> None:
            await loop.next_of(name, 1)
            for step in range(6):
                seen.append(f"{name} {step}")
                await asyncio.sleep(0)

        await asyncio.gather(*(consequences(name) for name in "ab"))
        return seen

    first, second = ([f"{name} {step}" for step in range(6)] for name in "ab")
    for rounds, expected in (
        (None, [*first, *second]),
        (0, [text for pair in zip(first, second, strict=True) for text in pair]),
        (4, ["a 0", "a 1", "a 2", "a 3", "a 4", "b 0", "a 5", "b 1", *second[2:]]),
        (99, [*first, *second]),
    ):
        lines = [
            AnswerBytes(t=1, agent="a", ask=1, text="x"),
            AnswerBytes(t=2, agent="b", ask=1, text="x", rounds=rounds),
        ]
        loop = PlaybackLoop(lines)
        assert run(loop, main(loop)) == expected, rounds
