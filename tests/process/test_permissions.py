"""Permission rules over real stdio: what is asked, what a yes covers, what may be set. W15"""

import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    (folder / ".vscode").mkdir(parents=True)
    for name in ("任务.json", "other.json"):
        (folder / ".vscode" / name).write_bytes(b'{"n": 0}\r\n')
    (folder / "plain.py").write_bytes(b"n = 0\n")
    (folder / "gen").mkdir()
    (folder / "gen" / "a.py").write_bytes(b"n = 0\n")
    return folder


def edit(path: str, old: str = "0", new: str = "1") -> Any:
    return answer(tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]}))


def choose(kind: str) -> Any:
    async def permission(params: dict[str, Any]) -> str:
        return next(o["optionId"] for o in params["options"] if o["kind"] == kind)

    return permission


async def rules(world: World, session: SessionFold) -> list[dict[str, Any]]:
    """The session's own rules; the built-in ones are always there."""
    params = {"sessionId": session.session_id}
    result = await world.client.request("kode/permission/list", params, HANG_SECONDS)
    built_in = {rule["pattern"]: rule for rule in result["rules"] if rule["source"] == "builtIn"}
    assert built_in[".git/**"]["effect"] == built_in["*.pem"]["effect"] == "deny"
    assert built_in[".vscode/**"]["effect"] == built_in["package.json"]["effect"] == "ask"
    assert all(rule["reason"] for rule in result["rules"])
    return [rule for rule in result["rules"] if rule["source"] != "builtIn"]


async def set_rule(world: World, session: SessionFold, pattern: str, effect: str | None) -> None:
    params = {"sessionId": session.session_id, "tool": "propose_edit", "pattern": pattern}
    await world.client.request("kode/permission/set", {**params, "effect": effect}, HANG_SECONDS)


def resolved(world: World, session: SessionFold) -> list[str]:
    """How each question ended; every one asked is resolved once (O5)."""
    journal = world.journal(session)
    asked = [e["requestId"] for e in journal if e["type"] == "permission.requested"]
    ends = [e for e in journal if e["type"] == "permission.resolved"]
    assert [e["requestId"] for e in ends] == asked
    return [e["by"] for e in ends]


async def test_a_yes_for_the_session_covers_one_tool_and_one_path(project: Path) -> None:
    responses = [
        edit(".vscode/任务.json"),
        edit(".vscode/任务.json", "1", "2"),
        edit(".vscode/other.json"),
        answer(text("ok")),
        edit(".vscode/任务.json"),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.answer_permission = choose("allow_session")
        session, other = await world.session(), await world.session()
        assert await rules(world, session) == []
        await world.turn(session, "edit")
        assert [question["subject"] for question in world.editor.asked] == [
            ".vscode/任务.json",
            ".vscode/other.json",
        ]
        assert resolved(world, session) == ["user", "policy", "user"]
        first, second = await rules(world, session)
        assert (first["tool"], first["pattern"]) == ("propose_edit", ".vscode/任务.json")
        assert (first["effect"], first["source"], first["matched"]) == ("allow", "answer", 1)
        requested = [e for e in world.journal(session) if e["type"] == "permission.requested"]
        assert requested[0]["requestId"] in first["reason"]
        assert [match["requestId"] for match in first["matches"]] == [requested[1]["requestId"]]
        assert second["pattern"] == ".vscode/other.json"
        # Another session knows nothing of it.
        assert await rules(world, other) == []
        await world.turn(other, "edit")
        assert len(world.editor.asked) == 3
        # What was given can be taken back.
        await set_rule(world, session, ".vscode/任务.json", None)
        assert [rule["pattern"] for rule in await rules(world, session)] == [".vscode/other.json"]


async def test_the_question_says_why_and_what_for(project: Path) -> None:
    async with sidecar([edit(".vscode/任务.json"), answer(text("ok"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "edit")
        (question,) = world.editor.asked
        assert ".vscode/**" in question["reason"]
        assert '-{"n": 0}\n+{"n": 1}\n' in question["diff"]
        (event,) = [e for e in world.journal(session) if e["type"] == "permission.requested"]
        assert event["reason"] == question["reason"]


async def test_rules_that_the_client_sets(project: Path) -> None:
    responses = [
        edit("gen/a.py"),
        edit("plain.py"),
        answer(text("ok")),
        edit("gen/a.py"),
        edit("plain.py", "1", "2"),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.answer_permission = choose("allow_once")
        session = await world.session()
        await set_rule(world, session, "GEN/**", "deny")
        await set_rule(world, session, "**", "ask")
        await world.turn(session, "edit")
        assert resolved(world, session) == ["policy", "user"]
        assert [question["subject"] for question in world.editor.asked] == ["plain.py"]
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "does not allow" in results[0]
        (hunk,) = only_change_set(session).hunks("applied")  # as the user has said
        assert "sensitive" not in hunk.info["flags"]
        denied, wanted = await rules(world, session)
        assert [match["subject"] for match in denied["matches"]] == ["gen/a.py"]
        assert wanted["matched"] == 1
        await set_rule(world, session, "GEN/**", None)
        await set_rule(world, session, "**", None)
        await world.turn(session, "edit")
        assert len(resolved(world, session)) == 2
        outside = ("../**", "..", "a/../../**", "..\\**", "a\\..\\b", "./**", "../x.py")
        wrong = [("propose_edit", pattern) for pattern in ("*.py", "**", *outside)]
        for tool, pattern in (("read_file", "a"), *wrong):
            params = {"sessionId": session.session_id, "tool": tool, "pattern": pattern}
            with pytest.raises(RpcError) as caught:
                await world.client.request("kode/permission/set", {**params, "effect": "allow"})
            assert caught.value.code == -32602


async def test_a_rule_for_a_folder_never_allows_what_is_sensitive(project: Path) -> None:  # W11
    responses = [edit(".vscode/任务.json"), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(mode="auto")
        await set_rule(world, session, ".vscode/**", "allow")
        await world.turn(session, "edit")
        assert resolved(world, session) == ["user"]
        assert session.change_sets == {}
        assert world.editor.edits == []


async def test_answers_to_nothing_count_for_nothing(project: Path) -> None:
    """Foreign, invented, and said twice."""
    responses = [edit(".vscode/任务.json"), edit(".vscode/任务.json"), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:

        def say(request_id: str, option_id: str) -> None:
            message = {"jsonrpc": "2.0", "id": request_id, "result": {"optionId": option_id}}
            world.client.send_raw(encode_frame(json.dumps(message).encode()))

        async def answer_oddly(params: dict[str, Any]) -> str:
            say("k999", "allow-session")
            say(params["requestId"], "allow-session")
            say(params["toolUseId"], "allow-session")
            if len(world.editor.asked) == 1:
                return "allow-everything"
            asked = [f.message() for f in world.client.frames if f.direction == "in"]
            (*_, mine) = [m["id"] for m in asked if m.get("method") == "kode/permission/request"]
            say(mine, "reject")
            return "allow-session"  # the second answer to the same question

        world.editor.answer_permission = answer_oddly
        session = await world.session()
        await world.turn(session, "edit")
        assert resolved(world, session) == ["user", "user"]
        assert await rules(world, session) == []
        assert session.change_sets == {}


@pytest.mark.parametrize(("title", "ends"), [("Allow in this session", 1), (None, 2)])
async def test_a_plain_lsp_client_is_asked_in_its_own_words(
    project: Path, title: str | None, ends: int
) -> None:
    responses = [edit(".vscode/任务.json"), edit(".vscode/任务.json", '"n"', '"m"')]
    hands = {"kode": False}
    async with sidecar([*responses, answer(text("ok"))], roots=[project], handshake=hands) as world:
        boxes: list[dict[str, Any]] = []

        async def message(params: dict[str, Any]) -> dict[str, Any] | None:
            boxes.append(params)
            return next((a for a in params["actions"] if a["title"] == title), None)

        world.editor.answer_message = message
        session = await world.session()
        await world.turn(session, "edit")
        assert len(boxes) == ends
        assert boxes[0]["message"].startswith("Edit .vscode/任务.json? Files like .vscode/**")
        assert len(session.change_sets) == (1 if title else 0)


async def test_a_yes_is_for_what_was_shown(project: Path) -> None:  # W12
    """The file changes while the user is asked: the edit would do something else by then."""
    responses = [
        edit(".vscode/任务.json", "0", "1"),
        edit(".vscode/任务.json", "0", "1"),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / ".vscode" / "任务.json")

        async def type_first(params: dict[str, Any]) -> str:
            if len(world.editor.asked) == 1:
                world.editor.type(buffer, 0, "// 我\r\n")
            return await choose("allow_once")(params)

        world.editor.answer_permission = type_first
        session = await world.session()
        await world.turn(session, "edit")
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "changed while the user was asked" in results[0]
        assert "// 我" not in world.editor.asked[0]["diff"]
        assert "// 我" in world.editor.asked[1]["diff"]
        assert [hunk.state for hunk in only_change_set(session).hunks()] == ["applied"]
        assert resolved(world, session) == ["user", "user"]
