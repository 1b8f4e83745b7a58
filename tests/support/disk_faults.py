"""A disk that fails at one operation, in this process: open, write, fsync or rename below a folder.

Operations are counted; the one of the given number is not done, or half, or the process dies, or
the power fails. A disk that is `full` stays full: from then on nothing is written.
"""

import builtins
import errno
import io
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tests.support.power_cut import PowerCut

KINDS = ("kill", "torn", "ENOSPC", "EIO", "short")
LASTING = ("full", "cut", "cut-zeros")
DEADLY = ("kill", "torn", "cut", "cut-zeros")
_CHANGING = os.O_CREAT | os.O_TRUNC


class SeenFile(io.RawIOBase):
    """A file whose writes can be seen: those of Python's own are made in C."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return os.write(self._fd, bytes(data))

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._fd)


class DiskFaults:
    """Install it once. `at` 0 only counts."""

    def __init__(self, folder: str, at: int, kind: str) -> None:
        self.count = 0
        self._counting = threading.Lock()
        self._folder, self._above = folder, os.path.dirname(folder)
        self._at = at
        self._kind = kind
        self._fds: set[int] = set()
        self._full = False
        # What is above the folder is taken as it is: it is there before anything is kept.
        self._power = PowerCut(Path(folder).parent) if kind.startswith("cut") else None
        self._open, self._close = os.open, os.close
        self._write, self._fsync = os.write, os.fsync
        self._rename = os.rename

    def install(self) -> None:
        os.open = self._faulty_open  # type: ignore[assignment]
        os.close = self._faulty_close
        os.write = self._faulty_write
        os.fdopen = self._faulty_fdopen
        os.fsync = self._faulty_fsync
        os.replace = self._renaming(os.replace)  # type: ignore[assignment]
        os.rename = self._renaming(self._rename)  # type: ignore[assignment]
        os.register_at_fork(after_in_child=self._stop_watching)
        io.open = builtins.open = self._reading(builtins.open)  # type: ignore[assignment]

    def _is_ours(self, path: Any) -> bool:
        if not isinstance(path, str | os.PathLike):
            return False
        name = str(path)
        return name.startswith(self._folder) or name == self._above

    def _next(self) -> int:
        """The number of an operation; threads of their own make some at the same time."""
        with self._counting:
            self.count += 1
            return self.count

    def _fails_now(self) -> None:
        """Count; what is due happens instead of the operation."""
        if self._next() == self._at:
            self._fail()

    def _no_room(self) -> None:
        """The same for what needs room: a full disk refuses that ever after."""
        if self._kind == "full" and 0 < self._at <= self.count:
            self._fail()

    def _fail(self) -> None:
        if self._power is not None:
            self._power.happen(zeros=self._kind == "cut-zeros")
        if self._kind in DEADLY:
            _die()
        name = "ENOSPC" if self._kind in ("short", "full") else self._kind
        raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

    def _faulty_open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not self._is_ours(path):
            return self._open(path, flags, *rest, **named)
        self._fails_now()
        if flags & _CHANGING and not os.path.exists(path):
            self._no_room()
        fd = self._open(path, flags, *rest, **named)
        if self._power is not None and flags & _CHANGING:
            self._power.created(fd)
        self._fds.add(fd)
        return fd

    def _faulty_close(self, fd: int) -> None:
        self._fds.discard(fd)
        self._close(fd)

    def _faulty_write(self, fd: int, data: bytes) -> int:
        if fd not in self._fds:
            return self._write(fd, data)
        number = self._next()
        if self._full:
            self._full = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._no_room()
        if number != self._at:
            return self._write(fd, data)
        if self._kind in ("torn", "short"):
            done = self._write(fd, data[: len(data) // 2])
            if self._kind == "torn":
                _die()
            self._full = True  # as a full disk does: a part, then nothing
            return done
        self._fail()
        raise AssertionError

    def _faulty_fdopen(self, fd: int, *rest: Any, **named: Any) -> Any:
        if fd not in self._fds:
            return open(fd, *rest, **named)
        return io.BufferedWriter(SeenFile(fd))

    def _faulty_fsync(self, fd: int) -> None:
        if fd in self._fds:
            self._fails_now()
        self._fsync(fd)
        if self._power is not None and fd in self._fds:
            self._power.synced(fd)

    def _stop_watching(self) -> None:
        """Let the process that makes the image of a power cut rename what it made."""
        os.rename = self._rename

    def _renaming(self, rename: Callable[..., None]) -> Callable[..., None]:
        def faulty(source: Any, target: Any, **named: Any) -> None:
            if self._is_ours(target):
                self._fails_now()
            rename(source, target, **named)

        return faulty

    def _reading(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        def faulty(file: Any, *rest: Any, **named: Any) -> Any:
            if self._is_ours(file):
                self._fails_now()
            return opened(file, *rest, **named)

        return faulty


def _die() -> NoReturn:
    """End as whatever is killed ends, by hand or by a power cut: with this signal, not a code."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError
