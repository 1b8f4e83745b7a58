"""Findings of a code review over ACP: in the card of the call, with places to follow."""

from pathlib import Path

import pytest

from tests.support.acp_world import acp_world
from tests.support.review_model import FAULT, changed_project, reviewing_model, reviews


async def test_a_review_shows_its_findings_with_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_project(tmp_path / "project")
    model = reviewing_model(reviews(), lambda _: [FAULT])
    async with acp_world(tmp_path, monkeypatch, model=model) as world:
        client = world.client
        session_id = await client.new(world.project)
        end = await client.prompt(session_id, "/review")
        assert end["stopReason"] == "end_turn"
        (call,) = client.of_kind("tool_call")
        assert call["title"] == "Review"
        shown = {
            key: value for one in client.of_kind("tool_call_update") for key, value in one.items()
        }
        assert shown["status"] == "completed"
        assert shown["locations"] == [{"path": str(world.project / "app.py"), "line": 3}]
        (content,) = shown["content"]
        assert content["content"]["text"].splitlines() == [
            "1 finding (1 error)",
            "",
            "**app.py**",
            "- error `f1` line 3: The last item is not counted",
            "  total([1]) is 0.",
        ]
