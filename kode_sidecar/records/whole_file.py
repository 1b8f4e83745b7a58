"""Files that are replaced whole: a reader sees the old content or the new, never a mixture."""

import contextlib
import errno
import os
import sys
import tempfile
import time
from pathlib import Path

from kode_sidecar.records.jsonl import DiskCounter
from kode_sidecar.records.storage_error import not_saved

# Windows refuses to replace a file that a scanner or a reader holds open for a moment.
_REPLACE_PAUSES_S: tuple[float, ...] = (
    (0.001, 0.004, 0.016, 0.064, 0.25) if sys.platform == "win32" else ()
)
# Some network file systems refuse to sync a folder; they have nothing better to offer.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)


def replace_file(
    path: Path, data: bytes, *, durable: bool, counter: DiskCounter | None = None
) -> None:
    """Write `data` to a temporary file beside `path`, then move it into place.

    With `durable` the content and the folder's entry are fsynced; that blocks, so call it off
    the event loop. Raises KodeError `Storage`; the old content then stays.
    """
    counter = counter or DiskCounter()
    try:
        # O_EXCL and mode 0600 are mkstemp's own.
        fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                counter.writes += 1
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
                    counter.count_fsync()
            _replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            sync_folder(path.parent, counter)
    except OSError as error:
        raise not_saved(path.name, error) from None


def sync_folder(folder: Path, counter: DiskCounter) -> None:
    """fsync a folder, so that new names in it survive. Windows needs and offers no such thing."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
        counter.count_fsync()
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
