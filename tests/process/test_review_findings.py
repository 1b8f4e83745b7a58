"""Findings of a review on the wire: listed, decided, followed, fixed, kept when it is stopped."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.reviews import read_review
from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.review_model import (
    AFTER,
    FAULT,
    changed_project,
    review,
    reviewing_model,
    reviews,
)
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return changed_project(tmp_path / "project")


async def listed(world: World, session: SessionFold) -> list[dict[str, Any]]:
    answered = await world.client.request(
        "kode/review/list", {"sessionId": session.session_id}, HANG_SECONDS
    )
    return answered["findings"]


def is_saved(world: World) -> bool:
    """Whether the end of a review was reported."""
    said = [one for one in world.events() if one["type"] == "review.updated"]
    return any(not one.get("running") for one in said)


async def test_clients_get_findings_and_decide_on_them(project: Path) -> None:
    main = reviews()
    async with sidecar(model=reviewing_model(main, lambda _: [FAULT]), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        await review(world, session)
        (found,) = session.session.findings
        assert await listed(world, session) == [found]
        assert (found["findingId"], found["state"], found["news"]) == ("f1", "open", "new")
        assert found["uri"] == (project / "app.py").as_uri()
        line = AFTER.split("\n")[2]
        assert found["range"] == {
            "start": {"line": 2, "character": 0},
            "end": {"line": 2, "character": len(line)},
        }
        place = {"sessionId": session.session_id, "findingId": "f1"}
        decision = {**place, "state": "dismissed", "reason": "on purpose"}
        await world.client.request("kode/review/decide", decision, HANG_SECONDS)
        (found,) = await listed(world, session)
        assert (found["state"], found["reason"]) == ("dismissed", "on purpose")
        assert session.session.findings == [found]
        unknown = {**decision, "findingId": "f9"}
        with pytest.raises(RpcError, match="There is no finding f9; known: f1"):
            await world.client.request("kode/review/decide", unknown, HANG_SECONDS)
        assert session.anomalies == []


async def test_findings_follow_what_the_user_types(project: Path) -> None:
    main = reviews()
    async with sidecar(model=reviewing_model(main, lambda _: [FAULT]), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        buffer = world.editor.open(project / "app.py")
        await review(world, session)
        world.editor.type(buffer, 0, "# 茶\n\n")
        world.editor.type(buffer, buffer.text.index("    for"), "    # look\n")
        (found,) = await listed(world, session)
        assert found["range"]["start"]["line"] == 5
        world.editor.type(buffer, 0, "# all is new\n", delete=len(buffer.text))
        (found,) = await listed(world, session)
        assert "range" not in found


async def test_a_finding_is_fixed_by_a_turn_about_it(project: Path) -> None:
    old, new = "for i in range(len(items) - 1):", "for i in range(len(items)):"
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": old, "new": new}]})
    main = [*reviews(), answer(tool_call("read_file", {"path": "app.py"})), answer(edit)]
    main.append(answer(text("Proposed.")))
    model = reviewing_model(main, lambda _: [FAULT])
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session(agent="reviewer", mode="review")
        await review(world, session)
        asked = {"sessionId": session.session_id, "findingIds": ["f1"], "prompt": "Fix it."}
        started = await world.client.request("kode/review/ask", asked, HANG_SECONDS)
        await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
        (hunk,) = session.session.hunks.values()
        assert hunk["newText"].strip() == new
        prompt = str(model.chats[-1].body["messages"])
        assert "Fix it." in prompt
        assert "total([1]) is 0." in prompt
        assert session.anomalies == []


async def test_a_stopped_review_keeps_what_it_has_found(project: Path) -> None:
    for number in range(20):
        (project / f"n{number:02}.py").write_bytes(b"x = 1\n")
    gate = "second part"

    def reports(asked: str) -> list[dict[str, Any]] | RecordedResponse:
        return [FAULT] if '"app.py"' in asked else answer(hold(gate))

    async with sidecar(model=reviewing_model(reviews(), reports), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        turn_id = await world.start(session, "Review.")
        await world.watch.until(lambda: bool(session.session.findings), HANG_SECONDS)
        assert [one["findingId"] for one in session.session.findings] == ["f1"]
        assert await listed(world, session) == []  # the rest is still read
        cancelled = {"sessionId": session.session_id}
        await world.client.request("kode/turn/cancel", cancelled, HANG_SECONDS)
        end = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert end.stop_reason == "cancelled"
        await world.watch.until(lambda: is_saved(world), HANG_SECONDS)
        assert [one["findingId"] for one in await listed(world, session)] == ["f1"]
        record = read_review(world.folder(session))
        assert record is not None
        assert record.missed == 13
        assert {line.split(": ")[1] for line in record.not_reviewed} == {"the review was stopped"}
