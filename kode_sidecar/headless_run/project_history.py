"""Brings the history of a Git project into the copy of a run, without what makes Git run programs.

Branches, tags, objects and the index are copied. Hooks, the configuration, the reflogs and the
addresses of remotes are not: `git diff` and `git log` work, and nothing in the copy can reach out
or name a program.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from kode_sidecar.errors import KodeError

_FILES = ("HEAD", "index", "packed-refs", "shallow")
_FOLDERS = ("refs", "objects")
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"


def copy_history(
    project: Path, copy: Path, max_bytes: int, stopped: Callable[[], bool] = lambda: False
) -> None:
    """Copy the history of `project` into `copy`. Blocking; it ends early when `stopped()`.

    Raises KodeError `ConfigInvalid` for a project that has none of its own, `TooLarge`, `Storage`,
    `Cancelled`.
    """
    source, target = project / ".git", copy / ".git"
    if not _is_whole(source):
        raise KodeError(
            "ConfigInvalid",
            "`workspace.git`: the project has no whole .git folder of its own (a work tree, a "
            "submodule and a clone that borrows objects have none). Clone it, or set it to false.",
            details={"field": "workspace.git"},
        )
    total = 0
    try:
        for path in _history(source):
            if stopped():
                raise KodeError("Cancelled", "Cancelled while the project was copied.")
            total += path.stat().st_size
            if total > max_bytes:
                raise KodeError(
                    "TooLarge", f"The history of the project has more than {max_bytes:,} bytes."
                )
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        for name in _FOLDERS:
            (target / name).mkdir(exist_ok=True)
        (target / "config").write_text(_config(source), encoding="utf-8", newline="\n")
    except OSError as error:
        raise KodeError("Storage", f"The history cannot be copied: {error.strerror}.") from None


def _is_whole(folder: Path) -> bool:
    borrows = (folder / "objects" / "info" / "alternates").exists()
    return folder.is_dir() and not folder.is_symlink() and not borrows


def _history(folder: Path) -> Iterator[Path]:
    """Yield the plain files of the history; links are left alone."""
    candidates = [folder / name for name in _FILES]
    for name in _FOLDERS:
        for parent, folders, names in os.walk(folder / name):
            folders.sort()
            candidates += [Path(parent, one) for one in sorted(names)]
    for path in candidates:
        if os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode):
            yield path


def _config(folder: Path) -> str:
    """Return a configuration that says how the objects are kept, and nothing else."""
    theirs = (folder / "config").read_text("utf-8", "replace").lower().replace(" ", "")
    long = "objectformat=sha256" in theirs
    return _CONFIG.format(version=1 if long else 0) + (_SHA256 if long else "")
