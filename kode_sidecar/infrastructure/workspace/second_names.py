"""Finds the other names of a file that has several (hard links), within bounds (W11).

The same file may have a name outside of the open folder, where it is somebody else's. Package
managers link what they install that way to a store: such files are read, but not edited.
"""

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from kode_sidecar.core.real_path import folder_entries, kind_of

MAX_ENTRIES = 50_000
"""The most names of a root that are looked at."""
_FRESH_SECONDS = 5.0
_DEPENDENCIES = {"node_modules", "site-packages", "vendor", "third_party"}


class SecondNames:
    """The names of the files below a folder by their inode; looked up anew after some seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._walked_at = float("-inf")
        self._names: dict[int, list[Path]] = {}

    def of(self, status: os.stat_result) -> list[tuple[str, ...]]:
        """Return the names of a file below the folder that were found, each checked anew."""
        if monotonic() - self._walked_at > _FRESH_SECONDS:
            self._names, self._walked_at = _walked(self._folder), monotonic()
        depth = len(self._folder.parts)
        found = self._names.get(status.st_ino, ())
        return [path.parts[depth:] for path in found if _is_same(path, status)]


def is_installed(names: Sequence[str]) -> bool:
    """Return whether a file was put there by a package manager, by its names below a root."""
    return any(name.lower() in _DEPENDENCIES for name in names[:-1])


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), status)
    except OSError:
        return False


def _walked(folder: Path) -> dict[int, list[Path]]:
    """Return the files below a folder; what was installed is looked at last."""
    names: dict[int, list[Path]] = {}
    waiting, last = deque([folder]), deque[Path]()
    left = MAX_ENTRIES
    while left > 0 and (waiting or last):
        for entry in folder_entries((waiting or last).popleft(), limit=left):
            left -= 1
            kind = kind_of(entry)
            if kind == "folder":
                late = entry.name.lower() in _DEPENDENCIES
                (last if late else waiting).append(Path(entry.path))
            elif kind == "file":
                with suppress(OSError):
                    names.setdefault(entry.inode(), []).append(Path(entry.path))
    return names
