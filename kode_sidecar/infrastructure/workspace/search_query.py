"""Defines a search query, and translates it into ripgrep's arguments."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.text.canonical import forms
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES
from kode_sidecar.infrastructure.workspace.globs import IGNORED_NAMES, compile_glob
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.ripgrep_rules import MARKS, glob_arguments


@dataclass(frozen=True)
class SearchQuery:
    """What to search. `path` is a file or folder, `glob` is relative to it."""

    text: str
    regex: bool = False
    case_sensitive: bool = True
    path: str = "."
    glob: str = ""
    max_results: int = 50


def selector(query: SearchQuery, targets: tuple[Location, ...]) -> Callable[[Path], bool]:
    """Return a test whether a file lies in a target and matches the glob."""
    matches = compile_glob(query.glob) if query.glob else None

    def selected(real: Path) -> bool:
        for target in targets:
            if real == target.real:
                return True
            if real.is_relative_to(target.real):
                return matches is None or matches(real.relative_to(target.real).as_posix())
        return False

    return selected


def pattern_arguments(query: SearchQuery) -> list[str]:
    """Return flags, and the pattern with letters as they are given, composed and decomposed."""
    text, regex = query.text, query.regex
    if "\n" in text and not regex:  # ripgrep would take the lines for alternatives
        text = re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", text).replace("\n", r"\r?\n")
        regex = True
    return [
        "--crlf",
        "--case-sensitive" if query.case_sensitive else "--ignore-case",
        *([] if regex else ["--fixed-strings"]),
        *(["--multiline"] if regex and ("\n" in text or r"\n" in text) else []),
        f"--max-count={query.max_results + 1}",
        *(f"--regexp={one}" for one in forms(text)),
        "--",
    ]


def disk_arguments(
    query: SearchQuery, target: Location, encoding: str | None, ignore_file: str
) -> list[str]:
    """Return the arguments to search the files below `target`; ripgrep runs in its root."""
    return [
        "--sort=path",
        "--no-messages",
        *_hidden_too(ignore_file),
        f"--max-filesize={MAX_FILE_BYTES}",
        *glob_arguments(query.glob, target.below),
        *_NEVER,
        *([f"--encoding={encoding.replace('_', '-')}"] if encoding else []),
        *pattern_arguments(query),
        "./" + "/".join(target.below),
    ]


def mark_arguments(target: Location) -> list[str]:
    """Return the arguments to list notebooks and the files that say what is left out below it."""
    globs = [*(f"--glob={mark}" for mark in MARKS), "--iglob=*.ipynb"]
    place = "./" + "/".join(target.below)
    return ["--no-messages", *_hidden_too(), *globs, *_NEVER_BUT_GIT, "--", place]


_NEVER = [f"--glob=!{name}" for name in sorted(IGNORED_NAMES)]
_NEVER_BUT_GIT = [glob for glob in _NEVER if not glob.endswith("!.git")]


def _hidden_too(ignore_file: str = "") -> list[str]:
    """Return flags for no ignore rules but ours: they are the same as those of list_files."""
    return ["--hidden", "--no-ignore", *([f"--ignore-file={ignore_file}"] if ignore_file else [])]
