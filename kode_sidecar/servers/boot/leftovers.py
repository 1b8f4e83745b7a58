"""Folders of one-file programs that nobody will remove, because the process that does was killed.

The one of this process goes when it ends, where open files can be removed: not on Windows. What
others had to leave goes with the next start.
"""

import os
import shutil
import stat
import sys
import time
from pathlib import Path

from kode_sidecar.servers.boot.unpacked import MARKER, UNPACKED_PREFIX, unpacked_folder

if sys.platform != "win32":
    import fcntl

# A younger one may still be unpacked, and is not held yet.
_OLD_SECONDS = 600.0


def remove_unpacked() -> None:
    """Remove the folder this process runs from; the last thing it does."""
    folder = unpacked_folder()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove what processes of this program left and no other one is using."""
    mine = unpacked_folder()
    if mine is None:
        return
    for folder in Path(mine).parent.glob(f"{UNPACKED_PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or time.time() - found.st_mtime < _OLD_SECONDS:
            return False
        return _take(folder / "kode_sidecar" / MARKER)
    except OSError:
        return False


if sys.platform == "win32":

    def _take(marker: Path) -> bool:
        """Raises OSError when it is held, or is no marker of ours."""
        os.unlink(marker)
        return True
else:

    def _take(marker: Path) -> bool:
        """Raises OSError when it is held, or is no marker of ours."""
        fd = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.fstat(fd).st_uid == os.getuid()
        finally:
            os.close(fd)
