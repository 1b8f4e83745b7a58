"""What the model has read, and what others change since: over the real process. C13"""

import asyncio
import os
import re
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

LINES = (
    "// 配置 😀 first\r\nlet 名字 = '旧 𠮷';\r\n\r\nkeep();\r\nlet end = 1;\r\n中();\r\nlast();\r\n"
)
LF = LINES.replace("\r\n", "\n")
OTHER = "a = 1\nb = 2\nc = 3\n"
TOKEN = "sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目 one"
    (folder / "node_modules" / "x").mkdir(parents=True)
    (folder / "配置.js").write_bytes(LINES.encode())
    (folder / "plain.py").write_bytes(OTHER.encode())
    (folder / "node_modules" / "x" / "lib.js").write_bytes(b"needle\n")
    return folder


def read(path: str, start: int | None = None, end: int | None = None) -> Any:
    lines = {"start": start, "end": end}
    given = {name: value for name, value in lines.items() if value is not None}
    return tool_call("read_file", {"path": path, **given})


def propose(path: str, *edits: tuple[str, str]) -> Any:
    return tool_call(
        "propose_edit", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}
    )


def changes(world: World, session: SessionFold) -> list[list[tuple[str, str]]]:
    """The files of each `freshness.changed`, in order."""
    return [
        [(file["path"], file["change"]) for file in event["files"]]
        for event in world.journal(session)
        if event["type"] == "freshness.changed"
    ]


def reported(world: World, index: int = -1) -> list[str]:
    """The reminders about changed files in a request."""
    contents = [str(message.get("content")) for message in world.asked(index)["messages"]]
    return [content for content in contents if content.startswith("Files that you have read")]


async def freshness(world: World, session: SessionFold, **more: Any) -> dict[str, Any]:
    params = {"sessionId": session.session_id, **more}
    return await world.client.request("kode/freshness/get", params, HANG_SECONDS)


async def test_typing_in_a_file_that_was_read_is_told_before_the_next_step_once(
    project: Path,
) -> None:
    responses = [
        answer(read("配置.js")),
        answer(text("a"), hold("gate"), tool_call("list_files", {})),
        answer(text("I see")),
        answer(text("fine")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js")
        session = await world.session()
        turn_id = await world.start(session, "look")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        world.editor.type(buffer, LINES.index("1;"), "4", delete=1)
        world.editor.type(buffer, LINES.index("1;") + 1, "2")
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        assert changes(world, session) == [[("配置.js", "changed")]]
        assert reported(world) == []
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        (note,) = reported(world)
        assert "-let end = 1;\n+let end = 42;\n" in note
        assert "旧" not in note.split("@@")[0]
        roles = [message["role"] for message in world.asked()["messages"]]
        assert roles[-2:] == ["tool", "user"]
        records = [m for m in world.messages(session) if m["meta"].get("origin") == "reminder"]
        assert [len(record["content"]) for record in records] == [1]
        await world.turn(session, "and now?")
        assert reported(world) == [note]  # what was sent stays, and is not said again
        assert len(changes(world, session)) == 1
        assert session.anomalies == []


async def test_a_closed_file_that_changed_on_disk_is_told_with_the_prompt(project: Path) -> None:
    responses = [
        answer(read("plain.py"), read("配置.js")),
        answer(text("ok")),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "read")
        (project / "plain.py").write_bytes(OTHER.replace("b = 2", "b = 3").encode())
        await world.turn(session, "go on")
        (note,) = reported(world)
        assert "-b = 2\n+b = 3\n" in note
        assert "配置" not in note
        assert world.asked()["messages"][-1]["content"] == "go on"
        (project / "配置.js").unlink()
        await world.turn(session, "and on")
        assert "配置.js: it does not exist any more." in reported(world)[1]
        assert changes(world, session) == [[("plain.py", "changed")], [("配置.js", "deleted")]]


async def test_a_write_that_leaves_time_and_size_alone_is_noticed(project: Path) -> None:
    """A file written so lately that its time cannot tell two writes apart is compared itself."""
    responses = [answer(read("plain.py")), answer(text("ok")), answer(text("ok"))]
    file = project / "plain.py"
    just_now = time.time_ns() + 3_600_000_000_000  # and for the whole of this test
    async with sidecar(responses, roots=[project]) as world:
        os.utime(file, ns=(just_now, just_now))
        session = await world.session()
        await world.turn(session, "read")
        file.write_bytes(OTHER.replace("b = 2", "b = 9").encode())
        os.utime(file, ns=(just_now, just_now))
        await world.turn(session, "go on")
        assert "+b = 9" in reported(world)[0]


async def test_hunks_over_unknown_lines_are_flagged(project: Path) -> None:
    responses = [
        answer(read("配置.js", 4, 7)),
        answer(text("a"), hold("gate"), propose("配置.js", *FLAGGED)),
        answer(text("ok")),
        answer(read("配置.js")),
        answer(propose("配置.js", ("let end = 2;", "let end = 3;"))),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js")
        session = await world.session()
        turn_id = await world.start(session, "edit")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        world.editor.type(buffer, LINES.index("end = 1") + 6, "2", delete=1)
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        flags = [hunk.info.get("flags", []) for hunk in only_change_set(session).hunks("proposed")]
        assert flags == [["unread"], ["staleRead"], []]
        await world.decide(only_change_set(session), rest="reject", seenSeq=session.seq)
        await world.turn(session, "read it again")
        (hunk,) = [h for c in session.change_sets.values() for h in c.hunks("proposed")]
        assert "flags" not in hunk.info


FLAGGED = (
    ("let 名字 = '旧 𠮷';", "let 名字 = '新 😀';"),
    ("let end = 2;", "let end = 22;"),
    ("last();", "last(1);"),
)


async def test_a_line_that_a_search_has_shown_is_known(project: Path) -> None:
    responses = [
        answer(tool_call("search_code", {"query": "b ="})),
        answer(propose("plain.py", ("b = 2", "b = 3"))),
        answer(propose("plain.py", ("a = 1", "a = 0"))),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "edit")
        flags = {
            hunk.info["newText"]: hunk.info.get("flags", [])
            for hunk in only_change_set(session).hunks()
        }
        assert flags["b = 3\n"] == []
        assert flags["a = 0\nb = 3\n"] == ["unread"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_an_own_edit_is_nobody_elses_change(project: Path, is_open: bool) -> None:
    responses = [
        answer(read("配置.js")),
        answer(propose("配置.js", ("let end = 1;", "let end = 3;\nlet more = '完';"))),
        answer(text("ok")),
        answer(propose("配置.js", ("let more = '完';", "let more = 2;"), ("keep();", "k();"))),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        if is_open:
            world.editor.open(project / "配置.js")
        session = await world.session()
        await world.turn(session, "edit")
        await world.decide(only_change_set(session))
        (file,) = (await freshness(world, session))["files"]
        assert "changed" not in file
        wanted = LF.replace("let end = 1;", "let end = 3;\nlet more = '完';")
        assert file["sha256"] == sha256(wanted.encode()).hexdigest()
        assert file["lines"] == [{"start": 1, "end": 8}]
        await world.turn(session, "again")
        assert reported(world) == []
        assert changes(world, session) == []
        hunks = [h for c in session.change_sets.values() for h in c.hunks("proposed")]
        assert [hunk.info.get("flags", []) for hunk in hunks] == [[], []]


async def test_the_users_keys_beside_an_own_edit_are_told(project: Path) -> None:
    responses = [
        answer(read("plain.py")),
        answer(propose("plain.py", ("b = 2", "b = 3"))),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        world.editor.manners.after_edit = lambda _: buffer.type(0, "# 我\n")
        session = await world.session()
        await world.turn(session, "edit")
        await world.decide(only_change_set(session))
        assert buffer.text == "# 我\na = 1\nb = 3\nc = 3\n"
        await world.turn(session, "go on")
        assert changes(world, session) == [[("plain.py", "changed")]]
        (note,) = [str(m["content"]) for m in world.asked()["messages"] if "# 我" in str(m)]
        assert "accepted and applied" in note
        assert "+# 我\n" in note
        assert "-b = 2" not in note


async def test_another_sessions_edit_is_somebody_elses(project: Path) -> None:
    responses = [
        answer(read("plain.py")),
        answer(text("ok")),
        answer(propose("plain.py", ("b = 2", "b = 3"))),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "plain.py")
        reader, writer = await world.session(), await world.session()
        await world.turn(reader, "read")
        await world.turn(writer, "edit")
        await world.decide(only_change_set(writer))
        await world.turn(reader, "go on")
        assert "+b = 3" in reported(world)[0]
        assert changes(world, reader) == [[("plain.py", "changed")]]
        assert changes(world, writer) == []


async def test_credentials_that_came_into_a_file_are_not_told(project: Path) -> None:  # W11
    responses = [
        answer(read("plain.py"), read("配置.js")),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "read")
        world.editor.type(buffer, 0, f"key = '{TOKEN}'\n")
        (project / "配置.js").write_bytes(f"let k = '{TOKEN}'\n".encode())
        await world.turn(session, "go on")
        (note,) = reported(world)
        assert "plain.py: changed; it holds credentials" in note
        assert "配置.js: it cannot be read any more." in note
        assert TOKEN not in str(world.asked())


async def test_a_large_change_is_told_by_its_lines(project: Path) -> None:
    responses = [answer(read("plain.py")), answer(text("ok")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "read")
        world.editor.type(buffer, len("a = 1\n"), "x = 0 # \x1b[31m\n" * 900)
        await world.turn(session, "go on")
        (note,) = reported(world)
        assert "plain.py: changed, as it is now, at lines 2-901." in note
        assert len(note) < 1_000


async def test_a_client_that_watches_files_hears_at_once(project: Path) -> None:
    async with sidecar([answer(read("plain.py")), answer(text("ok"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "read")
        (project / "plain.py").write_bytes(b"a = 2\n")
        other = {"uri": (project / "配置.js").as_uri(), "type": 2}
        change = {"uri": (project / "plain.py").as_uri(), "type": 2}
        params = {"changes": [other, change, change]}
        world.client.notify("workspace/didChangeWatchedFiles", params)
        await world.watch.until(lambda: changes(world, session), HANG_SECONDS)
        assert changes(world, session) == [[("plain.py", "changed")]]


async def test_freshness_get(project: Path) -> None:
    responses = [
        answer(read("node_modules/x/lib.js"), read("plain.py", 2, 3), read("配置.js")),
        answer(propose("plain.py", ("c = 3", "c = 4"))),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js")
        session = await world.session()
        assert await freshness(world, session) == {"files": [], "important": []}
        await world.turn(session, "read")
        world.editor.type(buffer, 0, "中")
        result = await freshness(world, session, limit=1)
        files = {file["path"]: file for file in result["files"]}
        assert list(files) == ["plain.py", "配置.js", "node_modules/x/lib.js"]
        plain = files["plain.py"]
        assert plain["readAt"] <= plain["editedAt"]
        assert plain["lines"] == [{"start": 2, "end": 3}]
        assert plain["size"] == len(OTHER)
        assert plain["mtime"].endswith("Z")
        assert plain["sha256"] == sha256(OTHER.encode()).hexdigest()
        js = files["配置.js"]
        assert js["changed"] is True
        assert (js["lines"], js["staleLines"]) == (
            [{"start": 2, "end": 7}],
            [{"start": 1, "end": 1}],
        )
        assert "size" not in js
        assert js["sha256"] == sha256(("中" + LF).encode()).hexdigest()
        assert js["uri"] == buffer.uri
        (important,) = result["important"]
        assert important == {
            "uri": plain["uri"],
            "path": "plain.py",
            "usedAt": plain["editedAt"],
        }
        everything = await freshness(world, session)
        assert [file["path"] for file in everything["important"]] == ["plain.py", "配置.js"]
        with pytest.raises(RpcError, match=re.escape("$.limit")):
            await freshness(world, session, limit=0)
