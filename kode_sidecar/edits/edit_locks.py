"""Edits of one document never overlap, whichever sessions they come from."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager


class EditLocks:
    """One lock per document, shared by all sessions of an editor."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, key: str) -> asyncio.Lock:
        """The lock of the document with that canonical key."""
        return self._locks.setdefault(key, asyncio.Lock())

    @asynccontextmanager
    async def of_all(self, keys: Iterable[str]) -> AsyncGenerator[None, None]:
        """Hold the locks of several documents."""
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):
                await held.enter_async_context(self.of(key))
            yield
