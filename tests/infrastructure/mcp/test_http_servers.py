"""Servers at an address: all a bad one does is a typed error, and the process lives on (F5)."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import McpHost, ServerConfig
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists
from tests.process.test_mcp import configure, results
from tests.support.mcp_http_server import BadServer, bad_server
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import sidecar

KEY = {"authorization": "Bearer secret-key"}


@asynccontextmanager
async def asking(bad: BadServer, **options: Any) -> AsyncIterator[Server]:
    config = ServerConfig("bad", url=bad.url, headers=KEY, **options)
    server = Server(config, McpHost(), RememberedLists(None), environment={}, now=time.monotonic)
    try:
        yield server
    finally:
        await server.close()


async def failure(server: Server) -> tuple[str, str]:
    with pytest.raises(KodeError) as caught:
        await server.call("go", {})
    return caught.value.code, (caught.value.details or {})["reason"]


@pytest.mark.parametrize(
    ("mode", "reason", "options"),
    [
        ("silent", "timeout", {"call_seconds": 0.3}),
        ("no_start", "slow_start", {"start_seconds": 0.3}),
        ("huge", "too_large", {}),
        ("huge_event", "too_large", {}),
        ("dies", "incomplete", {}),
        ("cut", "http", {}),
        ("junk", "incomplete", {}),
        ("fails", "status", {}),
    ],
)
async def test_each_failure_is_a_typed_error(
    mode: str, reason: str, options: dict[str, Any]
) -> None:
    with bad_server(mode) as bad:
        async with asking(bad, **options) as server:
            assert await failure(server) == ("ToolFailed", reason)
        assert bad.sent < 40, "not all 100 MB are taken"


@pytest.mark.parametrize("mode", ["redirect", "redirect_at_once"])
async def test_a_redirect_is_never_followed(mode: str) -> None:
    """So no key reaches another host."""
    with bad_server("well") as other, bad_server(mode, other.url) as bad:
        async with asking(bad) as server:
            assert await failure(server) == ("ToolFailed", "redirect")
        assert bad.asked[0][1]["authorization"] == KEY["authorization"]
        assert other.asked == []


async def test_500_tools_come_in_pages_and_a_failed_call_is_no_end() -> None:
    with bad_server("many") as bad:
        async with asking(bad) as server:
            assert len((await server.listing()).tools) == 500
    with bad_server("dies") as bad:
        async with asking(bad) as server:
            assert await failure(server) == ("ToolFailed", "incomplete")
            bad.mode = "well"
            assert [one.text for one in (await server.call("go", {})).content] == ["well"]


async def test_a_broken_stream_is_taken_up_again() -> None:
    with bad_server("resumes") as bad:
        async with asking(bad) as server:
            assert [one.text for one in (await server.call("go", {})).content] == ["at last"]


@pytest.mark.program
async def test_one_process_outlives_them_all(tmp_path: Path) -> None:
    modes = ("huge", "huge_event", "dies", "cut", "junk", "fails", "redirect")
    reported = ("16,000,000 bytes", "16,000,000 bytes", "before it was whole", "cannot be reached")
    reported += ("before it was whole", "HTTP 503", "a redirect (HTTP 307), which is not followed")
    home = tmp_path / "home"
    home.mkdir()
    with bad_server("well") as well:
        bad = [bad_server(mode, well.url) for mode in modes]
        servers = {mode: one.__enter__() for mode, one in zip(modes, bad, strict=True)}
        try:
            entries = {
                name: {"url": one.url, "headers": KEY, "trusted_tools": ["go"]}
                for name, one in {**servers, "well": well}.items()
            }
            calls = [
                tool_call("mcp", {"action": "call", "server": name, "tool": "go"})
                for name in entries
            ]
            environment = configure(home, entries)
            async with sidecar(
                [answer(*calls), answer(text("ok"))], roots=[tmp_path], environment=environment
            ) as world:
                await world.turn(await world.session(), "go")
                *failed, done = results(world)
                assert done.endswith("well")
                for mode, words, result in zip(modes, reported, failed, strict=True):
                    assert words in result, mode
                assert "secret-key" not in str(world.asked())
        finally:
            for one in bad:
                one.__exit__(None, None, None)
