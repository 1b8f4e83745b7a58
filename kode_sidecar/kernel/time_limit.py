"""A time limit whose end is in a recording, like everything else that comes from outside."""

import asyncio
from types import TracebackType

from kode_sidecar.kernel.contracts import Alarm


class TimeLimit:
    """`asyncio.timeout` by an alarm: `async with` raises TimeoutError once it has rung."""

    def __init__(self, alarm: Alarm, name: str, seconds: float) -> None:
        self._alarm = alarm
        self._name = name
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    def expired(self) -> bool:
        """Has it rung?"""
        return self._timeout.expired()

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._unset = self._alarm(self._name, self._seconds, self._ring)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unset()
        await self._timeout.__aexit__(kind, error, trace)

    def _ring(self) -> None:
        self._timeout.reschedule(asyncio.get_running_loop().time())
