"""Writes approved edits to disk, and ensures that the files are those that were read (W7, W11)."""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kode_sidecar.core.whole_files import move_over, sync_folder, write_beside
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import check_second_names, read_regular
from kode_sidecar.infrastructure.workspace.paths import Location


def replace_file(
    location: Location, expected: bytes, data: bytes, *, second_names: bool = False
) -> None:
    """Replace a file's content atomically and durably, as `save_file` does.

    With `second_names`, hard links among the open files are written in place.

    Raises KodeError: `StaleBase` if it does not hold `expected` any more, `Storage` if it cannot
    be written, and as `read_regular`.
    """

    def unchanged() -> None:
        if second_names:
            check_second_names(location, editing=True)
        if read_regular(location, second_names=second_names) != expected:
            raise _changed(location)

    unchanged()
    try:
        save_file(location.real, data, unchanged)
    except OSError as error:
        raise _not_written(location, error) from None


def _nothing() -> None:
    """Check nothing."""


def save_file(path: Path, data: bytes, last_look: Callable[[], None] = _nothing) -> None:
    """Replace an existing file's content; links to it, its mode and its owner stay.

    A new file beside it is moved into its place. If that would lose its identity (hard links, a
    foreign owner, a folder that takes no new files), it is written in place. `last_look` is called
    right before and may raise. Raises OSError; the old content then stays, unless the disk fails
    while the file is written in place.
    """
    target = Path(os.path.realpath(path))
    before = target.stat()
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    fresh = None if before.st_nlink > 1 else _like(target, data, before)
    if fresh is None:
        last_look()
        target.write_bytes(data)
        return
    try:
        last_look()
        move_over(fresh, target)
    finally:
        with suppress(OSError):
            fresh.unlink()
    _sync(target.parent)


def _like(target: Path, data: bytes, before: os.stat_result) -> Path | None:
    """Write a file with `data`, the mode and the owner of `before`; None if that is impossible."""
    try:
        fresh = write_beside(target, data, durable=True)
    except PermissionError:
        return None
    try:
        made = fresh.stat()
        if (made.st_uid, made.st_gid) == (before.st_uid, before.st_gid):
            fresh.chmod(stat.S_IMODE(before.st_mode))
            return fresh
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    fresh.unlink()
    return None


def create_file(location: Location, data: bytes) -> None:
    """Create a file, and the folders above it.

    Raises KodeError `StaleBase` if the file exists by now, `Storage`.
    """
    target = location.real
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(target, flags, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise _changed(location) from None
    except OSError as error:
        raise _not_written(location, error) from None
    _sync(target.parent)


def move_file(source: Location, target: Location) -> None:
    """Move a regular file to a free place.

    Raises KodeError `StaleBase`, `Storage`, and as `read_regular`.
    """
    read_regular(source)
    if os.path.lexists(target.real):
        raise _changed(target)
    try:
        target.real.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(source.real, target.real)
    except OSError as error:
        raise _not_written(target, error) from None


def delete_file(location: Location) -> None:
    """Remove a regular file. Raises KodeError `Storage`, and as `read_regular`."""
    read_regular(location)
    try:
        os.unlink(location.real)
    except OSError as error:
        raise _not_written(location, error) from None


def _sync(folder: Path) -> None:
    """Make a new name durable, if the system can sync folders."""
    with suppress(OSError):
        sync_folder(folder)


def _changed(location: Location) -> KodeError:
    return KodeError("StaleBase", f"{location.display} changed on disk meanwhile.")


def _not_written(location: Location, error: OSError) -> KodeError:
    return KodeError("Storage", f"{location.display} cannot be written: {error.strerror}.")
