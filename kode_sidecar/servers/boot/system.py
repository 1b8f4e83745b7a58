"""Where a process gets its time, ids, random numbers and model hosts from."""

import os
import platform
import random
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.core.kernel.contracts import Clock, IdKind, NewId
    from kode_sidecar.core.settings import LoadedSettings
    from kode_sidecar.infrastructure.mcp.contracts import Access, Authorize
    from kode_sidecar.infrastructure.records.journal import JournalTail

Open = TypeVar("Open")

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX_LENGTH = 6


class SystemClock:
    """`kernel.contracts.Clock` on the system's clocks."""

    def __init__(self) -> None:
        self._second = -1
        self._shown = ""

    def timestamp(self) -> str:
        """Return the time now, RFC 3339 in UTC with milliseconds."""
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:  # every event asks, and many come within a second
            self._second = second
            self._shown = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._shown}.{nanoseconds // 1_000_000:03d}Z"

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()


class RandomIds:
    """`kernel.contracts.NewId`: UUIDs for sessions and messages (C1), short ids otherwise.

    A short id is a letter for its kind, a random prefix of this process and a counter: unique
    across all sessions and restarts, and cheap in every delta.
    """

    def __init__(self) -> None:
        number = int.from_bytes(os.urandom(5), "big")
        self._prefix = _base36(number)[-_PREFIX_LENGTH:].rjust(_PREFIX_LENGTH, "0")
        self._count = 0

    def __call__(self, kind: "IdKind") -> str:
        """Return a new id, `[a-z0-9-]{1,64}`."""
        if kind in ("session", "message"):
            return str(uuid.uuid4())
        self._count += 1
        return f"{kind[0]}{self._prefix}{_base36(self._count)}"


class Environment(Protocol):
    """Everything that makes two runs of one conversation differ, so it can be recorded and played.

    `platform` is the system's name as the model sees it; `random()` is in [0, 1).
    `remembers_hosts`: use what hosts said about their models in earlier processes. `has_runs`: jobs
    may be started; a recording holds none. `home` is the user's own folder, None where nothing of
    it may be read: a recording does not hold it.
    """

    platform: str
    remembers_hosts: bool
    has_runs: bool
    home: Path | None
    clock: "Clock"
    new_id: "NewId"
    random: Callable[[], float]

    def begin(
        self,
        loaded: "LoadedSettings",
        roots: Sequence[Path],
        handshake: tuple[bytes, ...],
        log: Callable[[str], None],
    ) -> "LoadedSettings":
        """Return the settings to serve with; called once, on the loop, before anything else.

        `handshake` ends with `initialize` and its answer; before them is what came too early.
        Raises KodeError `Storage`.
        """
        ...

    def hosts(self, make: Callable[[], Open]) -> Open:
        """Return what opens connections to model hosts; `make` imports and builds the real one."""
        ...

    def found(self, name: str, find: Callable[[], str]) -> str:
        """Return the path of the program `name`, as `find` does.

        Raises KodeError as `find` does.
        """
        ...

    def server_access(self, name: str, authorize: "Authorize | None") -> "Access":
        """Return how to reach an MCP server at an address."""
        ...

    async def grown(self, tail: "JournalTail") -> Sequence[bytes] | None:
        """Wait for what another process writes to a journal; None once its session is gone."""
        ...

    def transcript(self) -> str | None:
        """Return everything recorded so far, None without a recording.

        Raises KodeError `Storage`.
        """
        ...

    def end(self) -> None:
        """Note that the process ends normally."""
        ...


class System:
    """The `Environment` of a process that neither records nor plays a recording."""

    def __init__(self) -> None:
        self.platform: str = platform.system()
        self.remembers_hosts = self.has_runs = True
        self.home: Path | None = home_folder()
        self.clock: Clock = SystemClock()
        self.new_id: NewId = RandomIds()
        self.random: Callable[[], float] = random.random

    def begin(
        self,
        loaded: "LoadedSettings",
        roots: Sequence[Path],
        handshake: tuple[bytes, ...],
        log: Callable[[str], None],
    ) -> "LoadedSettings":
        """Return the settings as they were loaded."""
        del roots, handshake, log
        return loaded

    def hosts(self, make: Callable[[], Open]) -> Open:
        """Return the real hosts."""
        return make()

    def found(self, name: str, find: Callable[[], str]) -> str:
        """Search for the program."""
        del name
        return find()

    def server_access(self, name: str, authorize: "Authorize | None") -> "Access":
        """Return the usual access."""
        del name
        return None, authorize

    async def grown(self, tail: "JournalTail") -> Sequence[bytes] | None:
        """Wait until the file grows."""
        return await tail.grown()

    def transcript(self) -> str | None:
        """Return None: nothing is recorded."""
        return None

    def end(self) -> None:
        """Do nothing: there is no recording to close."""


def home_folder() -> Path | None:
    """Return the user's own folder; None where the system does not know it."""
    try:
        return Path.home()
    except RuntimeError:  # no variable and no account says where it is
        return None


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
