"""How a file is read whole, and written whole or not at all: beside its place, then moved over it.

All that saves does it in these steps: records, texts of the user, keys and history.
"""

import contextlib
import errno
import os
import sys
import tempfile
import time
from pathlib import Path

from kode_sidecar.errors import KodeError

# Windows refuses to replace a file that a scanner or a reader holds open for a moment.
_PAUSES_S: tuple[float, ...] = (0.001, 0.004, 0.016, 0.064, 0.25) if sys.platform == "win32" else ()
MAX_TEXT_BYTES = 1_000_000
# Some network file systems refuse to sync a folder; they have nothing better to offer.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)


def read_user_text(path: Path) -> str:
    """Return a settings file, or one that the user named. Raises KodeError `ConfigInvalid`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except FileNotFoundError:
        raise KodeError("ConfigInvalid", f"{path.name}: there is no such file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise KodeError("ConfigInvalid", f"{path.name} cannot be read: {reason}") from None
    if len(data) > MAX_TEXT_BYTES:
        raise KodeError("ConfigInvalid", f"{path.name} is larger than {MAX_TEXT_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise KodeError("ConfigInvalid", f"{path.name} is not UTF-8: save it as UTF-8") from None


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, all for their owner alone.

    `Path.mkdir` gives its mode to the last one only. Raises OSError.
    """
    for place in reversed((folder, *folder.parents)):
        if not place.is_dir():
            with contextlib.suppress(FileExistsError):
                place.mkdir(mode=0o700)
    os.listdir(folder)  # something else of that name is an error


def write_beside(path: Path, data: bytes, *, durable: bool) -> Path:
    """Write a new file in the folder of `path`, for its owner alone, and return where.

    With `durable` its content is fsynced. Raises OSError; nothing is left behind then.
    """
    # O_EXCL and mode 0600 are mkstemp's own.
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return Path(name)


def move_over(fresh: Path, path: Path) -> None:
    """Move a file over another one, at once. Raises OSError."""
    for pause in _PAUSES_S:
        try:
            os.replace(fresh, path)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(fresh, path)


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
