"""Lets what comes from outside in one thing at a time, each when the one before has had its effect.

Two inputs that meet in one round of the event loop have effects in an order that is up to chance,
and that no recording could hold.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast


class OneByOne:
    """On the loop, one for all. An input may enter when nothing is left but to wait for it."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._looking = False

    def enter(self, enter: Callable[[], None]) -> None:
        """Call `enter` when it is its turn; in the order of these calls."""
        self._waiting.append(enter)
        self._look_soon()

    async def turn(self) -> None:
        """Returns when it is the caller's turn, who goes on at once."""
        entered = asyncio.Event()
        self.enter(entered.set)
        await entered.wait()

    def _look_soon(self) -> None:
        # Only once at a time: one would take the other for something that is left to do.
        if self._waiting and not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._looking = False
        # There is no public way to ask whether anything else is due.
        if not cast(Any, asyncio.get_running_loop())._ready:
            self._waiting.popleft()()
        self._look_soon()
