"""One SQLite database of records in WAL mode, where "written" and "saved" are two things.

A commit is one write to the log beside the database, as fast as a line of a file; nothing is
fsynced then. `sync` fsyncs the log, on whatever thread asks for it. The log is moved into the
database when a conversation is opened, and never while it is in use or closed: that would keep the
event loop waiting.
"""

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from kode_sidecar.records.disk import not_read, not_saved

PAGE_BYTES = 4096
_SCHEMA = "CREATE TABLE message (number INTEGER PRIMARY KEY, record BLOB NOT NULL)"
_INSERT = "INSERT INTO message (record) VALUES (?)"
_OPEN = os.O_RDWR | getattr(os, "O_BINARY", 0)
# Nobody else writes; what can be met for a moment is a reader that repairs the log's index.
_BUSY_SECONDS = 2.0

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

Row = tuple[int, bytes]
"""The number of a record, counted from 1 in the order written, and the record."""


class DamagedDatabase(Exception):
    """Its structure is broken: what it holds cannot all be read."""


class SqliteFile:
    """A database open for writing, by its only writer. Raises KodeError `Storage`.

    Opening one that is there raises DamagedDatabase.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self.name = path.name
        self._path = path
        self._new = new
        self._written = self._synced = 0
        self._fds: list[int] = []
        self._connections: list[sqlite3.Connection] = []
        try:
            if new:
                # To be synced; and never closed before the connections, for that would release
                # SQLite's own locks on it (POSIX).
                self._fds.append(os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600))
            else:
                _check_size(path)
            self._writer = self._connect(str(path))
            (self._make if new else self._fold_log)()
            # With this one in use, closing the writer is not closing the last: no log is moved
            # then, and this one cannot write.
            self._reader = self._connect(f"{path.absolute().as_uri()}?mode=ro")
            self._reader.execute("SELECT number FROM message LIMIT 1").fetchone()
            self._log = os.open(log_of(path), _OPEN)
            self._fds.append(self._log)
            self._log_bytes = os.fstat(self._log).st_size
        except (sqlite3.Error, OSError, DamagedDatabase) as error:
            self.close()
            raise _problem(self.name, error) from None

    def rows(self) -> Iterator[Row]:
        """All records in the order written. Raises DamagedDatabase."""
        return _rows(self._reader, self.name)

    def record(self, number: int) -> bytes:
        """One record; from any thread. Raises KodeError `Storage`."""
        try:
            row = self._reader.execute(
                "SELECT record FROM message WHERE number = ?", (number,)
            ).fetchone()
        except sqlite3.Error as error:
            raise not_read(self.name, _system_error(error)) from None
        return row[0] if row else b""

    def append(self, record: bytes) -> None:
        """Write one record; on disk when this returns, not yet saved.

        When it fails nothing of it stays, and KodeError `Storage` says so.
        """
        try:
            self._writer.execute(_INSERT, (record,))
        except sqlite3.Error as error:
            self._take_back()
            raise not_saved(self.name, _system_error(error)) from None
        self._log_bytes = os.fstat(self._log).st_size
        self._written += 1

    def remove(self, numbers: Iterable[int]) -> None:
        """Take records out. Raises KodeError `Storage`."""
        try:
            self._all("DELETE FROM message WHERE number = ?", ((number,) for number in numbers))
        except sqlite3.Error as error:
            self._take_back()
            raise not_saved(self.name, _system_error(error)) from None
        self._log_bytes = os.fstat(self._log).st_size
        self._written += 1

    def sync(self) -> None:
        """fsync what was written, if anything was. Blocks; raises KodeError `Storage`."""
        written = self._written
        if written == self._synced and not self._new:
            return
        try:
            for fd in self._fds if self._new else [self._log]:
                os.fsync(fd)
        except OSError as error:
            raise not_saved(self.name, error) from None
        self._new = False
        self._synced = written

    def close(self) -> None:
        """Release the files, writing nothing; harmless when repeated."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)

    def _connect(self, database: str) -> sqlite3.Connection:
        connection = _connect(database)
        self._connections.append(connection)
        return connection

    def _make(self) -> None:
        # It is saved with the first `sync`: until then nobody has been told of it.
        self._writer.execute("PRAGMA synchronous=OFF")
        self._writer.execute("PRAGMA journal_mode=WAL")
        self._writer.execute("PRAGMA wal_autocheckpoint=0")
        self._writer.execute(_SCHEMA)
        self._writer.execute("PRAGMA synchronous=NORMAL")

    def _fold_log(self) -> None:
        """Move the log into the database and begin it anew."""
        ask = self._writer.execute
        ask("PRAGMA synchronous=FULL")
        ask("PRAGMA wal_autocheckpoint=0")
        if (ask("PRAGMA journal_mode").fetchone(), ask("PRAGMA page_size").fetchone()) != _OURS:
            raise DamagedDatabase("it is no database of this program")
        ask("PRAGMA wal_checkpoint(PASSIVE)")
        if ask("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise DamagedDatabase("its pages contradict each other")
        ask("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.execute("PRAGMA synchronous=NORMAL")
        # The head of a new log is fsynced when it is written: now, and not on the event loop.
        self._writer.execute("PRAGMA user_version=1")

    def _all(self, statement: str, rows: Iterable[Sequence[int | bytes]]) -> None:
        with self._writer:
            self._writer.execute("BEGIN")
            self._writer.executemany(statement, rows)

    def _take_back(self) -> None:
        """Nothing that failed must be found in the log later."""
        with suppress(OSError):
            os.ftruncate(self._log, self._log_bytes)


def log_of(path: Path) -> Path:
    """The file beside a database that commits are written to."""
    return path.with_name(f"{path.name}-wal")


def readable_records(path: Path) -> list[bytes]:
    """The records of a database before its first damage. Raises KodeError `Storage`."""
    found: list[bytes] = []
    with suppress(DamagedDatabase):
        for _, record in read_rows(path):
            found.append(record)
    return found


def read_rows(path: Path) -> Iterator[Row]:
    """All records of a database that others may be writing to, in the order written.

    A missing one has none. Raises DamagedDatabase, KodeError `Storage`.
    """
    if not path.exists():
        return
    try:
        _check_size(path)
        with closing(_connect(f"{path.absolute().as_uri()}?mode=ro")) as connection:
            yield from _rows(connection, path.name)
    except sqlite3.Error as error:
        raise _problem(path.name, error) from None


def _check_size(path: Path) -> None:
    """Beside an empty database SQLite deletes the log: it must not see one. Raises OSError."""
    if path.stat().st_size < PAGE_BYTES:
        raise DamagedDatabase("it was cut off")


def _connect(database: str) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=database.startswith("file:"),
    )


def _rows(connection: sqlite3.Connection, name: str) -> Iterator[Row]:
    try:
        for number, record in connection.execute(
            "SELECT number, record FROM message ORDER BY number"
        ):
            if not isinstance(record, bytes):
                raise DamagedDatabase("a record is none")
            yield number, record
    except sqlite3.Error as error:
        raise _problem(name, error) from None


def write_database(path: Path, records: Iterable[bytes]) -> None:
    """A new database with these records, saved and closed. Raises KodeError `Storage`."""
    try:
        os.close(os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(_connect(str(path))) as connection, connection:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(_SCHEMA)
            connection.execute("BEGIN")
            connection.executemany(_INSERT, ((record,) for record in records))
    except OSError as error:
        raise not_saved(path.name, error) from None
    except sqlite3.Error as error:
        raise not_saved(path.name, _system_error(error)) from None


def _system_error(error: sqlite3.Error) -> OSError:
    """The same as the system would say it; what is none of these is the disk's fault, too."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    number = _ERRNO.get(code, errno.EIO)
    return OSError(number, os.strerror(number))


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code not in _ERRNO


def _problem(name: str, error: Exception) -> Exception:
    """As who opens or reads a database is told of it."""
    if isinstance(error, OSError):
        return not_saved(name, error)
    if not isinstance(error, sqlite3.Error):
        return error
    if _is_damage(error):
        return DamagedDatabase(str(error))
    return not_read(name, _system_error(error))
