"""Sessions of earlier processes opened again: snapshot, replay, locks, forks."""

from pathlib import Path
from typing import Any

import pytest

from tests.process.test_sessions import ask, refused
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, sidecar

Json = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\r\nprint('ho')\r\n")
    return folder


async def test_first(project: Path) -> None:
    responses = [answer(text("one")), answer(tool_call("read_file", {"path": "app.py"})), answer(text("two"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(title="x")
        await world.turn(session, "first")
        live = await ask(world, "session/attach", sessionId=session.session_id)
    async with sidecar(responses[1:], roots=[project]) as world:
        again = await ask(world, "session/attach", sessionId=session.session_id)
        assert again == live
        fold = world.watch.session(session.session_id, again["seq"])
        turn = await world.turn(fold, "second")
        assert turn.stop_reason == "end_turn"
        assert [m["content"] for m in world.asked()["messages"] if m["role"] == "user"] == ["first", "second"]
