"""Output under pressure: a client that does not read, stderr nobody drains, strays (W2, W3)."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from kode_sidecar.terminal.client.connection import Call
from tests.conftest import FULL
from tests.support.fsync_gate import with_faults
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.processes import LINUX, at_rest, children, gone, memory, open_files, program
from tests.support.program import BUILT, SERVE
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.stream_rules import breaches
from tests.support.stuck_search import STUCK_SEARCH, make_stuck

pytestmark = pytest.mark.program
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")

MEGABYTE = 1 << 20
DELTAS = 200_000 if FULL else 20_000
TEXT_BYTES = 1_600_000


async def settled(world: World) -> None:
    """All that can happen without the client's reading has happened."""
    if LINUX:
        await at_rest(world.pid)
    else:
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.chats[-1].finished.wait()


async def everything_loaded(world: World) -> None:
    """The standard lane is there, so nothing more will be imported."""
    await world.client.request("workspace/executeCommand", {"command": "kode.doctor"}, HANG_SECONDS)


async def test_a_client_that_stops_reading_loses_nothing(tmp_path: Path) -> None:  # W2
    size = TEXT_BYTES // DELTAS
    words = "".join(f"{number:0{size}d}" for number in range(DELTAS))
    responses = [answer(text("warm")), answer(text(words, size=size))]
    async with sidecar(responses, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "warm up")
        await everything_loaded(world)
        pid = world.pid
        before = memory(pid) if LINUX else 0
        start = world.client.start(
            "kode/turn/start",
            {"sessionId": session.session_id, "input": [{"type": "text", "text": "go"}]},
        )
        world.client.process.pause_reading()
        await settled(world)
        pings: list[Call] = []
        for number in range(200):
            pings.append(world.client.start("kode/ping", {"echo": number}))
            if FULL:
                await asyncio.sleep(0.05)  # ten seconds in all: that is the requirement
        await settled(world)
        assert not any(ping.answer.done() for ping in pings)
        frames = len(world.client.frames)
        world.client.process.resume_reading()
        async with asyncio.timeout(HANG_SECONDS):
            turn_id = (await start.answer)["turnId"]
            echoes = [(await ping.answer)["echo"] for ping in pings]
        assert echoes == list(range(200))
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert list(session.messages.values())[-1].text == words
        assert session.anomalies == []
        assert breaches(world.client.frames) == []
        assert len(world.client.frames) - frames < 2_000  # merged
        if LINUX:
            assert memory(pid, "VmHWM") - before < 20 * MEGABYTE
        else:
            print("NOT RUN: memory is read from /proc")  # noqa: T201


async def test_cancel_reaches_a_process_nobody_reads_from(tmp_path: Path) -> None:  # W2
    words = "x" * 2 * MEGABYTE
    responses = [answer(text(words, size=1000), hold("gate")), answer(text("ok"))]
    roomy = {"KODE_CONTEXT_WINDOW": "10000000"}  # or the answer would have to be summed up
    async with sidecar(responses, roots=[tmp_path], environment=roomy) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        world.client.process.pause_reading()
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
            if LINUX:
                await at_rest(world.pid)  # it waits for the client now
            params = {"sessionId": session.session_id}
            cancel = world.client.start("kode/turn/cancel", params)
            await world.model.chats[0].finished.wait()  # the model's host sees it at once
        assert world.model.chats[0].outcome == "client_gone"
        world.client.process.resume_reading()
        assert await cancel.answer == {"cancelled": True}
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert (await world.turn(session, "go on")).stop_reason == "end_turn"
        reported = [m["content"] for m in world.asked()["messages"] if m["role"] == "assistant"]
        shown = [m.text for m in session.messages.values() if m.role == "assistant"][:-1]
        assert reported == shown
        assert breaches(world.client.frames) == []


@pytest.mark.parametrize("shutdown", [False, True])
async def test_exit_of_a_process_nobody_reads_from(tmp_path: Path, shutdown: bool) -> None:  # W2
    words = "x" * 2 * MEGABYTE
    async with sidecar([answer(text(words, size=1000), hold("gate"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.start(session, "go")
        world.client.process.pause_reading()
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        if shutdown:
            world.client.start("shutdown")
        world.client.notify("exit")
        assert await asyncio.to_thread(gone, world.client.process.pid, HANG_SECONDS)
        world.client.process.resume_reading()
        assert await world.client.process.wait(HANG_SECONDS) == (0 if shutdown else 1)
        assert world.journal(session)[-1]["stopReason"] == "cancelled"


async def test_a_client_that_leaves_too_much_unread(tmp_path: Path) -> None:  # W2
    # Beyond the hard limit everything is cancelled and the process ends with code 1.
    async with sidecar([answer(text("one "), hold("gate"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        world.client.process.pause_reading()
        for _ in range(20):
            world.client.start("kode/ping", {"echo": "x" * (4 * MEGABYTE)})
        assert await asyncio.to_thread(gone, world.client.process.pid, HANG_SECONDS)
        world.client.process.resume_reading()
        assert await world.client.process.wait(HANG_SECONDS) == 1
        assert world.journal(session)[-1]["stopReason"] == "cancelled"


# Becomes the sidecar; stderr is a pipe that is open and never read.
_UNDRAINED = (
    "import os, sys; r, w = os.pipe(); os.set_inheritable(r, True); os.dup2(w, 2);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@needs_posix
async def test_stderr_that_is_not_drained(tmp_path: Path) -> None:  # W2
    command = [sys.executable, "-c", _UNDRAINED, *SERVE]
    responses = [answer(text("one "), hold("gate"), text("two"))]
    async with sidecar(responses, roots=[tmp_path], command=command) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        for number in range(5_000):  # each leaves a line there
            world.client.notify("textDocument/didOpen", {"textDocument": {"uri": number}})
        assert await world.client.request("kode/ping", {"echo": 1}, HANG_SECONDS) == {"echo": 1}
        world.model.release("gate")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert await world.client.close(HANG_SECONDS) == 0


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")
async def test_stray_output_never_reaches_the_stream(tmp_path: Path) -> None:  # W3
    environment = with_faults(KODE_TEST_STRAY="stray")
    responses = [answer(text("ok"))]
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        assert (await world.turn(session, "go")).stop_reason == "end_turn"
        assert await world.client.close(HANG_SECONDS) == 0
        assert breaches(world.client.frames) == []
        for stray in ("stray print", "stray write"):
            assert stray in world.client.process.stderr_tail
            assert not any(stray.encode() in frame.body for frame in world.client.frames)


def searches(pid: int) -> bool:
    """It runs the search itself, not the short one before it for ignore files."""
    try:
        return program(pid) == "rg" and b"--json" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # it has ended


@pytest.mark.skipif(not LINUX, reason="descriptors are read from /proc")
async def test_a_child_gets_none_of_our_streams(tmp_path: Path) -> None:  # W3
    make_stuck(tmp_path)
    responses = [answer(tool_call("search_code", STUCK_SEARCH))]
    async with sidecar(responses, roots=[tmp_path]) as world:
        session = await world.session()
        pid = world.pid
        await everything_loaded(world)
        ours = open_files(pid)
        assert ours[0] == os.devnull
        assert ours[1] == ours[2]
        await world.start(session, "search")
        async with asyncio.timeout(HANG_SECONDS):
            while not (started := [one for one in children(pid) if searches(one)]):
                await world.client.request("kode/ping")
        (child,) = started
        theirs = open_files(child)
        os.kill(child, signal.SIGKILL)
        assert theirs[0] == os.devnull
        assert not (set(theirs.values()) - {os.devnull}) & set(ours.values())
