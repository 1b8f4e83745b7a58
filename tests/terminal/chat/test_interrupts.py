"""Ctrl-C as an event: whatever moment it comes at, somebody hears of it."""

import asyncio
import signal
import sys

import pytest

from kode_sidecar.terminal.chat.keyboard import Interrupted, Interrupts
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="raise_signal ends it there")


@pytest.mark.parametrize("steps", range(8))
async def test_ctrl_c_beside_an_arriving_line_is_not_lost(steps: int) -> None:
    with Interrupts(lambda: None) as interrupts:
        line = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(interrupts.unless(line))
        await asyncio.sleep(0)
        line.set_result("go")
        for _ in range(steps):
            await asyncio.sleep(0)
        signal.raise_signal(signal.SIGINT)
        async with asyncio.timeout(HANG_SECONDS):
            try:
                assert await reading == "go"
            except Interrupted:
                return
            await interrupts.wait()
