"""One member of an event says that the user is wanted: done, blocked or failed. F16"""

from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, failure, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

ASKS = answer(tool_call("ask_user", {"question": "Where?", "choices": ["here", "there"]}))
EDITS = answer(
    tool_call("propose_edit", {"path": "a.py", "edits": [{"old": "n = 1", "new": "n = 2"}]})
)
SENSITIVE = answer(
    tool_call("propose_edit", {"path": ".vscode/tasks.json", "edits": [{"old": "1", "new": "2"}]})
)
DONE = answer(text("ok"))


def wanted(world: World) -> list[tuple[str, str]]:
    """The events for which the user is wanted, with the reason."""
    return [(one["type"], one["attention"]) for one in world.events() if "attention" in one]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("n = 1\n")
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "tasks.json").write_text("1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("script", "mode", "events"),
    [
        ([DONE], "review", [("turn.completed", "done")]),
        ([ASKS, DONE], "review", [("ask.requested", "blocked"), ("turn.completed", "done")]),
        (
            [SENSITIVE, DONE],
            "review",
            [("permission.requested", "blocked"), ("turn.completed", "done")],
        ),
        ([failure(400, "bad", "no")], "review", [("turn.completed", "failed")]),
    ],
    ids=["done", "choice", "permission", "failed"],
)
async def test_the_user_is_wanted(project: Path, script: Any, mode: str, events: Any) -> None:
    async with sidecar(script, roots=[project]) as world:
        session = await world.session(mode=mode)
        await world.turn(session, "go")
        assert wanted(world) == events


async def test_a_call_that_waits_for_decisions_wants_the_user_and_a_stop_does_not(
    project: Path,
) -> None:
    async with sidecar([EDITS, DONE], roots=[project]) as world:
        session = await world.session(mode="ask")
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: wanted(world), HANG_SECONDS)
        params = {"sessionId": session.session_id}
        await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert wanted(world) == [("decision.requested", "blocked")]


async def test_what_a_rule_decides_wants_nobody(project: Path) -> None:
    async with sidecar([SENSITIVE, DONE], roots=[project]) as world:
        session = await world.session()
        rule = {"tool": "propose_edit", "pattern": ".vscode/tasks.json", "effect": "deny"}
        params = {"sessionId": session.session_id, **rule}
        await world.client.request("kode/permission/set", params, HANG_SECONDS)
        await world.turn(session, "go")
        assert "permission.requested" in {one["type"] for one in world.events()}
        assert wanted(world) == [("turn.completed", "done")]
