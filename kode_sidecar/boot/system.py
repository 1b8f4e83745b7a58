"""What comes from outside of the process: time, ids, chance. A recording brings its own."""

import asyncio
import os
import platform
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.kernel.contracts import Alarm, Clock, IdKind, NewId, Work
    from kode_sidecar.settings import LoadedSettings

Open = TypeVar("Open")

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX_LENGTH = 6


class SystemClock:
    """`kernel.contracts.Clock` on the system's clocks."""

    def __init__(self) -> None:
        self._second = -1
        self._shown = ""

    def timestamp(self) -> str:
        """Now, RFC 3339 in UTC with milliseconds."""
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:  # every event asks, and many come within a second
            self._second = second
            self._shown = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._shown}.{nanoseconds // 1_000_000:03d}Z"

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()


class RandomIds:
    """`kernel.contracts.NewId`: UUIDs for sessions and messages, short ids for the many.

    A short id is a letter of its kind, a random prefix of this process and a counter: unique over
    all sessions and restarts, and cheap in every delta.
    """

    def __init__(self) -> None:
        number = int.from_bytes(os.urandom(5), "big")
        self._prefix = _base36(number)[-_PREFIX_LENGTH:].rjust(_PREFIX_LENGTH, "0")
        self._count = 0

    def __call__(self, kind: "IdKind") -> str:
        """A new id, `[a-z0-9-]{1,64}`."""
        if kind in ("session", "message"):
            return str(uuid.uuid4())
        self._count += 1
        return f"{kind[0]}{self._prefix}{_base36(self._count)}"


class Outside(Protocol):
    """All that makes two runs of one conversation differ, to be recorded or played.

    `now` and `sleep` count seconds for whoever waits between requests; `chance()` is in [0, 1).
    `platform` is the system's name as the model is told of it.
    """

    platform: str
    clock: "Clock"
    new_id: "NewId"
    alarm: "Alarm"
    work: "Work"
    chance: Callable[[], float]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]

    def begin(
        self,
        loaded: "LoadedSettings",
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> "LoadedSettings":
        """The settings to serve with; called once, on the loop, before anything else.

        `handshake` is `initialize` and its answer. Raises KodeError `Storage`.
        """
        ...

    def hosts(self, make: Callable[[], Open]) -> Open:
        """What opens connections to model hosts; `make` imports what the real one needs."""
        ...

    def transcript(self) -> str | None:
        """All that was recorded so far; None without a recording. Raises KodeError `Storage`."""
        ...

    def end(self) -> None:
        """The process ends as it should."""
        ...


class System:
    """`Outside` as it is."""

    def __init__(self) -> None:
        self.platform: str = platform.system()
        self.clock: Clock = SystemClock()
        self.new_id: NewId = RandomIds()
        self.alarm: Alarm = call_later
        self.work: Work = _just_wait
        self.chance: Callable[[], float] = random.random
        self.now: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def begin(
        self,
        loaded: "LoadedSettings",
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> "LoadedSettings":
        """See `Outside`."""
        del roots, handshake, log
        return loaded

    def hosts(self, make: Callable[[], Open]) -> Open:
        """See `Outside`."""
        return make()

    def transcript(self) -> str | None:
        """See `Outside`."""
        return None

    def end(self) -> None:
        """See `Outside`."""


def call_later(name: str, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
    """`kernel.contracts.Alarm` on the running loop."""
    del name
    return asyncio.get_running_loop().call_later(seconds, ring).cancel


async def _just_wait(name: str, done: Awaitable[Open]) -> Open:
    del name
    return await done


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
