"""Writes a file's content as an editor does: the whole of it or nothing, and the same file."""

import errno
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

# Windows refuses to replace a file that a scanner or a reader holds open for a moment.
_REPLACE_PAUSES_S: tuple[float, ...] = (
    (0.001, 0.004, 0.016, 0.064, 0.25) if sys.platform == "win32" else ()
)


def save_file(path: Path, data: bytes) -> None:
    """Give an existing file another content; links to it, its mode and its owner stay.

    A temporary file beside it takes its place at once. Where that would make another file of it
    (hard links, a foreign owner, a folder that takes no new files) it is written in place. Raises
    OSError; the old content then stays, but for a disk that fails while it writes in place.
    """
    target = Path(os.path.realpath(path))
    before = target.stat()
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = None if before.st_nlink > 1 else _write_beside(target, data, before)
    if temporary is None:
        target.write_bytes(data)
        return
    try:
        _replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _write_beside(target: Path, data: bytes, before: os.stat_result) -> Path | None:
    """A file with `data`, the mode and the owner of `before`; None where there can be none."""
    try:
        fd, name = tempfile.mkstemp(prefix=".kode-", suffix=".tmp", dir=target.parent)
    except PermissionError:
        return None
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            made = os.fstat(file.fileno())
        if (made.st_uid, made.st_gid) == (before.st_uid, before.st_gid):
            os.chmod(name, stat.S_IMODE(before.st_mode))
            return Path(name)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    os.unlink(name)
    return None


def _replace(temporary: Path, target: Path) -> None:
    for pause in _REPLACE_PAUSES_S:
        try:
            temporary.replace(target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    temporary.replace(target)
