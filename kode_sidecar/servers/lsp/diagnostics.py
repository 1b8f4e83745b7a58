"""Publishes diagnostics of several owners together: LSP replaces all of a file at once."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SHORTEST_DELAY = 0.1
_SHARE_OF_TIME = 10

ByUri = Mapping[str, Sequence[Any]]


class PublishedDiagnostics:
    """What is published now; only files whose diagnostics have changed are published again."""

    def __init__(self, notify: Callable[[str, Any], None]) -> None:
        self._notify = notify
        self._of_owners: dict[str, ByUri] = {}
        self._shown: dict[str, list[Any]] = {}

    def set(self, owner: str, diagnostics: ByUri) -> bool:
        """Publish all that an owner has now; return whether that changed anything."""
        self._of_owners[owner] = diagnostics
        wanted: dict[str, list[Any]] = {uri: [] for uri in self._shown}
        for owned in self._of_owners.values():
            for uri, found in owned.items():
                wanted.setdefault(uri, []).extend(found)
        changed = {uri: now for uri, now in wanted.items() if self._shown.get(uri, []) != now}
        for uri, now in changed.items():
            self._notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": now})
        self._shown = {uri: now for uri, now in wanted.items() if now}
        return bool(changed)


class PacedRefresh:
    """Runs a refresh soon, in at most a tenth of the time: typing in a large file stays fast."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._timer: asyncio.TimerHandle | None = None
        self._cost = 0.0

    def schedule(self) -> None:
        """Refresh soon."""
        if self._timer is None:
            delay = max(_SHORTEST_DELAY, self._cost * _SHARE_OF_TIME)
            self._timer = asyncio.get_running_loop().call_later(delay, self.now)

    def now(self) -> None:
        """Refresh at once."""
        self.close()
        began = time.perf_counter()
        self._run()
        self._cost = time.perf_counter() - began

    def close(self) -> None:
        """Refresh no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
