"""The whole sidecar dies at any moment: no MCP server, nor what one started, outlives it (F5)."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.terminal.client.connection import ConnectionLost, RpcError
from tests.conftest import FULL, SEED_VARIABLE
from tests.infrastructure.mcp.test_stdio_servers import named, until
from tests.process.test_mcp import configure, raw
from tests.support.sidecar import World, sidecar

KILLS = 5
STAY = ("forks", "no_start")
"""What does not end by itself when its standard input does."""
MODES = (*STAY, "plain", "silent", "dies", "junk")


async def use(world: World, name: str) -> None:
    """Start a server, have it asked something, and again."""
    while True:
        for method, more in (("start", {}), ("read", {"uri": "x"}), ("prompt", {"prompt": "x"})):
            with suppress(RpcError):
                await world.client.request(f"kode/mcp/{method}", {"name": name, **more}, 30)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("batch", range(200 if FULL else 1))
async def test_no_child_outlives_a_killed_sidecar(batch: int, tmp_path: Path) -> None:
    """Six servers start, serve, die and hang all the while: 1,000 kills with all batches."""
    random = Random(f"{os.environ[SEED_VARIABLE]} {batch}")
    starts, home = tmp_path / "starts", tmp_path / "home"
    home.mkdir()
    environment = configure(home, {mode: raw(mode, starts) for mode in MODES})
    seen = 0
    for _ in range(KILLS):
        async with sidecar([], roots=[tmp_path], environment=environment) as world:
            chosen = [random.choice(STAY), random.choice(MODES)]
            using = [asyncio.create_task(use(world, name)) for name in chosen]
            if random.random() < 0.5:
                await until(lambda: bool(named(starts)))
            await asyncio.sleep(random.uniform(0, 0.5))  # the moment is what is tried
            seen += len(named(starts))
            await world.kill()
            ended = await asyncio.gather(*using, return_exceptions=True)
            assert all(isinstance(end, ConnectionLost) for end in ended), ended
        await until(lambda: not named(starts))
    print(f"processes that were alive when it was killed: {seen}")  # noqa: T201
