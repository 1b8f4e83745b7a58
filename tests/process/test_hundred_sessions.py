"""A hundred sessions stream at once: the loop answers, few files are open, memory stays small."""

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import pytest

from kode_sidecar.agent.turns.services import Beginnings
from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.infrastructure.records.messages import StorageName
from tests.conftest import Played
from tests.support.model_script import DemoText, answer, hold
from tests.support.pings import Pings, percentile
from tests.support.processes import at_rest, memory, open_files
from tests.support.sidecar import HANG_SECONDS, sidecar
from tests.support.strace import LINUX_ONLY

pytestmark = [pytest.mark.program, LINUX_ONLY]

SESSIONS, DELTAS, PAUSE_MS = 100, 50, 40.0
MOST_BYTES = 150 * 2**20
# SQLite opens a connection for the first commit after a rest, 0.7 ms. Aim: as lines.
MOST_PING_SECONDS = {"jsonl": 0.25, "sqlite": 0.4}


def files_of(pid: int, home: Path) -> Counter[str]:
    """What is open of the sessions; a connection to the model is none of it."""
    places = [Path(one) for one in open_files(pid).values()]
    mine = [one for one in places if home / "conversations" in one.parents]
    # A time is written at leisure: a `.tmp`, and its folder, which is flushed.
    return Counter(one.name for one in mine if one.suffix != ".tmp" and not one.is_dir())


async def test_a_hundred_sessions_at_once(
    tmp_path: Path, storage: StorageName, played: Played
) -> None:
    words = tuple(f"wort {number} 茶 " for number in range(DELTAS))
    halves = answer(DemoText(words), hold("half"), DemoText(words), delay_ms=PAUSE_MS)
    model = ModelServer(Recording(()), script=lambda _: halves)
    async with sidecar(model=model, roots=[tmp_path]) as world:
        sessions = [await world.session() for _ in range(SESSIONS)]
        await at_rest(world.pid)
        before = files_of(world.pid, world.home)
        began = perf_counter()
        async with Pings(world) as at_first:
            ids = await asyncio.gather(*(world.start(one, "go") for one in sessions))
            async with asyncio.timeout(HANG_SECONDS):
                while len(world.model.chats) < SESSIONS:  # noqa: ASYNC110 - until all stream
                    await asyncio.sleep(0.01)
        await at_rest(world.pid)
        streaming = files_of(world.pid, world.home)
        async with Pings(world) as pings:
            world.model.release("half")
            ends = zip(sessions, ids, strict=True)
            turns = [world.watch.turn_end(one.session_id, turn, HANG_SECONDS) for one, turn in ends]
            assert {one.stop_reason for one in await asyncio.gather(*turns)} == {"end_turn"}
        took = perf_counter() - began
        reported = {world.messages(one)[-1]["content"][0]["text"] for one in sessions}
        assert reported == {"".join(words) * 2}, "nothing is lost"
        await at_rest(world.pid)
        most, after = memory(world.pid, "VmHWM"), files_of(world.pid, world.home)
    played(SESSIONS * DELTAS * 2, f"deltas of {SESSIONS} sessions at once, {storage}")
    print(  # noqa: T201
        f"{storage}: {took:.1f} s; all begin in one moment: {at_first}; they stream: "
        f"{pings}; {most / 2**20:.0f} MB; files of sessions: "
        f"{dict(before)} at first, {dict(streaming)} while they stream, {dict(after)} afterwards"
    )
    assert most < MOST_BYTES
    assert streaming.total() <= 2 * SESSIONS
    assert before == after == {"lock": SESSIONS}, "one that rests has its lock alone"
    assert percentile(at_first.worked) < MOST_PING_SECONDS[storage]
    assert percentile(pings.worked) < MOST_PING_SECONDS[storage]


async def test_turns_that_wait_to_begin_are_cancelled_at_once(tmp_path: Path) -> None:
    model = ModelServer(Recording(()), script=lambda _: answer(DemoText(("word",)), hold("never")))
    async with sidecar(model=model, roots=[tmp_path]) as world:
        sessions = [await world.session() for _ in range(SESSIONS)]
        ids = [asyncio.create_task(world.start(one, "go")) for one in sessions]
        await asyncio.sleep(0)  # they are sent, and nothing waits for their answers
        cancels = [
            world.client.request("kode/turn/cancel", {"sessionId": one.session_id}, HANG_SECONDS)
            for one in sessions
        ]
        assert {done["cancelled"] for done in await asyncio.gather(*cancels)} == {True}
        ends = zip(sessions, await asyncio.gather(*ids), strict=True)
        turns = [world.watch.turn_end(one.session_id, turn, HANG_SECONDS) for one, turn in ends]
        assert {one.stop_reason for one in await asyncio.gather(*turns)} == {"cancelled"}
        assert len(world.model.chats) < SESSIONS, "some did not begin"


async def test_turns_begin_in_order_and_one_alone_does_not_wait() -> None:
    beginnings, rounds, begun = Beginnings(), 0, dict[int, int]()

    async def begin(number: int) -> None:
        await beginnings.wait()
        begun[number] = rounds

    tasks = [asyncio.create_task(begin(number)) for number in range(6)]
    await asyncio.sleep(0)
    assert begun == {0: 0}
    tasks[2].cancel()
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        rounds += 1
    assert list(begun) == [0, 1, 3, 4, 5]
    assert all(later - sooner > 1 for sooner, later in pairwise(begun.values()))
    for _ in range(20):
        await asyncio.sleep(0)
    alone = beginnings.wait()
    with pytest.raises(StopIteration):
        alone.send(None)
