"""A disk that fails at one operation, in this process: open, write, fsync or rename below a folder.

Operations are counted; the one of the given number is not done, or half, or the process dies.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable
from typing import Any

KINDS = ("kill", "torn", "ENOSPC", "EIO", "short")


class _Raw(io.RawIOBase):
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
        self._folder = folder
        self._at = at
        self._kind = kind
        self._fds: set[int] = set()
        self._full = False
        self._open, self._close = os.open, os.close
        self._write, self._fsync = os.write, os.fsync

    def install(self) -> None:
        os.open = self._faulty_open  # type: ignore[assignment]
        os.close = self._faulty_close
        os.write = self._faulty_write
        os.fdopen = self._faulty_fdopen
        os.fsync = self._faulty_fsync
        os.replace = self._renaming(os.replace)  # type: ignore[assignment]
        os.rename = self._renaming(os.rename)  # type: ignore[assignment]
        io.open = builtins.open = self._reading(builtins.open)  # type: ignore[assignment]

    def _is_ours(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._folder)

    def _fails_now(self) -> None:
        """Count; what is due happens instead of the operation."""
        self.count += 1
        if self.count == self._at:
            self._fail()

    def _fail(self) -> None:
        if self._kind in ("kill", "torn"):
            os._exit(9)
        name = "ENOSPC" if self._kind == "short" else self._kind
        raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

    def _faulty_open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not self._is_ours(path):
            return self._open(path, flags, *rest, **named)
        self._fails_now()
        fd = self._open(path, flags, *rest, **named)
        self._fds.add(fd)
        return fd

    def _faulty_close(self, fd: int) -> None:
        self._fds.discard(fd)
        self._close(fd)

    def _faulty_write(self, fd: int, data: bytes) -> int:
        if fd not in self._fds:
            return self._write(fd, data)
        self.count += 1
        if self._full:
            self._full = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.count != self._at:
            return self._write(fd, data)
        if self._kind in ("torn", "short"):
            done = self._write(fd, data[: len(data) // 2])
            if self._kind == "torn":
                os._exit(9)
            self._full = True  # as a full disk does: a part, then nothing
            return done
        self._fail()
        raise AssertionError

    def _faulty_fdopen(self, fd: int, *rest: Any, **named: Any) -> Any:
        if fd not in self._fds:
            return open(fd, *rest, **named)
        return io.BufferedWriter(_Raw(fd))

    def _faulty_fsync(self, fd: int) -> None:
        if fd in self._fds:
            self._fails_now()
        self._fsync(fd)

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
