"""Is anybody there? Asked all the while, and how long each answer took."""

import asyncio
from pathlib import Path
from time import perf_counter

from tests.support.sidecar import HANG_SECONDS, World


class Pings:
    """`seconds` by the clock, and what the event loop worked meanwhile, `worked`, in seconds.

    The second is the same on a machine that is busy with other things; it is Linux's alone.
    """

    def __init__(self, world: World, pid: int | None = None) -> None:
        self._world = world
        pid = pid or world.pid  # another one where the process was started by a program
        self._schedule = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self.seconds: list[float] = []
        self.worked: list[float] = []

    async def __aenter__(self) -> "Pings":
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def __str__(self) -> str:
        return (
            f"{len(self.seconds)} pings: p99 {percentile(self.seconds) * 1000:.0f} ms, worst "
            f"{max(self.seconds) * 1000:.0f} ms; of these the loop worked p99 "
            f"{percentile(self.worked) * 1000:.0f} ms, worst {max(self.worked) * 1000:.0f} ms"
        )

    def work(self) -> float:
        """How long the event loop has worked so far, in seconds."""
        return int(self._schedule.read_text().split()[0]) / 1e9

    async def _ask(self) -> None:
        while True:
            asked, worked = perf_counter(), self.work()
            await self._world.client.request("kode/ping", {}, HANG_SECONDS)
            self.seconds.append(perf_counter() - asked)
            self.worked.append(self.work() - worked)
            await asyncio.sleep(0.01)  # a pause, nothing waits for it


def percentile(values: list[float], share: float = 0.99) -> float:
    """The value that this share of them does not pass."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
