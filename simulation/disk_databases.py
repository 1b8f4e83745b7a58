"""The connections of a simulated process to its databases: SQLite's own calls are made in C.

A process that is gone holds no lock and maps no file; here it shares the real process with the next
one, and SQLite would go on with the memory of files that are others by now.
"""

import errno
import sqlite3
from collections.abc import Callable
from typing import Any


class SeenConnection(sqlite3.Connection):
    """Calls `before_write`, which may fail, and `saved` once what it wrote was fsynced."""

    before_write: Callable[[], None]
    saved: Callable[[], None]
    _syncs = False

    def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        self._syncs = self._syncs or sql == "PRAGMA synchronous=FULL"
        return super().execute(sql, *rest)

    def executemany(self, sql: str, *rest: Any) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        self.before_write()
        return super().executemany(sql, *rest)

    def close(self) -> None:
        """See `sqlite3.Connection`."""
        super().close()
        if self._syncs:
            self._syncs = False
            self.saved()


def database_error(fault: OSError) -> sqlite3.OperationalError:
    """Return what SQLite says of a fault of the disk."""
    error = sqlite3.OperationalError(fault.strerror)
    is_full = fault.errno == errno.ENOSPC
    error.sqlite_errorcode = sqlite3.SQLITE_FULL if is_full else sqlite3.SQLITE_IOERR
    return error
