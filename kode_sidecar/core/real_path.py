"""Asks about places on disk that somebody may replace meanwhile: an answer, or a typed error.

It stands alone because every layer needs it, and it needs nothing.
"""

import os
import stat
from itertools import islice
from pathlib import Path
from typing import Literal

from kode_sidecar.errors import KodeError

_TRIES = 100
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the path without links, also of a file that does not exist.

    `os.path.realpath` first asks if something is a link and then reads it: it fails if that was
    replaced by a file in between. Raises KodeError `Denied` if it is replaced without a pause;
    ValueError for a path that no system takes.
    """
    for _ in range(_TRIES):
        try:
            return Path(os.path.realpath(path))
        except OSError:
            continue
    raise KodeError("Denied", f"{os.fspath(path)!r} is replaced again and again. Try again later.")


def folder_entries(folder: Path, limit: int | None = None) -> list[os.DirEntry[str]]:
    """Return a folder's entries, at most `limit`; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, limit))
    except OSError:
        return []


def kind_of(entry: os.DirEntry[str]) -> Literal["link", "folder", "file", ""]:
    """Return what an entry is, "" for anything else; a junction of Windows is a link.

    Some disks name entries without their kinds, which are asked for then. That fails for an entry
    that nobody may look at or that was just replaced: it has no kind either.
    """
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
