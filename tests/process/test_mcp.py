"""MCP servers of the user's in real turns: found, asked for, called, and gone with the process."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_script import answer, text, tool_call
from tests.support.program import ROOT
from tests.support.sidecar import World, sidecar

RAW = ROOT / "tests" / "support" / "mcp_server.py"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def configure(home: Path, servers: dict[str, Any]) -> dict[str, str]:
    # JSON is YAML, too.
    (home / "config.yaml").write_text(json.dumps({"mcp": servers}), encoding="utf-8")
    return {"KODE_HOME": str(home), "KODE_LOG_DIR": str(home / "logs")}


def raw(mode: str, starts: Path, **options: Any) -> dict[str, Any]:
    return {"command": [sys.executable, str(RAW), mode, str(starts)], **options}


def choose(kind: str) -> Any:
    async def permission(params: dict[str, Any]) -> str:
        return next(o["optionId"] for o in params["options"] if o["kind"] == kind)

    return permission


def results(world: World) -> list[str]:
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


def call(tool: str, **arguments: Any) -> Any:
    return tool_call(
        "mcp", {"action": "call", "server": "raw", "tool": tool, "arguments": arguments}
    )


SEARCH = tool_call("mcp", {"action": "search", "query": "add numbers"})


# F5
async def test_a_tool_is_found_asked_for_and_called(home: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    responses = [
        answer(SEARCH),
        answer(call("add", a=2, b=40)),
        answer(text("42")),
        answer(call("add", a=1, b=1)),
        answer(text("2")),
    ]
    environment = configure(home, {"raw": raw("plain", starts)})
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("allow_session")
        session = await world.session()
        await world.turn(session, "add")
        found, added = results(world)
        assert "tool: add" in found
        assert "not instructions" in found
        assert added.endswith("42")
        (question,) = world.editor.asked
        assert question["subject"] == "raw/add"
        assert '"b": 40' in question["diff"]
        await world.turn(session, "again")
        assert results(world)[-1].endswith("2")
        assert len(world.editor.asked) == 1, "a yes for the session covers this tool"
        assert len(starts.read_text(encoding="utf-8").split()) == 1


async def test_a_no_is_told_to_the_model_and_nothing_runs(home: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    responses = [answer(call("add", a=1, b=1)), answer(text("ok"))]
    environment = configure(home, {"raw": raw("plain", starts)})
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("reject")
        session = await world.session()
        await world.turn(session, "add")
        assert "did not allow" in results(world)[-1]
        assert not starts.exists()


async def test_nothing_starts_before_it_is_called(home: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    environment = configure(home, {"raw": raw("plain", starts), "b": raw("plain", starts)})
    async with sidecar([answer(text("hi"))], roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        await world.turn(session, "hello")
        names = [tool["function"]["name"] for tool in world.asked()["tools"]]
        assert names[-1] == "mcp"
        assert "Servers: raw, b." in world.asked()["tools"][-1]["function"]["description"]
        assert not starts.exists()


async def test_a_session_keeps_the_tools_it_began_with(home: Path, tmp_path: Path) -> None:
    """So the beginning of its requests stays the same, whatever its servers do."""
    starts = tmp_path / "starts"
    server = raw("changes", starts, direct=True, trusted_tools=["misbehave", "add"])
    first = [answer(SEARCH), answer(text("ok"))]
    environment = configure(home, {"raw": server})
    async with sidecar(first, roots=[tmp_path], environment=environment) as world:
        await world.turn(await world.session(), "look")  # now the list is remembered
    direct = tool_call("mcp__raw__add", {"a": 3, "b": 4})
    second = [
        answer(direct),
        answer(call("misbehave")),  # its list changes here
        answer(SEARCH),
        answer(text("ok")),
        answer(text("ok")),
    ]
    async with sidecar(second, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        await world.turn(session, "add")
        await world.turn(session, "again")
        assert results(world)[0].endswith("7")
        bodies = [chat.body for chat in world.model.chats]
        tools = [json.dumps(body["tools"]) for body in bodies]
        assert len(set(tools)) == 1
        assert "mcp__raw__add" in tools[0]
        assert world.editor.asked == [], "the user's settings trust these two"
        for before, after in pairwise(bodies):
            shared = len(before["messages"])
            assert after["messages"][:shared] == before["messages"]


async def test_a_server_that_fails_is_a_result_and_the_turn_goes_on(
    home: Path, tmp_path: Path
) -> None:
    responses = [answer(call("misbehave")), answer(text("ok"))]
    environment = configure(home, {"raw": raw("dies", tmp_path / "starts")})
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("allow_once")
        session = await world.session()
        await world.turn(session, "go")
        assert "out of cheese" in results(world)[-1]


async def test_a_wrong_setting_is_told_by_the_doctor(home: Path, tmp_path: Path) -> None:
    environment = configure(home, {"raw": {"command": "not a list"}})
    async with sidecar([answer(text("hi"))], roots=[tmp_path], environment=environment) as world:
        report = await world.client.request("kode/doctor", {}, 30)
        (check,) = [one for one in report["checks"] if one["name"] == "mcp"]
        assert not check["ok"]
        assert "mcp.raw" in check["message"]
        await world.turn(await world.session(), "hello")
        assert "mcp" not in [tool["function"]["name"] for tool in world.asked()["tools"]]


async def test_a_programs_name_is_not_looked_for_in_the_project(home: Path, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    program = planted / ("tool.exe" if os.name == "nt" else "tool")
    program.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join([str(planted), os.environ["PATH"]])
    responses = [answer(call("add")), answer(text("ok"))]
    environment = {**configure(home, {"raw": {"command": ["tool"]}}), "PATH": path}
    async with sidecar(responses, roots=[planted], environment=environment) as world:
        world.editor.answer_permission = choose("allow_once")
        await world.turn(await world.session(), "go")
        assert "no program tool" in results(world)[-1]
    assert not (planted / "ran").exists()
