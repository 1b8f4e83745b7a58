"""Servers that are programs: both generations, and all that a bad one does (F5)."""

# pyright: basic

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import McpHost, ServerConfig
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists
from kode_sidecar.infrastructure.mcp.servers import Servers
from tests.conftest import FULL, SEED_VARIABLE
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

RAW = ROOT / "tests" / "support" / "mcp_server.py"
Json = dict[str, Any]


def config(mode: str, *more: str, **options: Any) -> ServerConfig:
    return ServerConfig("raw", (sys.executable, str(RAW), mode, *more), **options)


@asynccontextmanager
async def running(
    mode: str, *more: str, host: McpHost | None = None, folder: Path | None = None, **options: Any
) -> AsyncIterator[Server]:
    server = Server(
        config(mode, *more, **options),
        host or McpHost(),
        RememberedLists(folder),
        environment=dict(os.environ),
        now=time.monotonic,
    )
    try:
        async with asyncio.timeout(HANG_SECONDS):
            yield server
    finally:
        await server.close()


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


async def failing(call: Any) -> KodeError:
    with pytest.raises(KodeError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("mode", ["plain", "modern", "junk"])
async def test_a_server_is_listed_called_and_asks_the_user(mode: str) -> None:
    asked: list[str] = []

    async def elicit(message: str, schema: Json) -> Json:
        asked.append(message)
        assert "colour" in schema["properties"]
        return {"colour": "绿"}

    async with running(mode, host=McpHost(elicit=elicit)) as server:
        assert server.state == "idle"
        listing = await server.listing()
        assert [tool.name for tool in listing.tools] == ["add", "ask", "slow", "misbehave"]
        assert server.report().version == ("2026-07-28" if mode == "modern" else "2025-11-25")
        assert texts(await server.call("add", {"a": 2, "b": 3})) == ["5"]
        (answer,) = texts(await server.call("ask", {}))
        assert '"accept"' in answer
        assert "\\u7eff" in answer
        assert asked == ["Which colour?"]


async def test_progress_reaches_the_caller() -> None:
    seen: list[tuple[str, float | None, float | None]] = []
    async with running("plain") as server:
        result = await server.call("slow", {}, lambda *parts: seen.append(parts))
        assert texts(result) == ["there"]
        assert seen == [("so far", 1, 2), ("so far", 2, 2)]


async def test_a_server_that_dies_in_a_call_is_told_and_started_again(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with running("dies", str(starts)) as server:
        error = await failing(server.call("misbehave", {}))
        assert (error.code, error.retryable) == ("ToolFailed", True)
        assert "out of cheese" in error.message
        assert server.report().state == "failed"
        assert texts(await server.call("add", {"a": 1, "b": 1})) == ["2"]
        assert len(starts.read_text().split()) == 2


async def test_who_never_answers_costs_its_time_and_no_more() -> None:
    async with running("silent", call_seconds=0.3) as server:
        error = await failing(server.call("misbehave", {}))
        assert (error.details or {})["reason"] == "timeout"
        assert texts(await server.call("add", {"a": 1, "b": 1})) == ["2"], "it still lives"


async def test_a_cancelled_call_leaves_the_server_alive() -> None:
    async with running("silent") as server:
        await server.listing()
        task = asyncio.create_task(server.call("misbehave", {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert texts(await server.call("add", {"a": 1, "b": 1})) == ["2"]


async def test_an_endless_message_stops_the_server() -> None:
    async with running("huge") as server:
        error = await failing(server.call("misbehave", {}))
        assert (error.details or {})["reason"] == "too_large"


async def test_a_slow_start_is_given_up() -> None:
    async with running("no_start", start_seconds=0.3) as server:
        error = await failing(server.call("add", {}))
        assert (error.details or {})["reason"] == "slow_start"
        assert "`start_seconds`" in error.message


async def test_an_unknown_version_and_an_unknown_program_are_told() -> None:
    async with running("old") as server:
        assert "1999-01-01" in (await failing(server.listing())).message
    missing = ServerConfig("raw", ("/nowhere/to/be/found",))
    server = Server(missing, McpHost(), RememberedLists(None), environment={}, now=time.monotonic)
    assert "cannot be started" in (await failing(server.listing())).message


async def test_what_a_server_says_on_stdout_before_it_ends_is_told() -> None:
    """Many a program explains its usage there."""
    words = ServerConfig("raw", (sys.executable, "-c", "print('usage: server FOLDER')"))
    server = Server(
        words, McpHost(), RememberedLists(None), environment=dict(os.environ), now=time.monotonic
    )
    assert '"usage: server FOLDER"' in (await failing(server.listing())).message
    await server.close()


async def test_five_hundred_tools_come_in_pages() -> None:
    async with running("many") as server:
        assert len((await server.listing()).tools) == 500


async def test_a_changed_list_is_read_anew() -> None:
    async with running("changes") as server:
        assert len((await server.listing()).tools) == 4
        await server.call("misbehave", {})
        assert len((await server.listing()).tools) == 5


async def test_a_list_is_remembered_and_nothing_starts(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with running("plain", str(starts), folder=tmp_path / "lists") as server:
        await server.listing()
    async with running("plain", str(starts), folder=tmp_path / "lists") as server:
        known = server.known()
        assert known is not None
        assert len(known.tools) == 4
        assert server.state == "idle"
    assert len(starts.read_text().split()) == 1
    async with running("plain", str(starts), "x", folder=tmp_path / "lists") as server:
        assert server.known() is None, "another command is another server"


async def test_servers_are_searched_side_by_side_and_one_may_fail() -> None:
    servers = Servers(
        [
            config("plain"),
            ServerConfig("dead", (sys.executable, "-c", "raise SystemExit(1)")),
            ServerConfig("raw", ("never", "used")),
        ],
        McpHost(),
        RememberedLists(None),
        environment=dict(os.environ),
        now=time.monotonic,
    )
    try:
        async with asyncio.timeout(HANG_SECONDS):
            searched = await servers.search("add numbers", None, 5)
        found = searched.found
        assert len(searched.failed) == 1
        assert "The MCP server dead has ended." in searched.failed[0]
        assert [(one.server.config.name, one.tool.name) for one in found] == [("raw", "add")]
        assert found[0].name == "mcp__raw__add"
        assert servers.offer("s").names == ("raw", "dead")
    finally:
        await servers.close()


def alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("signal_number", [9, 15])
async def test_no_server_outlives_a_killed_process(tmp_path: Path, signal_number: int) -> None:
    starts = tmp_path / "starts"
    code = (
        "import asyncio, sys, time\n"
        "from kode_sidecar.infrastructure.mcp.contracts import McpHost, ServerConfig\n"
        "from kode_sidecar.infrastructure.mcp.server_store import RememberedLists\n"
        "from kode_sidecar.infrastructure.mcp.server import Server\n"
        "async def main():\n"
        "    config = ServerConfig('raw', tuple(sys.argv[1:]))\n"
        "    server = Server(config, McpHost(), RememberedLists(None), environment={},"
        " now=time.monotonic)\n"
        "    await server.listing()\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", code, sys.executable, str(RAW), "silent", str(starts)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    server_id = int(starts.read_text())
    assert alive(server_id)
    process.send_signal(signal_number)
    await asyncio.to_thread(process.wait)
    process.stdout.close()
    await until(lambda: not alive(server_id))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("batch", range(200 if FULL else 1))
async def test_no_server_outlives_a_kill_at_any_moment(batch: int, tmp_path: Path) -> None:
    """Servers are started and ended all the while, two at a time: 1,000 kills with all batches."""
    random = Random(f"{os.environ[SEED_VARIABLE]} {batch}")
    starts = tmp_path / "starts"
    code = (
        "import asyncio, sys, time\n"
        "from kode_sidecar.infrastructure.mcp.contracts import McpHost, ServerConfig\n"
        "from kode_sidecar.infrastructure.mcp.server_store import RememberedLists\n"
        "from kode_sidecar.infrastructure.mcp.server import Server\n"
        "async def again():\n"
        "    while True:\n"
        "        server = Server(ServerConfig('raw', tuple(sys.argv[1:])), McpHost(),"
        " RememberedLists(None), environment={}, now=time.monotonic)\n"
        "        await server.listing()\n"
        "        print('ready', flush=True)\n"
        "        await server.close()\n"
        "async def main():\n"
        "    await asyncio.gather(again(), again())\n"
        "asyncio.run(main())\n"
    )
    for _ in range(5):
        starts.write_text("", encoding="utf-8")
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-c", code, sys.executable, str(RAW), "plain", str(starts)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        await asyncio.sleep(random.uniform(0, 0.3))  # the moment is what is tried, not awaited
        process.kill()
        await asyncio.to_thread(process.wait)
        process.stdout.close()
        await until(lambda: not named(starts))


def named(path: Path) -> list[str]:
    """The processes that have the path in their command line: servers and their guards."""
    found: list[str] = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(path) in line.read_bytes():
                found.append(line.parent.name)
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Poll what another process does; nothing tells us."""
    async with asyncio.timeout(HANG_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
