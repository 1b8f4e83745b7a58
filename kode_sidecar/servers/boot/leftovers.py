"""Removes folders of one-file programs whose first process was killed before it could do so.

This process removes its own at its end, except on Windows, where open files cannot be removed.
The next start removes what earlier processes left.
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

# A younger folder may still be being unpacked, so it is not locked yet.
_OLD_SECONDS = 600.0


def remove_unpacked() -> None:
    """Remove the folder this process runs from; must be the last thing it does."""
    folder = unpacked_folder()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove the folders that earlier processes of this program left and nobody uses."""
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
