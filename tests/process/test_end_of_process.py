"""Every way a process must end, with everything under way at once: gone, and its files whole."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.processes import LINUX, at_rest, children, gone
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.stuck_search import STUCK_SEARCH, make_stuck

pytestmark = pytest.mark.program
POSIX = sys.platform != "win32"


def propose(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


def respond(body: dict[str, Any]) -> Any:
    match user_texts(body)[-1]:
        case "stream":
            return answer(text("one "), hold("gate"), text("two"), hold("end"))
        case "search":
            return answer(tool_call("search_code", STUCK_SEARCH))
        case "apply":
            return answer(propose("app.py", "a = 1", "a = 2"))
        case _:
            return answer(propose(".vscode/tasks.json", "[]", "[1]"))


@asynccontextmanager
async def everything_under_way(
    tmp_path: Path, **handshake: Any
) -> AsyncIterator[tuple[World, list[int]]]:
    """A stream, a running child, an unanswered edit and an open question; the children's ids."""
    project = tmp_path / "project"
    (project / ".vscode").mkdir(parents=True)
    (project / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    (project / "app.py").write_bytes(b"a = 1\n")
    if POSIX:
        make_stuck(project)
    model = AnsweringModel(respond)
    async with sidecar(model=model, roots=[project], handshake=handshake) as world:
        asked: list[Any] = []

        async def never(params: Any) -> Any:
            asked.append(params)
            await asyncio.Event().wait()

        world.client.handle("workspace/applyEdit", never)
        world.client.handle("kode/permission/request", never)
        world.editor.open(project / "app.py")
        await world.start(await world.session(), "stream")
        await world.start(await world.session(mode="auto"), "apply")
        await world.start(await world.session(), "ask")
        if POSIX:
            await world.start(await world.session(), "search")
        pid = world.pid
        async with asyncio.timeout(HANG_SECONDS):
            await model.reached("gate")
            while len(asked) < 2 or (POSIX and not children(pid)):
                await world.client.request("kode/ping", {})
            every = world.watch.sessions.values()
            await world.watch.until(lambda: all(session.active_turn for session in every))
        yield world, children(pid) if POSIX else []


async def end_of_input(world: World) -> None:
    world.client.process.close_stdin()


async def exit_only(world: World) -> None:
    world.client.notify("exit")


async def shutdown_and_exit(world: World) -> None:
    assert await world.client.request("shutdown", None, HANG_SECONDS) is None
    world.client.notify("exit")


async def closed_stdout(world: World) -> None:
    stdout = world.client.process._stdout  # no client has a reason to do this
    stdout._transport.close()  # type: ignore[attr-defined]
    world.model.release("gate")  # something to write


def signalled(name: str) -> Callable[[World], Awaitable[None]]:
    async def send(world: World) -> None:
        os.kill(world.client.process.pid, getattr(signal, name))

    return send


WAYS: list[tuple[str, Callable[[World], Awaitable[None]], int]] = [
    ("end of input", end_of_input, 1),
    ("exit without shutdown", exit_only, 1),
    ("shutdown and exit", shutdown_and_exit, 0),
    ("stdout closed", closed_stdout, 1),
    *((name, signalled(name), 1) for name in ("SIGTERM", "SIGINT", "SIGHUP") if POSIX),
]


@pytest.mark.parametrize(("end", "code"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
async def test_everything_is_gone(
    tmp_path: Path, end: Callable[[World], Awaitable[None]], code: int
) -> None:  # W2 W4
    async with everything_under_way(tmp_path) as (world, started):
        await end(world)
        await assert_gone(world, started, code)


async def test_the_editor_process_is_gone(tmp_path: Path) -> None:  # W4
    waiting = (sys.executable, "-c", "input()")
    editor = await asyncio.create_subprocess_exec(*waiting, stdin=asyncio.subprocess.PIPE)
    async with everything_under_way(tmp_path, process_id=editor.pid) as (world, started):
        await editor.communicate(b"\n")
        await assert_gone(world, started, 1)


@pytest.mark.skipif(not LINUX, reason="processor time is read from /proc")
async def test_who_waits_uses_no_processor(tmp_path: Path) -> None:  # W4
    async with everything_under_way(tmp_path) as (world, _):
        async with asyncio.timeout(HANG_SECONDS):
            await at_rest(world.pid)


async def assert_gone(world: World, started: list[int], code: int) -> None:
    """The process with this exit code, its children, and each turn closed on disk."""
    assert await world.client.process.wait(HANG_SECONDS) == code
    for child in started:
        assert await asyncio.to_thread(gone, child, HANG_SECONDS)
    assert len(world.watch.sessions) == 3 + POSIX
    for session in world.watch.sessions.values():
        assert_whole(world, session)


def assert_whole(world: World, session: SessionFold) -> None:
    """What is on disk can be read, and says that the turn was cancelled."""
    journal = world.journal(session)
    assert [event["seq"] for event in journal] == list(range(1, len(journal) + 1))
    assert (journal[-1]["type"], journal[-1]["stopReason"]) == ("turn.completed", "cancelled")
    kinds = [event["type"] for event in journal]
    assert kinds.count("turn.completed") == 1
    assert kinds.count("block.started") == kinds.count("block.completed")
    assert kinds.count("permission.requested") == kinds.count("permission.resolved")
    blocks = [block for message in world.messages(session) for block in message["content"]]
    asked = [block["tool_use_id"] for block in blocks if block["type"] == "tool_use"]
    assert asked == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert session.seq <= len(journal)
