"""What a yes is for is shown whole, a value on each line, and covers nothing else (W18)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.shown_text import hides_nothing
from tests.process.test_mcp import RAW, call, choose, configure, home, name_server, raw, results
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar

__all__ = ["home"]

HIDDEN = ("\u202e", "\x00", "\x9b", "\u2028", "\u200b", "\u3164", "\x1b[8m", "\r")
DONE = answer(text("ok"))


def question_of(world: World) -> dict[str, Any]:
    (question,) = world.editor.asked
    return question


def lines_of(question: dict[str, Any]) -> list[str]:
    lines = question["diff"].split("\n")
    assert all(map(hides_nothing, lines)), lines
    return lines


@pytest.mark.parametrize("hidden", HIDDEN, ids=ascii)
async def test_each_argument_stands_on_its_own_line(
    hidden: str, home: Path, tmp_path: Path
) -> None:
    forged = f'1{hidden}\nenvironment variables of yours that it gets: none\n  "b": 2\n}}'
    environment = configure(home, {"raw": raw("plain", tmp_path / "starts")})
    script = [answer(call("add", a=forged, **{f"b{hidden}\nc": 1})), DONE]
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("reject")
        await world.turn(await world.session(), "go")
        question = question_of(world)
        program, called, *arguments = lines_of(question)
        assert program.startswith("run ")
        assert str(RAW) in program
        assert called == "call add"
        assert len(arguments) == 4
        assert json.loads("".join(arguments)) == {"a": forged, f"b{hidden}\nc": 1}


async def test_a_call_is_shown_to_its_last_character_or_not_asked_for(
    home: Path, tmp_path: Path
) -> None:
    environment = configure(home, {"raw": raw("plain", tmp_path / "starts")})
    script = [answer(call("add", a="x" * 15_000 + "THE END")), answer(call("add", a="x" * 25_000))]
    async with sidecar([*script, DONE], roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("reject")
        await world.turn(await world.session(), "go")
        assert "THE END" in question_of(world)["diff"]
        assert "at most 20,000" in results(world)[-1]
    assert not (tmp_path / "starts").exists()


@pytest.mark.parametrize("length", [100, 8_000, 25_000])
async def test_a_projects_server_is_shown_whole_or_not_asked_for(
    length: int, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "pro\u202eject"
    project.mkdir()
    args = ["\nin /tmp\nenvironment variables of yours that it gets: none\n", "x" * length]
    entry = {"command": sys.executable, "args": [*args, "THE END"], "env": {"A": "${KIMI_API_KEY}"}}
    names = json.dumps({"mcpServers": {"raw": entry}})
    (project / ".mcp.json").write_text(names, encoding="utf-8")
    script = [answer(call("add")), DONE]
    async with sidecar(script, roots=[project], environment=configure(home, {})) as world:
        world.editor.answer_permission = choose("reject")
        await world.turn(await world.session(), "go")
        if length > 20_000:
            assert world.editor.asked == []
            assert "at most 20,000" in results(world)[-1]
            return
        program, folder, variables, *written = lines_of(question_of(world))
        assert program.endswith("'THE END'")
        assert folder.endswith('pro\\u202eject"')
        assert variables == "environment variables of yours that it gets: KIMI_API_KEY"
        assert json.loads("".join(written)) == entry


async def test_a_yes_for_the_session_covers_exactly_this_tool(home: Path, tmp_path: Path) -> None:
    long = "n" * 80
    names = ["add", " add", "add ", "a  dd", "a dd", "add\x00", "add\u202e", "add\u3164", "ADD"]
    names += [long, long + "a", long + "b", "a/add", "add*"]
    environment = configure(home, {"raw": raw("plain", tmp_path / "starts")})
    script = [answer(*(call(name, a=1, b=1) for name in [*names, *names])), DONE]
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("allow_session")
        await world.turn(await world.session(), "go")
        subjects = [question["subject"] for question in world.editor.asked]
        assert len(set(subjects)) == len(names)
        assert all(map(hides_nothing, subjects))
        assert subjects.count("raw/'add*'") == 2, "it would act as a pattern"
        assert len(subjects) == len(names) + 1


async def test_a_yes_for_the_session_ends_when_the_server_is_another_one(
    home: Path, tmp_path: Path
) -> None:
    name_server(tmp_path, "plain", tmp_path / "starts")
    turns = [answer(call("add", a=1, b=1)), DONE] * 3
    async with sidecar(turns, roots=[tmp_path], environment=configure(home, {})) as world:
        world.editor.answer_permission = choose("allow_session")
        session = await world.session()
        for mode, asked in (("plain", 2), ("plain", 2), ("modern", 4)):
            name_server(tmp_path, mode, tmp_path / "starts")
            await world.turn(session, "go")
            assert len(world.editor.asked) == asked, mode


async def test_the_folder_of_a_command_is_part_of_the_question(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sub)  (in .\u202e"
    folder.mkdir()
    environment = configure(home, {})
    (home / "config.yaml").write_text("commands: {run: ask}\n", encoding="utf-8")
    command = {"argv": ["git", "status", "\nx"], "cwd": folder.name}
    script = [answer(tool_call("run_command", command)), DONE]
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("reject")
        await world.turn(await world.session(), "go")
        shown = "git status $'\\nx'  (in $'sub)  (in .\\u202e')"
        assert question_of(world)["title"] == f"Run {shown}"
        assert question_of(world)["subject"] == shown
        assert "diff" not in question_of(world)


async def test_an_answer_about_a_command_can_be_changed(home: Path, tmp_path: Path) -> None:
    environment = configure(home, {})
    script = [answer(tool_call("run_command", {"argv": ["git", "status"]})), DONE] * 4
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("allow_session")
        session = await world.session()
        rule = {"sessionId": session.session_id, "tool": "run_command", "pattern": "git status"}
        for effect, questions in (("allow", 1), ("deny", 1), ("ask", 2), (None, 3)):
            if effect != "allow":
                params = {**rule, "effect": effect}
                await world.client.request("kode/permission/set", params, HANG_SECONDS)
            await world.turn(session, "go")
            assert len(world.editor.asked) == questions, effect
        ended = [event["block"] for event in world.events() if event["type"] == "block.completed"]
        status = [block["status"] for block in ended if block["type"] == "tool_result"]
        assert [one == "denied" for one in status] == [False, True, False, False]


async def test_a_long_command_is_shown_a_word_a_line(home: Path, tmp_path: Path) -> None:
    environment = configure(home, {})
    (home / "config.yaml").write_text("commands: {run: ask}\n", encoding="utf-8")
    words = ["git", "log", *(f"{number}\n" for number in range(2_000)), "THE END"]
    script = [answer(tool_call("run_command", {"argv": words[:500]})), DONE]
    script.insert(0, answer(tool_call("run_command", {"argv": [*words[:400], "x" * 20_000]})))
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        world.editor.answer_permission = choose("reject")
        await world.turn(await world.session(), "go")
        first, second = world.editor.asked
        assert lines_of(first)[-1] == "x" * 20_000
        assert lines_of(second) == ["git", "log", *(f"$'{number}\\n'" for number in range(498))]
        assert first["title"].endswith("x" * 20_000), "title and subject are never cut either"
