"""Replaces whole files, and turns errors of the disk into errors for the user."""

import contextlib
import errno
import os
from pathlib import Path

from kode_sidecar.core.whole_files import make_private, move_over, sync_folder, write_beside
from kode_sidecar.errors import KodeError

_WRITABLE = "make the state folder writable, or set KODE_HOME to a folder that is"
_FULL = "free some space on the disk of the state folder and try again"
_ADVICE: dict[int, str] = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.EMFILE: "close some sessions or raise the limit of open files",
    errno.ENFILE: "close some sessions or raise the limit of open files",
    errno.EIO: "check the disk of the state folder; it reports errors",
    errno.ENOENT: "the state folder was moved or deleted; restart the sidecar",
}


def not_saved(name: str, error: OSError) -> KodeError:
    """Return the error for a write or fsync of the file `name` that failed."""
    return KodeError("Storage", f"not saved: {name}: {_reason(error)}")


def not_made(path: Path, error: OSError) -> KodeError:
    """Return the error for a file or folder (perhaps named by the user) that cannot be made."""
    what = error.strerror or type(error).__name__
    return KodeError("Storage", f"{path} cannot be made or written: {what}; name another one")


def not_read(name: str, error: OSError) -> KodeError:
    """Return the error for a file `name` that cannot be read."""
    return KodeError("Storage", f"not readable: {name}: {_reason(error)}")


def _reason(error: OSError) -> str:
    what = error.strerror or type(error).__name__
    advice = _ADVICE.get(error.errno or 0, "check the disk of the state folder and try again")
    return f"{what}; {advice}"


FileState = tuple[int, int, int]
"""Inode, time of change and size of a file: they change when it is written or replaced."""


def file_state(path: str | os.PathLike[str]) -> FileState | None:
    """Return the present state of a file; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def make_folder(folder: Path, needed_by: str = "") -> None:
    """Make a folder for its owner alone, and the folders above it.

    Raises KodeError `Storage`, which names the folder, or the file that needs it.
    """
    try:
        make_private(folder)
    except OSError as error:
        raise not_saved(needed_by or folder.name, error) from None


def replace_file(path: Path, data: bytes, *, durable: bool) -> None:
    """Write `data` to a temporary file beside `path`, then move it into place.

    With `durable` the content and the folder's entry are fsynced; that blocks, so call it off
    the event loop. Raises KodeError `Storage`; the old content then stays, or is restored from a
    temporary hard link, which needs no space on a full disk.
    """
    try:
        temporary = write_beside(path, data, durable=durable)
        old = temporary.with_name(f"{temporary.name}.old")
        try:
            with contextlib.suppress(OSError):  # it is new, or the disk has no hard links
                if durable:
                    os.link(path, old)
            move_over(temporary, path)
        except BaseException:
            for left in (temporary, old):
                with contextlib.suppress(OSError):
                    os.unlink(left)
            raise
        if durable:
            _sync_name(path, old)
    except OSError as error:
        raise not_saved(path.name, error) from None


def _sync_name(path: Path, old: Path) -> None:
    """Sync the folder of a file that was replaced; restore the old file if that fails."""
    try:
        sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.replace(old, path)
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(old)
