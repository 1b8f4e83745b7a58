"""Ensures one writer per session, by a lock of the operating system held while it is open.

The lock ends with its process, however that ends; so there is no owner to look for and nothing to
clean up. The file itself stays.
"""

import errno
import os
import sys
import time
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_read, not_saved

LOCK_FILE = "lock"

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
# Together far longer than a test of the lock takes, and short enough for a user who gets "no".
_TRIES, _PAUSE_SECONDS = 40, 0.002
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


class SessionLock:
    """Takes the lock of the session in `folder`.

    Raises KodeError `ReadOnly` when somebody else holds it, `Storage`.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._fd = os.open(folder / LOCK_FILE, _FLAGS, 0o600)
        except OSError as error:
            raise not_saved(LOCK_FILE, error) from None
        try:
            _lock_patiently(self._fd)
        except OSError as error:
            self.release()
            if error.errno in _TAKEN:
                raise _read_only() from None
            raise not_saved(LOCK_FILE, error) from None

    def release(self) -> None:
        """Release the lock; harmless when repeated."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _lock_patiently(fd: int) -> None:
    """Lock, with retries: a process that calls `is_held` holds the lock only for a moment."""
    for _ in range(_TRIES):
        try:
            return _lock(fd)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        time.sleep(_PAUSE_SECONDS)
    return _lock(fd)


def is_held(folder: Path) -> bool:
    """Return whether somebody alive holds the lock of `folder`. Raises KodeError `Storage`."""
    try:
        fd = os.open(folder / LOCK_FILE, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise not_read(LOCK_FILE, error) from None
    try:
        _lock(fd)
    except OSError as error:
        if error.errno in _TAKEN:
            return True
        raise not_read(LOCK_FILE, error) from None
    finally:
        os.close(fd)
    return False


def _read_only() -> KodeError:
    return KodeError(
        "ReadOnly",
        "Another sidecar has this session open, probably in another window. Close it there, read "
        "it with kode/session/attach and access `read`, or go on in a copy of it: "
        "kode/session/fork.",
    )


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
