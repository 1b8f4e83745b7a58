"""Five servers that others wrote, from npm and PyPI, in a real turn (F5)."""

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FULL
from tests.support.model_script import answer, text, tool_call
from tests.support.node_tools import node, node_modules
from tests.support.program import ROOT
from tests.support.python_tools import python_programs
from tests.support.sidecar import World, sidecar

SUPPORT = ROOT / "tests" / "support"


def from_npm(name: str, *more: str) -> list[str]:
    package = node_modules(SUPPORT / "npm_mcp") / "@modelcontextprotocol" / f"server-{name}"
    return [*node(), str(package / "dist" / "index.js"), *more]


def from_pypi(name: str, *more: str) -> list[str]:
    return [str(python_programs(SUPPORT / "pypi_mcp") / f"mcp-server-{name}"), *more]


def call(server: str, tool: str, **arguments: Any) -> Any:
    asked = {"action": "call", "server": server, "tool": tool, "arguments": arguments}
    return tool_call("mcp", asked, call_id=server)


def reported(world: World) -> dict[str, str]:
    """What the model was told of each call, by the server."""
    messages = [one for one in world.asked()["messages"] if one["role"] == "tool"]
    return {one["tool_call_id"]: one["content"] for one in messages}


async def play(
    commands: dict[str, list[str]], calls: dict[str, Any], folder: Path
) -> dict[str, str]:
    home = folder / "home"
    home.mkdir()
    servers: dict[str, Any] = {
        name: {"command": command, "trusted_tools": [calls[name][0]], "start_seconds": 100}
        for name, command in commands.items()
    }
    (home / "config.yaml").write_text(json.dumps({"mcp": servers}), encoding="utf-8")
    asked = [call(name, tool, **arguments) for name, (tool, arguments) in calls.items()]
    search = tool_call("mcp", {"action": "search", "query": ""}, call_id="search")
    script = [answer(*asked), answer(search), answer(text("ok"))]
    environment = {"KODE_HOME": str(home), "KODE_LOG_DIR": str(home / "logs")}
    async with sidecar(script, roots=[folder], environment=environment) as world:
        session = await world.session()
        await world.turn(session, "go")
        listed = await world.client.request("kode/mcp/list", {}, 30)
        assert {one["name"]: one["state"] for one in listed["servers"]} == dict.fromkeys(
            commands, "ready"
        )
        return reported(world)


async def test_servers_from_npm_work_in_a_turn(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x", encoding="utf-8")
    commands = {
        "everything": from_npm("everything"),
        "filesystem": from_npm("filesystem", str(tmp_path)),
    }
    calls: dict[str, Any] = {
        "everything": ("get-tiny-image", {}),
        "filesystem": ("list_directory", {"path": str(tmp_path)}),
    }
    found = await play(commands, calls, tmp_path)
    assert "image/png, shown as image 1 of this result" in found["everything"]
    assert "[FILE] here.txt" in found["filesystem"]
    assert "tool: " in found["search"]


@pytest.mark.skipif(not FULL, reason="long: installs 70 MB from PyPI")
async def test_five_servers_work_in_a_turn(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("你好\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: ASYNC221
    with sqlite3.connect(tmp_path / "data.db") as database:
        database.execute("create table town (name text)")
        database.execute("insert into town values ('杭州')")
    database.close()
    commands = {
        "everything": from_npm("everything"),
        "filesystem": from_npm("filesystem", str(tmp_path)),
        "git": from_pypi("git", "--repository", str(tmp_path)),
        "sqlite": from_pypi("sqlite", "--db-path", str(tmp_path / "data.db")),
        "time": from_pypi("time", "--local-timezone", "UTC"),
    }
    zones = {"source_timezone": "Asia/Shanghai", "time": "12:00", "target_timezone": "UTC"}
    calls: dict[str, Any] = {
        "everything": ("echo", {"message": "你好"}),
        "filesystem": ("read_text_file", {"path": str(tmp_path / "here.txt")}),
        "git": ("git_status", {"repo_path": str(tmp_path)}),
        "sqlite": ("read_query", {"query": "select name from town"}),
        "time": ("convert_time", zones),
    }
    found = await play(commands, calls, tmp_path)
    assert "你好" in found["everything"]
    assert "你好" in found["filesystem"]
    assert "here.txt" in found["git"]
    assert "杭州" in found["sqlite"]
    assert "04:00" in found["time"]
