"""Resolves the links of a path. It stands alone because every layer needs it, and nothing else."""

import os
from pathlib import Path

from kode_sidecar.errors import KodeError

_TRIES = 100


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
