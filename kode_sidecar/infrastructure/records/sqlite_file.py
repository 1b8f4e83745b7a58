"""One SQLite database of records, written when a conversation is opened and at no other time.

What is said meanwhile is appended to a file beside it (`sqlite_messages`), so no database is open
while a conversation is, and the event loop never waits for one.
"""

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from kode_sidecar.infrastructure.records.disk import not_read, not_saved

PAGE_BYTES = 4096
_SCHEMA = "CREATE TABLE message (number INTEGER PRIMARY KEY, record BLOB NOT NULL)"
_INSERT = "INSERT INTO message (record) VALUES (?)"
_OPEN = os.O_RDWR | getattr(os, "O_BINARY", 0)
# Nobody else writes; what can be met for a moment is a reader.
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
# SQLite quotes a damaged schema in what it says, and Python may not be able to decode that.
_FAULTS = (sqlite3.Error, UnicodeDecodeError)

Row = tuple[int, bytes]
"""The number of a record, counted from 1 in the order written, and the record."""


class DamagedDatabase(Exception):
    """Its structure is broken: what it holds cannot all be read."""


class SqliteFile:
    """A database open for writing, by its only writer. Raises KodeError `Storage`, DamagedDatabase.

    A log that a crash left beside it is moved into it.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            _check_size(path)
            self._connection = _connect(str(path))
        except (sqlite3.Error, OSError) as error:
            raise _problem(self.name, error) from None
        try:
            self._check()
        except (*_FAULTS, DamagedDatabase) as error:
            self.close()
            raise _problem(self.name, error) from None

    def rows(self) -> Iterator[Row]:
        """Return all records in the order written. Raises DamagedDatabase."""
        return _rows(self._connection, self.name)

    def change(self, records: Iterable[bytes], removed: Iterable[int]) -> None:
        """Add records and take others out by their numbers, both or none; saved when this returns.

        Raises KodeError `Storage`.
        """
        try:
            with self._connection as connection:
                connection.execute("BEGIN")
                rows = ((number,) for number in removed)
                connection.executemany("DELETE FROM message WHERE number = ?", rows)
                connection.executemany(_INSERT, ((record,) for record in records))
        except _FAULTS as error:
            raise not_saved(self.name, _system_error(error)) from None

    def close(self) -> None:
        """Release the database; harmless when repeated."""
        self._connection.close()

    def _check(self) -> None:
        """That it can be written to; a log is moved into it before."""
        ask = self._connection.execute
        ask("PRAGMA synchronous=FULL")
        if (ask("PRAGMA journal_mode").fetchone(), ask("PRAGMA page_size").fetchone()) != _OURS:
            raise DamagedDatabase("it is no database of this program")
        ask("PRAGMA wal_checkpoint(PASSIVE)")
        if ask("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise DamagedDatabase("its pages contradict each other")


def log_of(path: Path) -> Path:
    """Return the file beside a database that commits are written to."""
    return path.with_name(f"{path.name}-wal")


def read_numbered(path: Path, numbers: Iterable[int]) -> list[bytes]:
    """Return the records with these numbers, empty where there is none; from any thread.

    Raises KodeError `Storage`.
    """
    ask = "SELECT record FROM message WHERE number = ?"
    try:
        with closing(_connect_to_read(path)) as connection:
            found = [connection.execute(ask, (number,)).fetchone() for number in numbers]
    except _FAULTS as error:
        raise not_read(path.name, _system_error(error)) from None
    return [row[0] if row else b"" for row in found]


def readable_records(path: Path) -> list[bytes]:
    """Return the records of a database before its first damage. Raises KodeError `Storage`."""
    found: list[bytes] = []
    with suppress(DamagedDatabase):
        for _, record in read_rows(path):
            found.append(record)
    return found


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all records of a database that others may be writing to, in the order written.

    A missing one has none. Raises DamagedDatabase, KodeError `Storage`.
    """
    if not path.exists():
        return
    try:
        _check_size(path)
        with closing(_connect_to_read(path)) as connection:
            yield from _rows(connection, path.name)
    except _FAULTS as error:
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


def _connect_to_read(path: Path) -> sqlite3.Connection:
    return _connect(f"{path.absolute().as_uri()}?mode=ro")


def _rows(connection: sqlite3.Connection, name: str) -> Iterator[Row]:
    try:
        for number, record in connection.execute(
            "SELECT number, record FROM message ORDER BY number"
        ):
            if not isinstance(record, bytes):
                raise DamagedDatabase("a record is none")
            yield number, record
    except _FAULTS as error:
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


def _system_error(error: Exception) -> OSError:
    """Return the OSError that a fault of SQLite stands for; an unknown one counts as EIO."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    number = _ERRNO.get(code, errno.EIO)
    return OSError(number, os.strerror(number))


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code not in _ERRNO


def _problem(name: str, error: Exception) -> Exception:
    """As who opens or reads a database is told of it."""
    if isinstance(error, OSError):
        return not_saved(name, error)
    if not isinstance(error, _FAULTS):
        return error
    if _is_damage(error):
        return DamagedDatabase(str(error))
    return not_read(name, _system_error(error))
