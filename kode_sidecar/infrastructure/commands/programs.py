"""Finds the program of a name, and makes its environment (W14).

A program is never taken from a folder in which the agent can write, and gets no keys.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from kode_sidecar.core.real_path import real_path
from kode_sidecar.errors import KodeError

_BATCH = frozenset({".bat", ".cmd"})
_RUNNABLE = (".exe", ".com")
MAX_NAME_CHARS = 100


def search_folders(path: str, out_of: Sequence[Path]) -> tuple[Path, ...]:
    """Return the absolute folders of a search path that do not lie in `out_of`."""
    forbidden = [real_path(folder) for folder in out_of]
    found: list[Path] = []
    for entry in path.split(os.pathsep):
        if os.path.isabs(entry):
            real = real_path(entry)
            if not any(real.is_relative_to(folder) for folder in forbidden):
                found.append(Path(entry))
    return tuple(dict.fromkeys(found))


def find_program(name: str, folders: Sequence[Path], out_of: Sequence[Path]) -> Path:
    """Return the first program of that name in `folders` that does not lie below `out_of`.

    Raises KodeError `InvalidArguments` for anything but a plain name, `Denied` for a batch file,
    which only a command shell can run, `ToolFailed` (reason `no_program`) if there is none.
    """
    _check_name(name)
    forbidden = [real_path(folder) for folder in out_of]
    batch = ""
    for folder in folders:
        for candidate in _candidates(folder, name):
            real = real_path(candidate)
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


def own_program(file: str, root: Path) -> Path | None:
    """Return the file that the user's settings name, if it can be run.

    A relative path is below `root`.
    """
    path = Path(os.path.join(root, os.path.expanduser(file)))
    return path if _is_program(real_path(path)) else None


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


_KEPT_WORDS = """
    PATH HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR TEMP TMP
    LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE HOMEDRIVE HOMEPATH
    APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
"""
KEPT_NAMES = frozenset(_KEPT_WORDS.split())

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
# These make a loader or an interpreter run other code, which would bypass the policy.
_LOADER_NAME = re.compile(
    r"LD_.*|DYLD_.*|PYTHONSTARTUP|PYTHONPATH|NODE_OPTIONS|BASH_ENV|ENV|PERL5OPT|RUBYOPT"
    r"|JAVA_TOOL_OPTIONS|GIT_.*",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable of that name may hold a key."""
    return _SECRET_NAME.search(name) is not None


def check_names(names: Sequence[str]) -> None:
    """Refuse names that a command must not get. Raises KodeError `ConfigInvalid`."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise KodeError("ConfigInvalid", f"{name!r} is no name of an environment variable.")
        if is_secret_name(name):
            raise KodeError(
                "ConfigInvalid",
                f"The environment variable {name} is never given to a command: by its name it "
                "holds a key. Have the command read it from a file of your own.",
            )
        if _LOADER_NAME.fullmatch(name):
            raise KodeError(
                "ConfigInvalid",
                f"The environment variable {name} is never given to a command: it decides what "
                "code the command runs.",
            )


# For Git: no pager, no program named by a repository's own settings, and no bare repository, which
# an agent could have created in any folder.
_GIT_SETTINGS = {
    "core.pager": "cat",
    "core.fsmonitor": "false",
    "safe.bareRepository": "explicit",
}


def command_environment(
    environ: Mapping[str, str], path: str, ceiling: str = "", more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment of a command. `path` is the search path it was found by.

    `more` are names that passed `check_names`. With a `ceiling`, Git looks for a repository only
    below it: a sandbox inside a repository is not part of that one.
    """
    wanted = KEPT_NAMES | {name.upper() for name in more}
    kept = {name: value for name, value in environ.items() if name.upper() in wanted}
    kept = {name: value for name, value in kept.items() if name.upper() != "PATH"}
    git = {"GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS))}
    for number, (name, value) in enumerate(_GIT_SETTINGS.items()):
        git |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    if ceiling:
        git["GIT_CEILING_DIRECTORIES"] = ceiling
    return {
        **kept,
        **git,
        "PATH": path,
        "PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
