"""Turns as LSP's work-done progress (LSP 3.17 "Work Done Progress")."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

CREATE = "window/workDoneProgress/create"
LISTS = tool_call("list_files", {"directory": "."})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\n")
    return folder


def reported(world: World) -> list[Any]:
    """What the editor was told of progress, between the start and the end of turns."""
    found: list[Any] = []
    for frame in world.client.frames:
        message: Any = frame.message() if frame.direction == "in" else {}
        params: Any = message.get("params")
        if message.get("method") == "$/progress":
            found.append((params["token"], params["value"]["kind"]))
        elif message.get("method") == CREATE:
            found.append((params["token"], "create"))
        elif message.get("method") == "kode/event":
            events = params["events"]
            found += [(e["turnId"], e["type"]) for e in events if e["type"][:5] == "turn."]
    return found


def progress_values(world: World) -> list[dict[str, Any]]:
    frames = [frame.message() for frame in world.client.frames if frame.direction == "in"]
    return [f["params"]["value"] for f in frames if f.get("method") == "$/progress"]


async def test_a_turn_is_a_progress(project: Path) -> None:  # O2
    responses = [answer(text("I look."), hold("gate"), LISTS), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: (turn_id, "begin") in reported(world), HANG_SECONDS)
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert reported(world) == [
            (turn_id, "turn.started"),
            (turn_id, "create"),
            (turn_id, "begin"),
            (turn_id, "report"),
            (turn_id, "end"),
            (turn_id, "turn.completed"),
        ]
        begin, report, _ = progress_values(world)
        assert begin == {"kind": "begin", "title": "kode", "cancellable": True}
        tool = list(session.messages.values())[2]
        assert report["message"] == tool.blocks[0].block["summary"]


async def test_its_cancel_button_cancels_that_turn_only(project: Path) -> None:  # O8
    responses = [answer(text("a"), hold("gate"), text("b")), answer(text("after"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: (turn_id, "begin") in reported(world), HANG_SECONDS)
        await world.model.reached("gate")
        for token in ("another", 7, turn_id):
            world.client.notify("window/workDoneProgress/cancel", {"token": token})
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert reported(world)[-2:] == [(turn_id, "end"), (turn_id, "turn.completed")]
        world.client.notify("window/workDoneProgress/cancel", {"token": turn_id})
        assert (await world.turn(session, "again")).stop_reason == "end_turn"


async def test_a_client_that_refuses_or_never_answers_hears_nothing(project: Path) -> None:
    never = asyncio.Event()

    async def refuse(_params: Any) -> None:
        raise RpcError(-32603, "no")

    async def wait(_params: Any) -> None:
        await never.wait()

    for manner in (refuse, wait):
        async with sidecar([answer(LISTS), answer(text("done"))], roots=[project]) as world:
            world.client.handle(CREATE, manner)
            session = await world.session()
            assert (await world.turn(session, "go")).stop_reason == "end_turn"
            assert progress_values(world) == []


async def test_a_token_that_is_agreed_to_after_the_turn_is_closed(project: Path) -> None:
    over = asyncio.Event()

    async def agree_late(_params: Any) -> None:
        await over.wait()

    async with sidecar([answer(text("quick"))], roots=[project]) as world:
        world.client.handle(CREATE, agree_late)
        session = await world.session()
        turn_id = (await world.turn(session, "go")).id
        assert reported(world)[-1] == (turn_id, "turn.completed")
        over.set()
        await world.watch.until(lambda: (turn_id, "end") in reported(world), HANG_SECONDS)
        assert reported(world)[-2:] == [(turn_id, "begin"), (turn_id, "end")]


async def test_a_client_without_progress_is_not_asked(project: Path) -> None:
    capabilities: dict[str, Any] = {"capabilities": {"window": {}}}
    async with sidecar([answer(text("x"))], roots=[project], handshake=capabilities) as world:
        session = await world.session()
        turn = await world.turn(session, "go")
        assert [kind for _, kind in reported(world)] == ["turn.started", "turn.completed"]
        assert turn.stop_reason == "end_turn"
