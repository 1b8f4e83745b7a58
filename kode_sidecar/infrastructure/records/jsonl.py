"""Append-only files of one JSON record a line, split on the byte 0x0A and on nothing else."""

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
    """A line that holds no record. `line` counts from 1; the line stays where it is."""

    line: int
    reason: str


class JsonlFile:
    """One file to append to; created when absent, readable by its owner only.

    It is open only while something in it waits for its fsync: a process with a hundred sessions
    needs few descriptors. A torn tail that a crash left is closed with a newline, so that it harms
    no later record. Raises KodeError `Storage`.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        self._written = self._synced = 0
        self._fd = -1
        self._closed = False
        self._changed = threading.Lock()  # the loop appends while a thread syncs; held for moments
        self._syncing = threading.Lock()  # of threads alone: none closes what another one syncs
        try:
            fd = os.open(path, _FLAGS | os.O_CREAT, 0o600)
            try:
                self._torn = _has_torn_tail(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise not_saved(self.name, error) from None

    def append(self, record: bytes) -> None:
        """Hand one record to the system with one write; it is on disk, not yet saved.

        `record` holds no line feed. When the write fails nothing of it stays in the file and
        KodeError `Storage` says so.
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
        if self._closed:  # its lock may be another's by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return os.open(self._path, _FLAGS)  # without O_CREAT: one that is gone is not made anew

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
    """The content of a file: its records in order as they stand there, and the lines that are none.

    `whole` is the text of the file without damage, a record a line; `damaged` is the rest.
    """

    records: list[T]
    problems: list[LineProblem]
    whole: list[bytes]
    damaged: list[bytes]


def read_records(path: Path, decode: Callable[[bytes], T]) -> tuple[list[T], list[LineProblem]]:
    """Return every record of the file in order, and the lines that hold none; see `read_lines`."""
    lines = read_lines(path, decode, keep=False)
    return lines.records, lines.problems


def read_lines(path: Path, decode: Callable[[bytes], T], *, keep: bool = True) -> Lines[T]:
    """Return every record of the file, and every line that is none.

    `decode` may raise what `json_record.DECODE_ERRORS` lists. A last line without its newline
    counts when it decodes: a torn record never does. In a damaged line whole records are found by
    their checksums. A missing file has no records. Without `keep` there is no `whole`.
    Raises KodeError `Storage` when the file cannot be read.
    """
    found: Lines[T] = Lines([], [], [], [])
    for number, raw in _raw_lines(path):
        line = _record_of(number, raw)
        try:
            if b"\0" in raw:  # no record holds one: they are of the disk, and must not stay
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
    """Yield the lines that hold something, with their numbers from 1 on; one in memory at a time.

    Raises KodeError `Storage` when the file cannot be read; a missing one has none.
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
    """`jsonl.read_lines` by the only writer of the file; what is damaged leaves it.

    When that fails it stays for the next time: nobody is kept from the rest. Raises KodeError
    `Storage` when the file cannot be read.
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
    """Append records to a file that nobody has open here; saved. Raises KodeError `Storage`."""
    with closing(JsonlFile(path)) as file:
        for record in records:
            file.append(record)
        file.sync()
