"""Findings of a code review over ACP: in the card of the call, with places to follow."""

from pathlib import Path

import pytest

from tests.support.acp_client import AcpClient, AcpError
from tests.support.acp_world import acp_world
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import (
    AFTER,
    FAULT,
    INFO,
    NEW,
    OLD,
    changed_project,
    reviewing_model,
    reviews,
)


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


def answered(client: AcpClient) -> str:
    """What was said since the last call."""
    said = client.said()
    client.updates.clear()
    return said


async def test_the_whole_loop_of_a_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By commands with the numbers of the list: explain, dismiss, fix, and review again."""
    changed_project(tmp_path / "project")
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": OLD, "new": NEW}]})
    main = [
        *(*reviews(), answer(text("It leaves one out."))),
        *(answer(tool_call("read_file", {"path": "app.py"})), answer(edit), answer(text("Done."))),
        *reviews(),
    ]
    found = [[FAULT, INFO], [INFO]]
    model = reviewing_model(main, lambda _: found.pop(0))
    async with acp_world(tmp_path, monkeypatch, model=model) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "/review")
        await client.prompt(session_id, "/review explain 1 in one sentence")
        assert "It leaves one out." in client.said()
        prompt = str(world.asked()["messages"][-2:])
        assert "Explain this finding. in one sentence" in prompt
        assert "total([1]) is 0." in prompt
        asked = len(model.chats)
        answered(client)

        await client.prompt(session_id, "/review dismiss f2 types come later")
        assert answered(client).splitlines() == [
            "`f2` is dismissed: types come later",
            "",
            "",
            "**app.py**",
            "- error `f1` line 3: The last item is not counted",
            "  total([1]) is 0.",
        ]
        with pytest.raises(AcpError, match="There is no finding f9; known: f1, f2"):
            await client.prompt(session_id, "/review done 9")
        assert len(model.chats) == asked  # no turn for what the user decides

        await client.prompt(session_id, "/review fix 1")
        (permission,) = client.permissions()
        assert permission["toolCall"]["kind"] == "edit"
        assert (world.project / "app.py").read_text("utf-8") == AFTER.replace(OLD, NEW)

        client.updates.clear()
        await client.prompt(session_id, "/review again")
        card = client.of_kind("tool_call_update")[-1]
        assert card["content"][0]["content"]["text"] == "0 findings; 1 fixed"
        await client.prompt(session_id, "/review open 2")
        assert "- info `f2` line 5: No type" in client.said()
