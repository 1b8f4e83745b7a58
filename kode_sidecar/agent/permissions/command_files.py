"""Looks at the files that a command names, or would reach: outside, secret, or Git's own. Blocking.

`domain.command_rules` judges the words alone; whether a word is a path only the disk says.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from kode_sidecar.core.domain.command_risks import family
from kode_sidecar.core.domain.known_arguments import Risk
from kode_sidecar.core.real_path import real_path
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.git_programs import (
    Repository,
    active_hooks,
    find_repository,
    programs_named,
    tracked_names,
)
from kode_sidecar.infrastructure.workspace.globs import IGNORED_NAMES
from kode_sidecar.infrastructure.workspace.sensitive import is_refused

_MAX_PATH = 4_096
_MOST_GLUED, _MOST_SIGNS, _MOST_PARTS = 8, 64, 256
_MOST_ENTRIES = 20_000
_SIGNS = re.compile(r"[=:;,@]")
_HARMLESS = frozenset({os.devnull, "nul", "NUL"})
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_READER_WORDS = (
    "find gfind rg ripgrep grep egrep fgrep ls tree du cat head tail wc stat file git cmp"
)
_READERS = frozenset(_READER_WORDS.split())
_SEARCHES = frozenset({"rg", "ripgrep", "ag", "ack", "ugrep"})
_SKIP_HIDDEN = frozenset({"rg", "ripgrep", "ag"})
_COMPARES = frozenset({"diff", "colordiff"})
_GREPS = re.compile(r"\w*grep")
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rRd].*|--(recursive|dereference|directories).*")
# A file of a wanted type, or that a glob matches, is searched although it is hidden.
_HIDDEN_TOO = re.compile(r"-[a-zA-Z]*[ua.gt]|--(hidden|unrestricted|no-ignore|i?glob|type)")
_SHOWING_WORDS = """
    grep diff show stash format-patch archive cat-file diff-tree diff-index diff-files range-diff
    whatchanged merge-tree
"""
_GIT_SHOWS = frozenset(_SHOWING_WORDS.split())
_HOOK_WORDS = """
    commit merge pull rebase am cherry-pick revert checkout switch clone worktree push gc reset
    restore stash update-index read-tree fetch apply
"""
_GIT_RUNS_HOOKS = frozenset(_HOOK_WORDS.split())
_GIT_OBJECT = re.compile(r"[^-:\s][^:\s]*:\S+|:\S+")
_LOG_SHOWS = re.compile(
    r"-\w*[pucmLU].*|--(patch|binary|cc|dd|raw|unified|remerge-diff|diff-merges).*"
)
_HUNK_SHOWS = re.compile(r"-[a-zA-Z]*[pv].*|--(patch|verbose).*")
_GIT_SHOWS_WITH = {"log": _LOG_SHOWS, "reflog": _LOG_SHOWS} | dict.fromkeys(
    ("status", "commit", "add", "checkout", "reset", "restore"), _HUNK_SHOWS
)


def leads_out(arguments: Sequence[str], folder: Path, roots: Sequence[Path]) -> str:
    """Return the first argument that names a path outside of `roots`, or an empty string.

    `folder` is where the command runs; links are followed.
    """
    real = [real_path(root) for root in roots]
    for argument in arguments:
        if argument in _HARMLESS:
            continue
        if any(_is_outside(text, folder, real) for text in _possible_paths(argument)):
            return argument
    return ""


def file_risks(argv: Sequence[str], folder: Path, program: str = "") -> Iterator[Risk]:
    """Yield the arguments that name a file with credentials or in Git's folder, and what is reached
    without being named. `folder` is where the command runs, `program` the real name of its file."""
    names = {family(argv[0]), family(program or argv[0])}
    for at, argument in enumerate(argv[1:], 1):
        in_git = "git" in names and _GIT_OBJECT.fullmatch(argument) is not None
        for text in islice(_possible_paths(argument), _MOST_PARTS):
            if _is_secret(text, folder, always=in_git and text != argument):
                yield Risk(at, f"{text} may hold credentials")
            elif not names & _READERS and is_refused(_parts(text)):
                yield Risk(at, f"{text} belongs to Git")
    everywhere = len(argv)
    for found in _searched_secrets(argv, folder, names):
        yield Risk(everywhere, f"{argv[0]} may show {found}, which may hold credentials")
    repository = find_repository(folder) if "git" in names else None
    if repository is not None:
        yield from (Risk(everywhere, why) for why in _of_git(argv, repository))


def _of_git(argv: Sequence[str], repository: Repository) -> Iterator[str]:
    command = next((word for word in argv[1:] if not word.startswith("-")), "")
    for name in islice(programs_named(repository), 1):
        yield f"this repository's own settings make git run a program or read elsewhere ({name})"
    hooks = active_hooks(repository) if command in _GIT_RUNS_HOOKS else []
    if hooks:
        yield f"git {command} may run hooks of this repository ({', '.join(hooks[:5])})"
    option = _GIT_SHOWS_WITH.get(command)
    shows = command in _GIT_SHOWS or (option is not None and any(map(option.fullmatch, argv)))
    secret = (name for name in tracked_names(repository) if is_secret_path(name.split("/")))
    for name in islice(secret, int(shows)):
        yield f"git {command} may show {name}, which may hold credentials"


def _is_secret(text: str, folder: Path, *, always: bool) -> bool:
    """Return whether a text names a file that may hold credentials, also through a link.

    A bare word such as `token` counts `always`, or if there is such a file.
    """
    parts = _parts(text)
    if not parts or len(text) > _MAX_PATH:
        return False
    path = os.path.join(folder, text.strip(" \"'").replace("\\", "/"))
    try:
        exists = os.path.lexists(path)
        if exists and is_secret_path(_parts(str(real_path(path)))[-4:]):
            return True
    except (OSError, ValueError, KodeError):
        exists = False
    is_path = exists or always or not set(text).isdisjoint("./\\")
    return is_path and is_secret_path(parts)


def _searched_secrets(argv: Sequence[str], folder: Path, names: set[str]) -> Iterator[str]:
    """Yield the first file with credentials that a search through folders would read."""
    options = [word for word in argv[1:] if word.startswith("-")]
    searches = not names.isdisjoint(_SEARCHES)
    places = [one for word in argv[1:] if os.path.isdir(one := os.path.join(folder, word))]
    if not searches:
        recursive = any(map(_RECURSIVE.fullmatch, options))
        greps = recursive and any(map(_GREPS.fullmatch, names))
        if not greps and not (names & _COMPARES and (recursive or places)):
            return
    hidden_too = names.isdisjoint(_SKIP_HIDDEN) or any(map(_HIDDEN_TOO.match, options))
    for place in places or [str(folder)]:
        yield from islice(_secrets_below(place, hidden_too=hidden_too), 1)


def _secrets_below(place: str, *, hidden_too: bool) -> Iterator[str]:
    entries = 0
    for folder, folders, files in os.walk(place):
        folders[:] = [
            one for one in folders if one not in IGNORED_NAMES and (hidden_too or one[0] != ".")
        ]
        entries += len(folders) + len(files)
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), place)
            if (hidden_too or file[0] != ".") and is_secret_path(_parts(path)):
                yield path
        if entries > _MOST_ENTRIES:
            return


def _parts(text: str) -> list[str]:
    pieces = re.split(r"[/\\]", text.strip(" \"'"))
    return [piece for piece in pieces if piece not in ("", ".")]


def _possible_paths(argument: str) -> Iterator[str]:
    yield argument
    if _DRIVE.match(argument):
        return
    parts = _SIGNS.split(argument)
    if argument.startswith("-") and not argument.startswith("--"):
        parts += [argument[at:] for at in range(2, min(len(argument), _MOST_GLUED))]
    signs = [sign.end() for sign in _SIGNS.finditer(argument[:_MAX_PATH])]
    parts += [argument[start:] for start in signs[:_MOST_SIGNS]]
    yield from dict.fromkeys(parts)


def _is_outside(text: str, folder: Path, roots: Sequence[Path]) -> bool:
    text = text.strip(" \"'")
    if not text or len(text) > _MAX_PATH:
        return False
    if text.startswith(("~", "\\\\", "//")) or (os.name != "nt" and _DRIVE.match(text)):
        return True
    path = os.path.join(folder, text.replace("\\", "/") if ".." in text else text)
    try:
        real = real_path(path)
    except (OSError, ValueError, KodeError):
        return True
    return not any(real.is_relative_to(root) for root in roots)
