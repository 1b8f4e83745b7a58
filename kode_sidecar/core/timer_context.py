"""A context with at most one timer, for what reports at intervals while something runs."""

import asyncio
from collections.abc import Callable
from typing import Self


class TimerContext:
    """Leaving the `with` block cancels the timer, so that nothing is reported afterwards."""

    _timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, callback)
