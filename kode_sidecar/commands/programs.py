"""Finding a program by its name: never in the place where the agent can plant one (W14)."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.errors import KodeError

_BATCH = frozenset({".bat", ".cmd"})
_RUNNABLE = (".exe", ".com")
MAX_NAME_CHARS = 100


def search_folders(path: str, out_of: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of a search path that are absolute and neither in nor below `out_of`."""
    forbidden = [Path(os.path.realpath(folder)) for folder in out_of]
    found: list[Path] = []
    for entry in path.split(os.pathsep):
        if os.path.isabs(entry):
            real = Path(os.path.realpath(entry))
            if not any(real.is_relative_to(folder) for folder in forbidden):
                found.append(Path(entry))
    return tuple(dict.fromkeys(found))


def find_program(name: str, folders: Sequence[Path], out_of: Sequence[Path]) -> Path:
    """The first program of that name in `folders` that does not lie below `out_of`.

    Raises KodeError `InvalidArguments` for what is no plain name, `Denied` for what only a command
    shell could run, `ToolFailed` (reason `no_program`) where there is none.
    """
    _check_name(name)
    forbidden = [Path(os.path.realpath(folder)) for folder in out_of]
    batch = ""
    for folder in folders:
        for candidate in _candidates(folder, name):
            real = Path(os.path.realpath(candidate))
            if not _is_program(real) or any(real.is_relative_to(place) for place in forbidden):
                continue
            if candidate.suffix.lower() not in _BATCH:
                return candidate
            batch = candidate.name
    if batch:
        raise KodeError(
            "Denied",
            f"{batch} is a batch file, which only a command shell can run, and there is none here. "
            "Call the program behind it, such as node or python, directly.",
        )
    raise KodeError(
        "ToolFailed",
        f"There is no program {name} on the search path. Programs in the workspace are never run "
        "by their name; give an interpreter the file as an argument.",
        details={"reason": "no_program"},
    )


def _check_name(name: str) -> None:
    plain = name.isprintable() and name.strip() == name and not name.startswith((".", "-"))
    if not plain or not name or len(name) > MAX_NAME_CHARS or any(sign in name for sign in "/\\:"):
        raise KodeError(
            "InvalidArguments",
            "The first word must be the plain name of a program, such as git or python, without "
            "any folder.",
        )


def _candidates(folder: Path, name: str) -> list[Path]:
    if os.name != "nt" or Path(name).suffix.lower() in (*_RUNNABLE, *_BATCH):
        return [folder / name]
    return [folder / f"{name}{suffix}" for suffix in (*_RUNNABLE, *sorted(_BATCH))]


def _is_program(path: Path) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and os.access(path, os.X_OK)
