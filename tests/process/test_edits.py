"""A proposed edit over real stdio: hunks, decisions, the editor's text afterwards."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FULL
from tests.support.mannered_editor import Manners
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

ORIGINAL = "// 配置 😀 first\r\nlet 名字 = '旧 𠮷';\r\n\r\nkeep();\r\nkeep();\r\nlet end = 1;\r\n"
OPEN = "// 未保存 😀😀\r\n" + ORIGINAL


def propose(path: str, *edits: tuple[str, str]) -> Any:
    return tool_call(
        "propose_edit", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}
    )


TWO_HUNKS = propose(
    "配置.js",
    ("let 名字 = '旧 𠮷';", "let 名字 = '新 😀';\nlet 更多 = 2;"),
    ("let end = 1;", "let end = 3; // 完"),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目 one"
    folder.mkdir()
    (folder / "配置.js").write_bytes(ORIGINAL.encode())
    (folder / "plain.py").write_bytes(b"a = 1\nb = 2\nc = 3\n")
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    return folder


@pytest.mark.parametrize(
    ("style", "encoding"),
    [
        (style, encoding)
        for style in ("minimal", "descending", "whole", "one_span")
        for encoding in ("utf-8", "utf-16", "utf-32")
        # Each style and each encoding; every pair of them in full.
        if FULL or style == "minimal" or encoding == "utf-16"
    ],
)
async def test_edit_lands_right_in_an_unsaved_crlf_buffer(  # E3
    project: Path, style: str, encoding: str
) -> None:
    responses = [answer(TWO_HUNKS), answer(text("ok"))]
    hands = {"position_encodings": [encoding]}
    async with sidecar(responses, roots=[project], handshake=hands) as world:
        world.editor.manners.style = style  # type: ignore[assignment]
        buffer = world.editor.open(project / "配置.js", OPEN, language_id="javascript")
        assert world.editor.encoding == encoding
        session = await world.session()
        await world.turn(session, "edit")
        change_set = only_change_set(session)
        first, second = change_set.hunks("proposed")
        decisions = [
            {"hunkId": first.id, "action": "accept"},
            {"hunkId": second.id, "action": "reject", "comment": "keep the number"},
        ]
        result = await world.decide(change_set, decisions=decisions)
        assert result == {
            "state": "decided",
            "applied": [first.id],
            "rejected": [second.id],
            "stale": [],
            "conflicts": [],
            "left": [],
            "verified": True,
        }
        wanted = OPEN.replace("'旧 𠮷';\r\n", "'新 😀';\r\nlet 更多 = 2;\r\n")
        assert buffer.text == wanted
        assert (project / "配置.js").read_bytes() == ORIGINAL.encode()
        assert (first.state, second.state) == ("applied", "rejected")


async def test_the_edit_is_versioned_labelled_and_announced_first(project: Path) -> None:  # O6
    async with sidecar([answer(TWO_HUNKS), answer(text("ok"))], roots=[project]) as world:
        world.editor.open(project / "配置.js", OPEN, version=7)
        session = await world.session()
        await world.turn(session, "edit")
        await world.decide(only_change_set(session))
        ((params, _),) = world.editor.edits
        (change,) = params["edit"]["documentChanges"]
        assert change["textDocument"]["version"] == 7
        assert params["label"]
        methods = [
            frame.message().get("method")
            for frame in world.client.frames
            if frame.direction == "in"
        ]
        proposed = next(
            index
            for index, frame in enumerate(f for f in world.client.frames if f.direction == "in")
            if b"changeSet.updated" in frame.body
        )
        assert proposed < methods.index("workspace/applyEdit")


async def test_the_model_learns_what_was_decided(project: Path) -> None:
    responses = [answer(TWO_HUNKS), answer(text("ok")), answer(text("I see"))]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "配置.js", OPEN)
        session = await world.session()
        await world.turn(session, "edit")
        first, second = only_change_set(session).hunks("proposed")
        await world.decide(
            only_change_set(session),
            decisions=[
                {"hunkId": first.id, "action": "accept"},
                {"hunkId": second.id, "action": "reject", "comment": "keep the number"},
            ],
        )
        await world.turn(session, "and now?")
        reported = world.asked()["messages"]
        assert [m["role"] for m in reported[-2:]] == ["user", "user"]
        assert "keep the number" in reported[-2]["content"]
        assert reported[-1]["content"] == "and now?"
        reminder = next(m for m in world.messages(session) if m["meta"].get("origin"))
        assert reminder["meta"]["origin"] == "reminder"


async def test_reads_show_pending_edits(project: Path) -> None:
    responses = [
        answer(propose("plain.py", ("b = 2", "b = 20"))),
        answer(tool_call("read_file", {"path": "plain.py"})),
        answer(propose("plain.py", ("b = 20", "b = 200"))),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "edit")
        read = world.asked(2)["messages"][-1]["content"]
        assert "b = 20" in read
        assert "pending" in read
        states = [hunk.state for hunk in only_change_set(session).hunks()]
        assert states == ["superseded", "proposed"]
        result = await world.decide(only_change_set(session))
        assert result["verified"] is True
        assert world.editor.text((project / "plain.py").as_uri()) == "a = 1\nb = 200\nc = 3\n"


async def test_auto_mode_applies_and_says_so(project: Path) -> None:
    responses = [answer(propose("plain.py", ("b = 2", "b = 20"))), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        session = await world.session(mode="auto")
        await world.turn(session, "edit")
        assert buffer.text == "a = 1\nb = 20\nc = 3\n"
        assert [hunk.state for hunk in only_change_set(session).hunks()] == ["applied"]
        assert "applied" in world.asked()["messages"][-1]["content"]


async def test_plan_mode_runs_no_edit_tool(project: Path) -> None:
    responses = [answer(propose("plain.py", ("b = 2", "b = 20"))), answer(text("a plan"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(mode="plan")
        await world.turn(session, "plan")
        (result,) = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert result.startswith("propose_edit was not run. In plan mode you only read")
        assert (session.change_sets, world.editor.edits) == ({}, [])


async def test_an_edit_of_a_closed_file_is_sent_unconfirmed(project: Path) -> None:
    responses = [answer(propose("plain.py", ("b = 2", "b = 20"))), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "edit")
        result = await world.decide(only_change_set(session))
        assert result["verified"] is None
        ((params, _),) = world.editor.edits
        (change,) = params["edit"]["documentChanges"]
        assert change["textDocument"]["version"] is None


@pytest.mark.parametrize(("kode", "allow"), [(True, True), (True, False), (False, True)])
async def test_a_sensitive_target_asks_first(project: Path, kode: bool, allow: bool) -> None:  # W15
    call = propose(".vscode/tasks.json", ('"tasks": []', '"tasks": [1]'))
    responses = [answer(call), answer(text("ok"))]
    async with sidecar(responses, roots=[project], handshake={"kode": kode}) as world:

        async def permission(params: dict[str, Any]) -> str:
            kind = "allow_once" if allow else "reject"
            return next(o["optionId"] for o in params["options"] if o["kind"] == kind)

        async def message(params: dict[str, Any]) -> dict[str, Any]:
            return params["actions"][0]

        world.editor.answer_permission = permission
        world.editor.answer_message = message
        world.editor.open(project / ".vscode" / "tasks.json")
        session = await world.session()
        await world.turn(session, "edit")
        types = [event["type"] for event in world.journal(session)]
        assert types.count("permission.requested") == types.count("permission.resolved") == 1
        if not allow:
            assert session.change_sets == {}
            assert "not allow" in str(world.asked()["messages"][-1]["content"]).lower()
            return
        (hunk,) = only_change_set(session).hunks("applied")  # nobody is asked twice
        assert "sensitive" in hunk.info["flags"]
        assert "accepted and applied" in str(world.asked()["messages"][-1]["content"])


async def test_a_rejection_says_why_and_holds_for_the_session(project: Path) -> None:
    call = propose(".vscode/tasks.json", ('"tasks": []', '"tasks": [1]'))
    responses = [answer(call), answer(call), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:

        async def permission(_: dict[str, Any]) -> dict[str, Any]:
            return {"optionId": "reject", "comment": "别动 CI.\u200b", "forSession": True}

        world.editor.answer_permission = permission
        world.editor.open(project / ".vscode" / "tasks.json")
        session = await world.session()
        await world.turn(session, "edit")
        assert len(world.editor.asked) == 1  # the second time the session says no by itself
        told = [str(one.body["messages"][-1]["content"]) for one in world.model.chats]
        assert "The user does not allow Edit .vscode/tasks.json, and says: 别动 CI." in told[1]
        assert "does not allow" in told[2]
        resolved = [one for one in world.events() if one["type"] == "permission.resolved"]
        assert [(one["by"], one.get("optionId")) for one in resolved] == [
            ("user", "reject"),
            ("policy", None),
        ]
        assert resolved[0]["comment"] == "别动 CI.\u200b"
        params = {"sessionId": session.session_id}
        rules = (await world.client.request("kode/permission/list", params, HANG_SECONDS))["rules"]
        assert (rules[0]["effect"], rules[0]["source"]) == ("deny", "answer")
        assert session.change_sets == {}


async def test_what_a_rule_of_the_session_lets_pass_was_not_shown_and_waits(project: Path) -> None:
    call = propose(".vscode/tasks.json", ('"tasks": []', '"tasks": [1]'))
    again = propose(".vscode/tasks.json", ('"tasks": [1]', '"tasks": [2]'))
    responses = [answer(call), answer(again), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:

        async def permission(_: dict[str, Any]) -> str:
            return "allow-session"

        world.editor.answer_permission = permission
        world.editor.open(project / ".vscode" / "tasks.json")
        session = await world.session()
        await world.turn(session, "edit")
        assert len(world.editor.asked) == 1
        first, second = only_change_set(session).hunks()
        assert (first.state, second.state) == ("applied", "proposed")
        await world.decide(only_change_set(session))
        assert second.state == "proposed"  # `rest` never covers it


async def test_keys_typed_beside_a_pending_hunk_move_it(project: Path) -> None:  # O7
    responses = [answer(TWO_HUNKS), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js", OPEN)
        session = await world.session()
        await world.turn(session, "edit")
        world.editor.type(buffer, 0, "// 刚刚 😀\r\n")
        result = await world.decide(only_change_set(session))
        assert result["verified"] is True
        assert buffer.text.startswith("// 刚刚 😀\r\n// 未保存")
        assert "let end = 3; // 完\r\n" in buffer.text


async def test_a_line_opened_right_below_a_hunk_is_no_conflict(project: Path) -> None:
    """As Neovim's `o` tells it: a line end at the end of the hunk's last line."""
    responses = [answer(propose("plain.py", ("b = 2", "b = 20"))), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "edit")
        world.editor.type(buffer, buffer.text.index("\nc = 3"), "\n")
        world.editor.type(buffer, buffer.text.index("\nc = 3"), "own = 1")
        world.editor.type(buffer, buffer.text.index("c = 3"), "abc = ")
        result = await world.decide(only_change_set(session))
        assert (result["conflicts"], result["verified"]) == ([], True)
        assert buffer.text == "a = 1\nb = 20\nown = 1\nabc = c = 3\n"


async def test_a_hunk_the_user_typed_into_is_a_conflict(project: Path) -> None:
    responses = [answer(TWO_HUNKS), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js", OPEN)
        session = await world.session()
        await world.turn(session, "edit")
        world.editor.type(buffer, OPEN.index("旧"), "我的")
        before = buffer.text
        first, second = only_change_set(session).hunks("proposed")
        result = await world.decide(only_change_set(session))
        assert (result["conflicts"], result["applied"]) == ([first.id], [second.id])
        assert buffer.text == before.replace("let end = 1;", "let end = 3; // 完")


async def test_an_editor_that_drops_the_edit_and_says_applied_is_found_out(project: Path) -> None:
    responses = [answer(propose("plain.py", ("b = 2", "b = 20"))), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.manners = Manners(drop_edits=True)
        buffer = world.editor.open(project / "plain.py")
        session = await world.session()
        await world.turn(session, "edit")
        (hunk,) = only_change_set(session).hunks()
        result = await world.decide(only_change_set(session))
        assert result["conflicts"] == [hunk.id]
        assert len(world.editor.edits) == 2  # sent once more, then given up
        assert buffer.text == "a = 1\nb = 2\nc = 3\n"


async def test_decide_while_the_turn_still_streams(project: Path) -> None:
    responses = [answer(TWO_HUNKS), answer(text("a"), hold("gate"), text("b"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "配置.js", OPEN)
        session = await world.session()
        turn_id = await world.start(session, "edit")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        await world.watch.until(lambda: session.change_sets, HANG_SECONDS)
        result = await world.decide(only_change_set(session))
        assert result["state"] == "decided"
        assert "新 😀" in buffer.text
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)


async def test_an_unsynced_document_is_neither_read_nor_edited(project: Path) -> None:
    responses = [
        answer(tool_call("read_file", {"path": "plain.py"})),
        answer(text("ok")),
        answer(tool_call("read_file", {"path": "plain.py"})),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "plain.py")
        broken = {"textDocument": {"uri": buffer.uri, "version": 2}, "contentChanges": [{"x": 1}]}
        world.client.notify("textDocument/didChange", broken)
        session = await world.session()
        await world.turn(session, "read")
        assert "unknown" in _last_result(world)
        whole = {
            "textDocument": {"uri": buffer.uri, "version": 3},
            "contentChanges": [{"text": "mended\n"}],
        }
        world.client.notify("textDocument/didChange", whole)
        await world.turn(session, "read")
        assert "mended" in _last_result(world)


def _last_result(world: World) -> str:
    return next(m["content"] for m in reversed(world.asked()["messages"]) if m["role"] == "tool")
