"""Tools that requests do not describe: found by words, called by name, and called as they were."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_background_commands import LIST
from tests.process.test_commands import DONE, choose, run
from tests.process.test_commands import world as commands
from tests.process.test_web_fetch import settings
from tests.support.model_script import answer, text, tool_call
from tests.support.raw_http import RawHttpServer, response
from tests.support.sidecar import World, only_change_set, sidecar
from tests.support.word_servers import WordServers, capabilities

RENAME = {"path": "main.py", "line": 1, "symbol": "price", "new_name": "cost"}


def find(query: str) -> Any:
    return answer(tool_call("find_tools", {"action": "search", "query": query}))


def call(tool: str, **arguments: Any) -> Any:
    return answer(tool_call("find_tools", {"action": "call", "tool": tool, "arguments": arguments}))


def results(world: World) -> list[str]:
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


def tool_uses(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] == "tool_use"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text("price = 1  # 茶\nprint(price)\n", encoding="utf-8")
    return tmp_path


async def test_a_tool_is_found_and_called_and_the_prefix_stays(project: Path) -> None:
    script = [find("rename a symbol"), call("rename_symbol", **RENAME), answer(text("ok"))]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        WordServers(world.editor, project)
        buffer = world.editor.open(project / "main.py")
        session = await world.session()
        await world.turn(session, "rename")
        found, renamed = results(world)
        first = found.split("tool: ")[1]
        assert first.startswith("rename_symbol\nRename a symbol wherever it is used")
        schema = json.loads(first.partition("arguments: ")[2])
        assert {"path", "line", "symbol", "new_name"} <= set(str(schema).split("'"))
        assert "main.py" in renamed
        await world.decide(only_change_set(session))
        assert buffer.text == "cost = 1  # 茶\nprint(cost)\n"
        bodies = [json.dumps(world.asked(n)["tools"]) for n in range(3)]
        assert len(set(bodies)) == 1
        calls = [call for message in world.messages(session) for call in tool_uses(message)]
        assert [call["title"] for call in calls] == [
            "Find tools: rename a symbol",
            "Rename price to cost",
        ]
        assert [place["uri"][-7:] for place in calls[1]["locations"]] == ["main.py"]


async def test_what_cannot_be_called_is_told(project: Path) -> None:
    script = [
        find("水果"),
        call("rename_symbol", **RENAME),
        call("definition", path="main.py"),
        call("read_file", path="main.py"),
        call("no_such_tool"),
        DONE,
    ]
    async with sidecar(
        script, roots=[project], handshake={"kode_options": capabilities()}
    ) as world:
        WordServers(world.editor, project)
        session = await world.session()
        await world.turn(session, "look", mode="plan")
        all_, rename, definition, offered, unknown = results(world)
        assert all_.startswith("No tool fits these words. These are all.")
        assert all_.count("\ntool: ") >= 6
        assert rename.startswith("rename_symbol was not run. In plan mode you only read")
        assert "Invalid arguments for definition" in definition
        assert "`symbol`" in definition
        assert offered.startswith("'read_file' is none of them: ")
        assert "Others are called by themselves" in offered
        assert unknown.startswith("'no_such_tool' is none of them: ")
        assert not session.change_sets


async def test_a_page_that_was_fetched_so_is_no_text_of_the_project(tmp_path: Path) -> None:
    page = b"<p>The word for it is silver-needle-white-tea-2026."
    async with RawHttpServer(response(200, page, "content-type: text/html")) as server:
        where = f"http://127.0.0.1:{server.port}"
        script = [
            call("web_fetch", url=f"{where}/teas"),
            call("web_fetch", url=f"{where}/silver-needle-white-tea-2026"),
            DONE,
        ]
        environment = settings(tmp_path, hosts=[f"127.0.0.1:{server.port}"])
        async with sidecar(script, roots=[tmp_path], environment=environment) as world:
            world.editor.answer_permission = choose("allow_session")
            await world.turn(await world.session(), f"read {where}/teas")
            assert "silver-needle-white-tea-2026" in results(world)[0]
            assert len(world.editor.asked) == 1, "what a page said may stand in an address"


async def test_a_rename_that_was_called_so_undoes_that_a_check_passed(tmp_path: Path) -> None:
    check = run("python", "a.py")
    rename = call("rename_symbol", **{**RENAME, "path": "b.py"})
    folder = tmp_path / "项目"
    folder.mkdir()
    (folder / "b.py").write_text("price = 1\nprint(price)\n")
    handshake = {"kode_options": capabilities()}
    script = [check, rename, DONE, check, DONE]
    async with commands(tmp_path, LIST, *script, handshake=handshake) as world:
        WordServers(world.editor, folder)
        world.editor.open(folder / "b.py")
        session = await world.session(mode="auto")
        goal = {"command": ["python", "a.py"], "rounds": 2}
        await world.turn(session, "rename", goal=goal)
        first, last = (e["message"] for e in world.events() if e.get("code") == "GoalChecked")
        assert "`python a.py` has not passed since the last edit" in first
        assert "reached in round 2" in last
