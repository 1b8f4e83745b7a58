"""One SQLite database of records in WAL mode, where "written" and "saved" are two things.

A commit is one write to the log beside the database, which is fsynced by `sync` alone, on the
thread that waits for disks: so the event loop never does. The log is moved into the database when
nobody waits for it, by SQLite itself and fsynced; a log that still holds rows is never deleted.
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
# Nobody else writes; what can be met for a moment is a reader.
_BUSY_SECONDS = 2.0
# From this size on a log is moved into its database while the session goes on.
_LARGE_LOG = 4 * 1024 * 1024

# What SQLite says (its primary result codes) in the words of the system.
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
# SQLite quotes a damaged schema in what it says, and Python may not be able to decode that.
_FAULTS = (sqlite3.Error, UnicodeDecodeError)

Row = tuple[int, bytes]
"""The number of a record, counted from 1 in the order written, and the record."""


class DamagedDatabase(Exception):
    """Its structure is broken: what it holds cannot all be read."""


class SqliteFile:
    """A database to append to, by its only writer; one that is `new` is made.

    It is open only while something in it waits for its fsync: a process with a hundred sessions
    needs few descriptors. Raises KodeError `Storage`.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        self._written = self._synced = 0
        self._connections: list[sqlite3.Connection] = []
        self._unsaved = -1  # of a database that is new
        self._closed = False
        self._changed = threading.Lock()  # the loop appends while a thread syncs; held for moments
        self._syncing = threading.Lock()  # of whoever waits for the disk
        try:
            if new:
                self._unsaved = _make(path, ())
            # Its name is saved before the first commit, which has none to save then.
            os.close(os.open(log_of(path), _CREATED, 0o600))
            if not new:
                sync_folder(path.parent)
        except (*_FAULTS, OSError) as error:
            self._release()
            raise not_saved(path.name, _system_error(error)) from None

    def append(self, records: Sequence[bytes]) -> None:
        """Commit records, all or none; they are on disk when this returns, not yet saved."""
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
        """fsync what was committed, if anything was. Blocks."""
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
        """Release the database, and move its log into it; harmless when repeated. Blocks."""
        with self._syncing, self._changed:
            closed, self._closed = self._closed, True
            self._release()
            if not closed:
                _move_log(self._path)

    def _begin_log_anew(self, written: int) -> None:
        """Move a log into its database while the event loop may append; it stays if it does.

        What was moved before is only cut off: that waits for no disk.
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
        if self._closed:  # its lock may be another's by now
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
        # Afterwards: closing a file drops all of the process's locks on it, also SQLite's (POSIX).
        fd, self._unsaved = self._unsaved, -1
        if fd >= 0:
            os.close(fd)


def log_of(path: Path) -> Path:
    """Return the file beside a database that commits are written to."""
    return path.with_name(f"{path.name}-wal")


def delete_companions(path: Path) -> None:
    """Delete the log of a database and its index; a log that may hold rows stays.

    Raises OSError then, too.
    """
    log = log_of(path)
    if path.exists() and log.exists() and log.stat().st_size:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    for left in (log, path.with_name(f"{path.name}-shm")):
        left.unlink(missing_ok=True)


def check_database(path: Path) -> None:
    """Check all of a database, by its only writer; only one that is sound is written to.

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
    """Take records out by their numbers, all or none; saved. Raises KodeError `Storage`."""
    try:
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            _commit(connection, "DELETE FROM message WHERE number = ?", numbers)
    except _FAULTS as error:
        raise not_saved(path.name, _system_error(error)) from None


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all records of a database that others may be writing to, in the order written.

    A missing one has none. Raises DamagedDatabase, KodeError `Storage`.
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
    """Make a database of these records, saved and compared with them.

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
    """Make a database, without a log and not yet saved; return its descriptor."""
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
    """Beside an empty database SQLite deletes the log: it must not see one. Raises OSError."""
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
    """Return a connection that can write nothing.

    Closing the last connection moves the log, which takes as long as the disk does. Whoever is
    closed before this one is not the last.
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
    """Move a log into its database, if the disk allows and nobody reads; then SQLite deletes it."""
    with suppress(*_FAULTS, OSError):
        if log_of(path).stat().st_size:
            with closing(_connect(path)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _system_error(error: Exception) -> OSError:
    """Return the OSError that a fault of SQLite stands for; an unknown one counts as EIO."""
    if isinstance(error, OSError):
        return error
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    number = _ERRNO.get(code, errno.EIO)
    return OSError(number, os.strerror(number))


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code not in _ERRNO


def _problem(name: str, error: Exception) -> Exception:
    """Return what whoever reads a database is told."""
    if not isinstance(error, OSError) and _is_damage(error):
        return DamagedDatabase(str(error))
    return not_read(name, _system_error(error))
