"""One SQLite database of records in WAL mode, where "written" and "saved" are two states.

A commit is one write to the log beside the database; only `sync` fsyncs the log, on a thread, so
that the event loop never waits for the disk. SQLite moves the log into the database, with fsyncs,
while nobody waits for it; a log that still holds rows is never deleted.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from kode_sidecar.core.whole_files import sync_folder
from kode_sidecar.infrastructure.records.disk import not_read, not_saved

PAGE_BYTES = 4096
_SCHEMA = "CREATE TABLE message (number INTEGER PRIMARY KEY, record BLOB NOT NULL)"
_INSERT = "INSERT INTO message (record) VALUES (?)"
_OPEN = os.O_RDWR | getattr(os, "O_BINARY", 0)
_CREATED = _OPEN | os.O_CREAT
# Nobody else writes; only a reader can hold a lock for a moment.
_BUSY_SECONDS = 2.0
# From this size on a log is moved into its database while the session goes on.
_LARGE_LOG = 4 * 1024 * 1024

# The system's error numbers for SQLite's primary result codes.
_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
}

_OURS = (("wal",), (PAGE_BYTES,))
# SQLite quotes a damaged schema in its message, which Python may fail to decode.
_FAULTS = (sqlite3.Error, UnicodeDecodeError)

Row = tuple[int, bytes]
"""The number of a record, counted from 1 in the order written, and the record."""


class DamagedDatabase(Exception):
    """The structure of a database is broken: not all of its records can be read."""


class SqliteFile:
    """A database open for appending by its only writer; with `new` it is created.

    It is open only while something in it waits for its fsync, so that a process with a hundred
    sessions needs few descriptors. Raises KodeError `Storage`.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        self._written = self._synced = 0
        self._connections: list[sqlite3.Connection] = []
        self._unsaved = -1  # of a database that is new
        self._closed = False
        self._changed = threading.Lock()  # the loop appends while a thread syncs; never held long
        self._syncing = threading.Lock()  # held while waiting for the disk
        try:
            if new:
                self._unsaved = _make(path, ())
            # Save the log's name now, so that no commit has to sync the folder.
            os.close(os.open(log_of(path), _CREATED, 0o600))
            if not new:
                sync_folder(path.parent)
        except (*_FAULTS, OSError) as error:
            self._release()
            raise not_saved(path.name, _system_error(error)) from None

    def append(self, records: Sequence[bytes]) -> None:
        """Commit records, all or none; when this returns they are written, not yet saved."""
        with self._changed:
            try:
                if not self._connections:
                    self._connect()
                _commit(self._connections[0], _INSERT, records)
            except (*_FAULTS, OSError, DamagedDatabase) as error:
                self._disconnect()
                raise not_saved(self._path.name, _system_error(error)) from None
            self._written += 1

    def sync(self) -> None:
        """fsync the commits since the last call, if any. Blocks."""
        with self._syncing:
            written, size = self._written, 0
            if written == self._synced and self._unsaved < 0:
                return
            try:
                if self._unsaved >= 0:
                    os.fsync(self._unsaved)
                if written != self._synced:
                    size = _sync_log(self._path)
            except OSError as error:
                raise not_saved(self._path.name, error) from None
            with self._changed:
                self._synced = written
                if self._written == written:
                    self._release()
            if size > _LARGE_LOG:
                self._begin_log_anew(written)

    def close(self) -> None:
        """Close the database, and move its log into it; harmless when repeated. Blocks."""
        with self._syncing, self._changed:
            closed, self._closed = self._closed, True
            self._release()
            if not closed:
                _move_log(self._path)

    def _begin_log_anew(self, written: int) -> None:
        """Move a log into its database while the event loop may append; then the log is not cut.

        Under the lock, the moved log is only cut off, which does not wait for the disk.
        """
        with (
            suppress(*_FAULTS, OSError),
            closing(_guard(self._path)),
            closing(_connect(self._path)) as connection,
        ):
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            connection.execute("PRAGMA busy_timeout=0")
            with self._changed:
                if self._written == written:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _connect(self) -> None:
        if self._closed:  # another process may hold its lock by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        _check_size(self._path)
        self._connections.append(writer := _connect(self._path))
        writer.execute("PRAGMA synchronous=OFF")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        self._connections.append(_guard(self._path))

    def _disconnect(self) -> None:
        connections, self._connections = self._connections, []
        for connection in connections:  # the guard last
            connection.close()

    def _release(self) -> None:
        self._disconnect()
        # Last: closing a file drops all of the process's locks on it, also SQLite's (POSIX).
        fd, self._unsaved = self._unsaved, -1
        if fd >= 0:
            os.close(fd)


def log_of(path: Path) -> Path:
    """Return the log beside a database, to which commits are written."""
    return path.with_name(f"{path.name}-wal")


def delete_companions(path: Path) -> None:
    """Delete the log of a database and its index. Raises OSError, also if the log may hold rows."""
    log = log_of(path)
    if path.exists() and log.exists() and log.stat().st_size:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    for left in (log, path.with_name(f"{path.name}-shm")):
        left.unlink(missing_ok=True)


def check_database(path: Path) -> None:
    """Check a whole database, as its only writer, before anything is written to it.

    Its log is moved into it if the disk allows. Raises KodeError `Storage`, DamagedDatabase.
    """
    try:
        _check_size(path)
        with closing(_connect(path, "ro")) as connection:
            ask = connection.execute
            if (ask("PRAGMA journal_mode").fetchone(), ask("PRAGMA page_size").fetchone()) != _OURS:
                raise DamagedDatabase("it is no database of this program")
            if ask("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise DamagedDatabase("its pages contradict each other")
    except (*_FAULTS, OSError) as error:
        raise _problem(path.name, error) from None
    _move_log(path)


def remove_rows(path: Path, numbers: Iterable[int]) -> None:
    """Delete records by their numbers, all or none, and save. Raises KodeError `Storage`."""
    try:
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            _commit(connection, "DELETE FROM message WHERE number = ?", numbers)
    except _FAULTS as error:
        raise not_saved(path.name, _system_error(error)) from None


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all records of a database in the order written, even while another process writes.

    A missing database has no records. Raises DamagedDatabase, KodeError `Storage`.
    """
    if not path.exists():
        return
    ask = "SELECT number, record FROM message ORDER BY number"
    try:
        _check_size(path)
        with closing(_connect(path, "ro")) as connection:
            for number, record in connection.execute(ask):
                if not isinstance(record, bytes):
                    raise DamagedDatabase("a record is none")
                yield number, record
    except (*_FAULTS, OSError) as error:
        raise _problem(path.name, error) from None


def write_database(path: Path, records: Sequence[bytes]) -> None:
    """Create a database of these records, save it and compare it with them.

    Raises OSError, KodeError `Storage`.
    """
    try:
        fd = _make(path, records)
    except _FAULTS as error:
        raise _system_error(error) from None
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    if [record for _, record in read_rows(path)] != records:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    delete_companions(path)


def _make(path: Path, records: Iterable[bytes]) -> int:
    """Create a database, without a log and not yet saved; return its descriptor."""
    fd = os.open(path, _CREATED | os.O_EXCL, 0o600)
    try:
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute(_SCHEMA)
            _commit(connection, _INSERT, records)
            connection.execute("PRAGMA journal_mode=WAL")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_size(path: Path) -> None:
    """Refuse an empty database, whose log SQLite would delete. Raises OSError, DamagedDatabase."""
    if path.stat().st_size < PAGE_BYTES:
        raise DamagedDatabase("it was cut off")


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


def _guard(path: Path) -> sqlite3.Connection:
    """Return a read-only connection, to be closed last.

    Closing the last connection moves the log, which waits for the disk. A connection that is closed
    before this one is not the last.
    """
    connection = _connect(path, "ro")
    connection.execute("SELECT number FROM message LIMIT 1").fetchone()
    return connection


def _commit(
    connection: sqlite3.Connection, statement: str, values: Iterable[bytes] | Iterable[int]
) -> None:
    with connection:
        connection.execute("BEGIN")
        connection.executemany(statement, ((value,) for value in values))


def _sync_log(path: Path) -> int:
    """fsync the log of a database; return its size. Raises OSError."""
    fd = os.open(log_of(path), _OPEN)
    try:
        os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _move_log(path: Path) -> None:
    """Move a log into its database, if the disk allows and nobody reads; SQLite then deletes it."""
    with suppress(*_FAULTS, OSError):
        if log_of(path).stat().st_size:
            with closing(_connect(path)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _system_error(error: Exception) -> OSError:
    """Return the OSError for a fault of SQLite; EIO for an unknown one."""
    if isinstance(error, OSError):
        return error
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    number = _ERRNO.get(code, errno.EIO)
    return OSError(number, os.strerror(number))


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code not in _ERRNO


def _problem(name: str, error: Exception) -> Exception:
    """Return the error to raise for a failure to read a database."""
    if not isinstance(error, OSError) and _is_damage(error):
        return DamagedDatabase(str(error))
    return not_read(name, _system_error(error))
