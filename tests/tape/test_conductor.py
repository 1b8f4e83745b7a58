"""Inputs come in in the order of the recording, when all is said that came before them."""

import asyncio
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from kode_sidecar.recording.conductor import Conductor
from kode_sidecar.recording.one_by_one import OneByOne
from kode_sidecar.recording.strands import Strands
from kode_sidecar.recording.transcript import (
    AlarmRang,
    Arrived,
    Ended,
    FrameIn,
    FrameOut,
    Opened,
    TapeLine,
    WorkDone,
)

AGENTS = ("one", "two", "three")


def out(name: str) -> FrameOut:
    return FrameOut(frame=Raw(json.dumps({"method": f"x/{name}", "params": {}}).encode()))


async def settle(inputs: OneByOne) -> None:
    """Until nothing is left to do. Two `inputs` would keep each other busy."""
    for _ in range(4):
        async with asyncio.timeout(60):
            await inputs.turn()


@given(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=12))
async def test_answers_that_race_come_as_they_came(order: Sequence[str]) -> None:
    """Each of three readers reads as fast as it can; what they get interleaves as recorded."""
    lines: list[TapeLine] = [
        Arrived(t=number, agent=agent, ask=1, text=f"{number}")
        for number, agent in enumerate(order)
    ]
    inputs = OneByOne()
    conductor = Conductor(lines, inputs)
    heard: list[str] = []

    async def read(agent: str) -> None:
        while (line := await conductor.next_of(agent, 1)) is not None:
            assert isinstance(line, Arrived)
            heard.append(line.text or "")

    async with asyncio.timeout(60):
        await asyncio.gather(*(read(agent) for agent in reversed(AGENTS)))
    await settle(inputs)  # the next example has the same loop
    assert heard == [str(number) for number in range(len(order))]
    assert conductor.now == len(order) - 1


async def test_the_next_input_waits_for_what_was_said_before_it() -> None:
    lines: list[TapeLine] = [
        Opened(t=1, agent="a", ask=1, status=200),
        out("first"),
        out("second"),
        Ended(t=2, agent="a", ask=1),
    ]
    inputs = OneByOne()
    conductor = Conductor(lines, inputs)
    assert isinstance(await conductor.next_of("a", 1), Opened)
    ended = asyncio.create_task(conductor.next_of("a", 1))
    strands = Strands()
    for name in ("second", "first"):  # in any order: these are two strands
        await settle(inputs)
        assert not ended.done()
        conductor.said([*strands.said(bytes(out(name).frame))])
    await settle(inputs)
    assert isinstance(ended.result(), Ended)


async def test_a_frame_that_comes_early_waits_for_its_turn() -> None:
    frame = FrameIn(t=2, frame=Raw(b'{"method":"x"}'))
    inputs = OneByOne()
    conductor = Conductor([Arrived(t=1, agent="a", ask=1, text="x"), frame], inputs)
    woken: list[str] = []
    conductor.on_frame = lambda: woken.append("look again")
    assert not conductor.frame_may_come()
    await conductor.next_of("a", 1)
    await settle(inputs)
    assert woken
    assert conductor.frame_may_come()
    assert conductor.now == 2
    assert conductor.frame_may_come()  # beyond the recording nobody waits


async def test_a_deadline_rings_in_its_place_and_not_when_it_was_taken_back() -> None:
    lines: list[TapeLine] = [
        Arrived(t=1, agent="a", ask=1, text="x"),
        AlarmRang(t=600, name="deadline"),
        Arrived(t=601, agent="a", ask=1, text="y"),
    ]
    for taken_back in (False, True):
        inputs = OneByOne()
        conductor = Conductor(lines, inputs)
        rung: list[float] = []
        unset = conductor.set_alarm("deadline", lambda c=conductor, r=rung: r.append(c.now))
        assert rung == []
        if taken_back:
            unset()
        await conductor.next_of("a", 1)
        await settle(inputs)
        assert rung == ([] if taken_back else [600])


async def test_what_nobody_wants_any_more_holds_up_nobody() -> None:
    lines: list[TapeLine] = [
        Arrived(t=1, agent="a", ask=1, text="unread"),
        Arrived(t=2, agent="b", ask=1, text="read"),
    ]
    inputs = OneByOne()
    conductor = Conductor(lines, inputs)
    reading = asyncio.create_task(conductor.next_of("b", 1))
    await settle(inputs)
    assert not reading.done()
    conductor.skip("a", 1)
    await settle(inputs)
    assert isinstance(reading.result(), Arrived)
    assert await conductor.next_of("a", 1) is None
    await settle(inputs)


async def test_a_save_is_done_when_it_was_done() -> None:
    lines: list[TapeLine] = [
        WorkDone(t=1, name="save 1"),
        Arrived(t=2, agent="a", ask=1, text="x"),
        WorkDone(t=3, name="save 2"),
    ]
    inputs = OneByOne()
    conductor = Conductor(lines, inputs)
    second = asyncio.create_task(conductor.work_done("save 2"))
    given_up = asyncio.create_task(conductor.work_done("save 3"))
    assert await conductor.work_done("save 1")
    await settle(inputs)
    assert not second.done()
    await conductor.next_of("a", 1)
    async with asyncio.timeout(60):
        assert await second
        assert await given_up  # the recording is over: nothing holds it up any more
    assert conductor.now == 3
    await settle(inputs)
    silent = Conductor([Arrived(t=1, agent="a", ask=1, text="x")], OneByOne())
    assert not await silent.work_done("save 1")


async def test_an_input_enters_when_the_one_before_it_has_had_its_effect() -> None:
    inputs, seen = OneByOne(), list[str]()

    async def consequences(name: str) -> None:
        await inputs.turn()
        for step in range(9):
            seen.append(f"{name} {step}")
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(consequences(name) for name in ("a", "b", "c")))
    assert seen == [f"{name} {step}" for name in ("a", "b", "c") for step in range(9)]
