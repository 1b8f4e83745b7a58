"""Append-only files of one JSON record per line, split only on the byte 0x0A."""

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_read, not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, salvage

# Windows would otherwise turn line feeds into CRLF.
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_BOM = b"\xef\xbb\xbf"

T = TypeVar("T")


@dataclass(frozen=True)
class LineProblem:
    """A line without a readable record. `line` counts from 1; the line stays in the file."""

    line: int
    reason: str


class JsonlFile:
    """One file to append to; created when absent, readable by its owner only.

    It is open only while something in it waits for its fsync, so that a process with a hundred
    sessions needs few descriptors. If a crash left a torn last line, a newline ends it before the
    next record. Raises KodeError `Storage`.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        self._written = self._synced = 0
        self._fd = -1
        self._closed = False
        self._changed = threading.Lock()  # the loop appends while a thread syncs; never held long
        self._syncing = threading.Lock()  # for threads: none may close the file during an fsync
        try:
            fd = os.open(path, _FLAGS | os.O_CREAT, 0o600)
            try:
                self._torn = _has_torn_tail(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise not_saved(self.name, error) from None

    def append(self, record: bytes) -> None:
        """Write one record by one system call; it is written, not yet saved.

        `record` ends without a line feed. Raises KodeError `Storage`; nothing of the record then
        stays in the file.
        """
        with self._changed:
            line = b"\n" + record + b"\n" if self._torn else record + b"\n"
            done = 0
            try:
                if self._fd < 0:
                    self._fd = self._opened()
                while done < len(line):
                    count = os.write(self._fd, line[done:] if done else line)
                    if not count:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    done += count
            except OSError as error:
                self._take_back(done)
                if self._written == self._synced:
                    self._release()
                raise not_saved(self.name, error) from None
            self._torn = False
            self._written += 1

    def sync(self) -> None:
        """fsync what was appended, if anything was. Blocks; raises KodeError `Storage`."""
        with self._syncing:
            written = self._written
            if written == self._synced:
                return
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise not_saved(self.name, error) from None
            with self._changed:
                self._synced = written
                if self._written == written:
                    self._release()

    def close(self) -> None:
        """Release the file; harmless when repeated. Nothing is appended afterwards."""
        with self._changed:
            self._closed = True
            self._release()

    def _opened(self) -> int:
        if self._closed:  # another process may hold its lock by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return os.open(self._path, _FLAGS)  # without O_CREAT: a deleted file must stay deleted

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _take_back(self, done: int) -> None:
        if not done:
            return
        try:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - done)
        except OSError:
            self._torn = True


@dataclass(frozen=True)
class Lines(Generic[T]):
    """The contents of a file: its records in file order, and its unreadable lines.

    `whole` are the intact records as bytes; `damaged` is the rest.
    """

    records: list[T]
    problems: list[LineProblem]
    whole: list[bytes]
    damaged: list[bytes]


def read_records(path: Path, decode: Callable[[bytes], T]) -> tuple[list[T], list[LineProblem]]:
    """Return every record of the file in order, and the unreadable lines; see `read_lines`."""
    lines = read_lines(path, decode, keep=False)
    return lines.records, lines.problems


def read_lines(path: Path, decode: Callable[[bytes], T], *, keep: bool = True) -> Lines[T]:
    """Return every record of the file, and every unreadable line.

    `decode` may raise `json_record.DECODE_ERRORS`. A last line without its newline counts if it
    decodes: a torn record never does. Intact records inside a damaged line are found by their
    checksums. A missing file has no records. Without `keep`, `whole` lacks intact lines.
    Raises KodeError `Storage` when the file cannot be read.
    """
    found: Lines[T] = Lines([], [], [], [])
    for number, raw in _raw_lines(path):
        line = _record_of(number, raw)
        try:
            if b"\0" in raw:  # records contain none: the disk left them, and they must be removed
                found.problems.append(LineProblem(number, "zero bytes"))
            if line:
                found.records.append(decode(line))
                if keep:
                    found.whole.append(line)
        except DECODE_ERRORS as error:
            found.problems.append(LineProblem(number, str(error)))
            _salvage(line, decode, found)
    return found


def stream_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1; one in memory at a time.

    Raises KodeError `Storage` when the file cannot be read; a missing file has no lines.
    """
    for number, raw in _raw_lines(path):
        record = _record_of(number, raw)
        if record:
            yield number, record


def _record_of(number: int, line: bytes) -> bytes:
    # A crash can leave a run of zero bytes where the file system had not written yet.
    return line.removeprefix(_BOM if number == 1 else b"").strip(b" \t\r\n\0")


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from enumerate(file, start=1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise not_read(path.name, error) from None


def _salvage(line: bytes, decode: Callable[[bytes], T], found: Lines[T]) -> None:
    whole, rest = salvage(line)
    for record in whole:
        try:
            found.records.append(decode(record))
            found.whole.append(record)
        except DECODE_ERRORS:
            rest.append(record)
    found.damaged.extend(rest)


def _has_torn_tail(fd: int) -> bool:
    size = os.fstat(fd).st_size
    if not size:
        return False
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1) != b"\n"


def open_lines(path: Path, decode: Callable[[bytes], T]) -> Lines[T]:
    """Read the lines as the only writer of the file, and move the damage into `FILE.bad`.

    If that move fails, the damage stays until the next time, and the intact records are returned.
    Raises KodeError `Storage` when the file cannot be read.
    """
    lines = read_lines(path, decode, keep=False)
    if lines.problems:
        lines = read_lines(path, decode)
        with suppress(KodeError):
            if lines.damaged:
                append_lines(path.with_name(f"{path.name}.bad"), lines.damaged)
            whole = b"".join(line + b"\n" for line in lines.whole)
            replace_file(path, whole, durable=True)
    return lines


def append_lines(path: Path, records: Iterable[bytes]) -> None:
    """Append and save records to a file that is not open here. Raises KodeError `Storage`."""
    with closing(JsonlFile(path)) as file:
        for record in records:
            file.append(record)
        file.sync()
