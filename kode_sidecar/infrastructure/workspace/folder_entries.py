"""Lists what a folder holds, and says what each entry is.

Some disks name the entries of a folder without their kinds. Then each is asked for, which fails for
one that may not be looked at or was just replaced: that is an entry of no kind, and no error.
"""

import os
import stat
from itertools import islice
from pathlib import Path
from typing import Literal

_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)


def folder_entries(folder: Path, limit: int | None = None) -> list[os.DirEntry[str]]:
    """Return a folder's entries, at most `limit`; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, limit))
    except OSError:
        return []


def kind_of(entry: os.DirEntry[str]) -> Literal["link", "folder", "file", ""]:
    """Return what an entry is, "" for anything else; a junction of Windows is a link."""
    try:
        if entry.is_symlink() or _is_junction(entry):
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else ""
    except OSError:
        return ""


def _is_junction(entry: os.DirEntry[str]) -> bool:
    if _JUNCTION is None:
        return False
    return getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == _JUNCTION
