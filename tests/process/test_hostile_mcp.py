"""What one MCP server may cost this process and its user, a call and in all."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.shown_text import CONTROL
from tests.process.test_mcp import call, configure, home, results
from tests.support.model_script import answer, text, tool_call
from tests.support.processes import memory
from tests.support.program import ROOT
from tests.support.sidecar import World, sidecar

__all__ = ["home"]

SERVER = ROOT / "tests" / "support" / "hostile_mcp_server.py"
MEGABYTE = 1_000_000
DONE = answer(text("ok"))
SEARCH = answer(tool_call("mcp", {"action": "search", "query": ""}))


def hostile(mode: str) -> dict[str, Any]:
    return {"raw": {"command": [sys.executable, str(SERVER), mode], "trusted_tools": ["flood"]}}


def frames(world: World, what: bytes) -> int:
    return sum(what in frame.body for frame in world.client.frames)


async def flooded(mode: str, home: Path, tmp_path: Path, choice: Any = None) -> tuple[World, str]:
    environment = configure(home, hostile(mode))
    script = [answer(call("flood")), DONE]
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_choice = choice
        await world.client.request("kode/mcp/list", {}, 30)
        before = memory(world.pid, "VmHWM")
        await world.turn(await world.session(), "go")
        assert memory(world.pid, "VmHWM") - before < 60 * MEGABYTE
        return world, results(world)[-1]


async def test_a_server_that_asks_and_does_not_read_is_stopped(home: Path, tmp_path: Path) -> None:
    _, reported = await flooded("pings", home, tmp_path)
    assert "asked more than 100 things at once and was stopped" in reported


async def test_a_server_that_reads_the_answers_may_ask_on(home: Path, tmp_path: Path) -> None:
    _, reported = await flooded("polite pings", home, tmp_path)
    assert "2000 answers" in reported


async def test_notes_of_progress_are_as_many_as_a_person_reads(home: Path, tmp_path: Path) -> None:
    world, reported = await flooded("notes", home, tmp_path)
    assert "0 answers" in reported
    assert 1 <= frames(world, b'"tool.progress"') < 300
    notes = [event for event in world.events() if event["type"] == "tool.progress"]
    assert not any(CONTROL.search(note["message"]) for note in notes)


async def test_a_list_that_changes_again_and_again_is_reported_once(
    home: Path, tmp_path: Path
) -> None:
    world, reported = await flooded("changes", home, tmp_path)
    assert "0 answers" in reported
    assert frames(world, b'"kode/mcp/changed"') < 5


@pytest.mark.parametrize(("replies", "asked"), [(100, 10), (3, 4), (0, 1)])
async def test_dialogs_come_one_by_one_and_a_few_a_call(
    replies: int, asked: int, home: Path, tmp_path: Path
) -> None:
    questions: list[str] = []
    open_now = 0

    async def choice(params: dict[str, Any]) -> list[str]:
        nonlocal open_now
        open_now += 1
        assert open_now == 1
        questions.append(params["question"])
        open_now -= 1
        return ["Yes"] if len(questions) <= replies else []

    _, reported = await flooded("dialogs", home, tmp_path, choice)
    assert len(questions) == asked
    assert f"90 answers, {min(replies, 10)} accepted" in reported


async def test_nothing_that_a_server_writes_moves_a_cursor(home: Path, tmp_path: Path) -> None:
    environment = configure(home, hostile("refuses"))
    script = [SEARCH, answer(call("flood")), DONE]
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        await world.client.request("kode/mcp/list", {}, 30)
        await world.turn(await world.session(), "go")
        listed = await world.client.request("kode/mcp/list", {}, 30)
        (server,) = listed["servers"]
        assert [tool["name"] for tool in server["tools"]] == ["flood"]
        assert [one["uri"] for one in server["resources"]] == ["a://flood"]
        assert [one["name"] for one in server["prompts"]] == ["flood"]
        assert server["stderrTail"]
        for reported in (listed, world.events(), world.asked()["messages"]):
            assert not any(map(CONTROL.search, strings(reported)))


async def test_a_list_is_read_up_to_a_limit(home: Path, tmp_path: Path) -> None:
    environment = configure(home, hostile("large"))
    async with sidecar([SEARCH, DONE], roots=[tmp_path], environment=environment) as world:
        await world.turn(await world.session(), "go")
        (server,) = (await world.client.request("kode/mcp/list", {}, 30))["servers"]
        assert len(server["tools"]) == 40


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []
