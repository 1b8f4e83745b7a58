"""Clients show tool calls without knowing a tool: kind, title, places, and one id for a call."""

from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import path_to_uri
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, sidecar

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-n = 2\n+n = 3\n*** End Patch"


def calls(events: list[dict[str, Any]], kind: str = "block.completed") -> list[dict[str, Any]]:
    blocks = [event["block"] for event in events if event["type"] == kind]
    return [block for block in blocks if block["type"] == "tool_use"]


async def test_every_call_says_what_it_is_and_hunks_and_questions_name_it(tmp_path: Path) -> None:
    project = tmp_path / "茶 铺"
    (project / ".vscode").mkdir(parents=True)
    (project / "a.py").write_bytes(b"n = 0\nm = 1\n")
    (project / ".vscode" / "tasks.json").write_bytes(b'{"n": 0}\n')
    edit = {"path": "a.py", "edits": [{"old": "n = 0", "new": "n = 2"}]}
    asks = {"path": ".vscode/tasks.json", "edits": [{"old": "0", "new": "1"}]}
    responses = [
        answer(
            tool_call("read_file", {"path": "a.py", "start": 1, "end": 2}),
            tool_call("read_file", {"path": "../../outside"}),
            tool_call("search_code", {"query": "n\u202e=", "path": "."}),
            tool_call("read_file", {"wrong": 1}),
            tool_call("no_such_tool", {}),
        ),
        answer(tool_call("propose_edit", edit), tool_call("propose_edit", asks)),
        answer(tool_call("propose_edit", {"patch": PATCH})),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "go")
        events = world.events()
        assert [(one["kind"], one["title"]) for one in calls(events, "block.started")] == [
            ("read", "Read file"),
            ("read", "Read file"),
            ("search", "Search code"),
            ("read", "Read file"),
            ("other", "No such tool"),
            *[("edit", "Propose edit")] * 3,
        ]
        read, outside, search, wrong, unknown, first, second, patch = calls(events)
        a_py = path_to_uri(project / "a.py")
        start, end = {"line": 0, "character": 0}, {"line": 2, "character": 0}
        assert read["title"] == "Read a.py, lines 1-2"
        assert read["locations"] == [{"uri": a_py, "range": {"start": start, "end": end}}]
        assert (outside["title"], outside["locations"]) == ("Read ../../outside", [])
        assert search["title"] == 'Search "n =" in .'  # nothing hides in a title
        assert search["locations"] == [{"uri": path_to_uri(project)}]
        assert [one["title"] for one in (wrong, unknown)] == ["Read file", "No such tool"]
        assert [one["locations"] for one in (first, patch)] == [[{"uri": a_py}]] * 2
        assert (second["kind"], second["title"]) == ("edit", "Edit .vscode/tasks.json")

        results = [event["block"] for event in events if event["type"] == "block.completed"]
        results = [block for block in results if block["type"] == "tool_result"]
        whole = [read, outside, search, wrong, unknown, first, second, patch]
        assert {one["callBlockId"] for one in results} == {one["id"] for one in whole}
        reported = [event for event in events if event["type"] == "changeSet.updated"]
        hunks = [hunk for event in reported for file in event["files"] for hunk in file["hunks"]]
        by_call = [hunk["blockId"] for hunk in hunks if "oldText" in hunk]
        assert by_call == [first["id"], patch["id"]]  # nobody allowed the second
        asked = [event for event in events if event["type"].startswith("permission.")]
        assert [event["blockId"] for event in asked] == [second["id"]] * 2
        assert [question["blockId"] for question in world.editor.asked] == [second["id"]]

        listed = await world.client.request(
            "kode/tools/list", {"sessionId": session.session_id, "mode": "plan"}, HANG_SECONDS
        )
        tools = {tool["name"]: tool for tool in listed["tools"]}
        assert "propose_edit" not in tools
        assert tools["read_file"]["kind"] == "read"
        assert tools["read_file"]["readOnly"] is True
        assert "ReadFileParams" in tools["read_file"]["schema"]["$ref"]
        assert tools["ask_user"]["kind"] == "ask"
        kept = [one for one in world.messages(session) if one["role"] == "assistant"]
        assert kept[0]["content"][0]["title"] == "Read a.py, lines 1-2"
