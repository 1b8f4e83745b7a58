"""Files replaced whole, and what a failing disk means to the user."""

import contextlib
import errno
import os
import sys
import tempfile
import time
from pathlib import Path

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
    """A write or fsync of the file `name` failed."""
    return KodeError("Storage", f"not saved: {name}: {_reason(error)}")


def not_read(name: str, error: OSError) -> KodeError:
    """The file `name` could not be read."""
    return KodeError("Storage", f"not readable: {name}: {_reason(error)}")


def _reason(error: OSError) -> str:
    what = error.strerror or type(error).__name__
    advice = _ADVICE.get(error.errno or 0, "check the disk of the state folder and try again")
    return f"{what}; {advice}"


# Windows refuses to replace a file that a scanner or a reader holds open for a moment.
_REPLACE_PAUSES_S: tuple[float, ...] = (
    (0.001, 0.004, 0.016, 0.064, 0.25) if sys.platform == "win32" else ()
)
# Some network file systems refuse to sync a folder; they have nothing better to offer.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)


def replace_file(path: Path, data: bytes, *, durable: bool) -> None:
    """Write `data` to a temporary file beside `path`, then move it into place.

    With `durable` the content and the folder's entry are fsynced; that blocks, so call it off
    the event loop. Raises KodeError `Storage`; the old content then stays.
    """
    try:
        # O_EXCL and mode 0600 are mkstemp's own.
        fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            _replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise not_saved(path.name, error) from None


def sync_folder(folder: Path) -> None:
    """fsync a folder, so that new names in it survive. Windows needs and offers no such thing."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(fd)


def _replace(temporary: str, path: Path) -> None:
    for pause in _REPLACE_PAUSES_S:
        try:
            os.replace(temporary, path)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(temporary, path)
