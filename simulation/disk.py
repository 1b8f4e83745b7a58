"""A disk that fails at its n-th call, and loses at a power cut what nobody had synced.

Below one folder every open, write, fsync and rename of this process goes through here. What an
fsync has not covered may be there afterwards, or be gone, or be there in part; so may a name that
its folder was not synced for.
"""

import builtins
import errno
import io
import os
import random
import shutil
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from simulation.disk_databases import SeenConnection, database_error
from tests.support.disk_faults import SeenFile

_ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO, "short": errno.ENOSPC}


@dataclass
class _File:
    """What a power cut cannot take from a file; `before` is what its name led to before."""

    content: bytes | None = None
    named: bool = False
    before: bytes | None = None


@dataclass
class _Plan:
    """What happens at a coming call: `kind` is an error, `short` or `power`."""

    kind: str
    calls_left: int


@dataclass
class Disk:
    """`chance` decides what of the unsynced is left. A context manager: the calls are its own."""

    root: Path
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    is_dark: bool = False
    _plan: _Plan | None = None
    _fds: dict[int, str] = field(default_factory=dict[int, str])
    _files: dict[str, _File] = field(default_factory=dict[str, _File])
    _left: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _is_full: bool = False
    _databases: list[SeenConnection] = field(default_factory=list[SeenConnection])

    def __enter__(self) -> "Disk":
        self._own: Any = (os.open, os.close, os.write, os.fsync, os.fdopen, os.replace, os.rename)
        self._own_link: Any = os.link
        self._reads: Any = builtins.open
        os.open = self._open  # type: ignore[assignment]
        os.close, os.write, os.fsync = self._close, self._write, self._fsync  # type: ignore[assignment]
        os.fdopen = self._fdopen  # type: ignore[assignment]
        os.replace = os.rename = self._rename  # type: ignore[assignment]
        os.link = self._link  # type: ignore[assignment]
        io.open = builtins.open = self._read  # type: ignore[assignment]
        self._connects, sqlite3.connect = sqlite3.connect, self._connect
        self._sleep, time.sleep = time.sleep, _no_time_passes
        return self

    def __exit__(self, *_: object) -> None:
        os.open, os.close, os.write, os.fsync, os.fdopen, os.replace, os.rename = self._own
        os.link = self._own_link
        io.open = builtins.open = self._reads
        sqlite3.connect = self._connects
        time.sleep = self._sleep

    # ---- what a story does with it ---------------------------------------------------------------

    def fail_at(self, kind: str, calls: int) -> None:
        """Let a coming call fail; `power`: at that call the power goes."""
        self._plan = _Plan(kind, calls)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._plan, self._is_full = None, False

    def cut_power(self) -> None:
        """From this moment on nothing is written any more."""
        if not self.is_dark:
            self._left = self._what_is_left()
            self.is_dark = True

    def freeze(self) -> None:
        """The process is gone: from this moment on it writes nothing, and nothing is lost."""
        if not self.is_dark:
            self._left = {path: self._content(path) for path in self._paths()}
            self.is_dark = True

    def begin_again(self) -> None:
        """The process is gone: its files are closed. After a power cut the rest is as it is."""
        for fd in list(self._fds):
            self._close(fd)
        for database in self._databases:
            database.close()
        self._databases.clear()
        self._plan, self._is_full = None, False
        if not self.is_dark:
            return
        self.is_dark = False
        for path in self._paths():
            if path not in self._left:
                os.unlink(path)
        for path, content in self._left.items():
            if os.path.isdir(os.path.dirname(path)):
                self._overwrite(path, content)
        self._files = {path: _File(content, named=True) for path, content in self._left.items()}

    def wipe(self) -> None:
        """An empty disk."""
        self.is_dark = False
        self.begin_again()
        self._files.clear()
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()

    # ---- what survives ---------------------------------------------------------------------------

    def _paths(self) -> list[str]:
        return [os.path.join(at, name) for at, _, names in os.walk(self.root) for name in names]

    def _content(self, path: str) -> bytes:
        with self._reads(path, "rb") as file:
            return file.read()

    def _overwrite(self, path: str, content: bytes) -> None:
        with self._reads(path, "wb") as file:
            file.write(content)

    def _what_is_left(self) -> dict[str, bytes]:
        left: dict[str, bytes] = {}
        for path in sorted(self._paths()):
            known = self._files.setdefault(path, _File())
            if not known.named and self.chance.random() < 0.5:
                if known.before is not None:
                    left[path] = known.before
                continue
            left[path] = self._torn(self._content(path), known.content)
        return left

    def _torn(self, now: bytes, synced: bytes | None) -> bytes:
        """What was synced, and any part of what came after it."""
        sure = synced if synced is not None and now.startswith(synced) else b""
        more = now[len(sure) :]
        kept = more[: self.chance.randint(0, len(more))] if more else b""
        match self.chance.randrange(3):
            case 0:
                return now
            case 1 if more:
                return sure + kept + b"\0" * min(8, len(more) - len(kept))
            case _:
                return sure + kept

    # ---- the calls -------------------------------------------------------------------------------

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | Path) and str(path).startswith(str(self.root))

    def _count(self) -> None:
        """A call is about to be done; what is due happens instead of it."""
        plan = self._plan
        if plan is not None:
            plan.calls_left -= 1
            if plan.calls_left <= 0:
                self._plan = None
                if plan.kind == "power":
                    self.cut_power()
                elif plan.kind == "short":
                    self._is_full = True
                else:
                    raise _error(plan.kind)
        if self.is_dark:
            raise _error("eio")

    def _open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not self._is_ours(path):
            return self._own[0](path, flags, *rest, **named)
        self._count()
        fd = self._own[0](path, flags, *rest, **named)
        self._fds[fd] = str(path)
        if flags & os.O_CREAT:
            self._files.setdefault(str(path), _File())
        return fd

    def _close(self, fd: int) -> None:
        self._fds.pop(fd, None)
        self._own[1](fd)

    def _write(self, fd: int, data: Any) -> int:
        if fd in self._fds:
            if self._is_full:
                self._is_full = False
                raise _error("short")
            self._count()
            if self._is_full:  # as a full disk does: a part, then nothing
                return self._own[2](fd, bytes(data)[: len(data) // 2])
        return self._own[2](fd, data)

    def _fsync(self, fd: int) -> None:
        path = self._fds.get(fd)
        if path is None:
            return self._own[3](fd)
        self._count()
        if not os.path.isdir(path):
            self._files.setdefault(path, _File()).content = self._content(path)
            return None
        for name in os.listdir(path):
            file = self._files.setdefault(os.path.join(path, name), _File())
            file.named, file.before = True, None
        return None

    def _fdopen(self, fd: int, *rest: Any, **named: Any) -> Any:
        return (
            io.BufferedWriter(SeenFile(fd)) if fd in self._fds else self._own[4](fd, *rest, **named)
        )

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        if not self._is_ours(target):
            return self._own[5](source, target, **named)
        self._count()
        was = self._files.get(str(target))
        self._own[5](source, target, **named)
        moved = self._files.pop(str(source), _File())
        before = (was.content if was.named else was.before) if was is not None else None
        self._files[str(target)] = _File(moved.content, named=False, before=before)
        return None

    def _link(self, source: Any, target: Any, **named: Any) -> None:
        """Another name of the same file: what is synced of the one is synced of the other."""
        if not self._is_ours(target):
            return self._own_link(source, target, **named)
        self._count()
        self._own_link(source, target, **named)
        self._files[str(target)] = _File(self._files.get(str(source), _File()).content)
        return None

    def _read(self, file: Any, *rest: Any, **named: Any) -> Any:
        if self._is_ours(file):
            self._count()
        return self._reads(file, *rest, **named)

    def _connect(self, database: Any, **named: Any) -> Any:
        path = unquote(urlsplit(str(database)).path)
        if not self._is_ours(path):
            return self._connects(database, **named)
        connection = self._connects(database, factory=SeenConnection, **named)
        connection.before_write = self._count_commit
        connection.saved = lambda: self._note_saved(path, f"{path}-wal")
        self._databases.append(connection)
        return connection

    def _count_commit(self) -> None:
        """One that finds no room for a part of it is not there at all."""
        try:
            self._count()
        except OSError as error:
            raise database_error(error) from None
        if self._is_full:
            self._is_full = False
            raise database_error(_error("short"))

    def _note_saved(self, *paths: str) -> None:
        for path in filter(os.path.exists, paths):
            self._files.setdefault(path, _File()).content = self._content(path)


def _no_time_passes(seconds: float) -> None:
    """Who waits for a lock looks again at once: there is one thread, so nobody lets it go."""


def _error(kind: str) -> OSError:
    number = _ERRORS[kind]
    return OSError(number, os.strerror(number))
