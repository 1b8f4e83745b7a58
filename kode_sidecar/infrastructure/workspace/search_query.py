"""Defines a search query, and translates it into ripgrep's arguments."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES
from kode_sidecar.infrastructure.workspace.globs import IGNORED_NAMES, compile_glob, is_ignored
from kode_sidecar.infrastructure.workspace.paths import Location

_IGNORE_FLAGS = (  # only the project's own .gitignore files count, as in list_files
    "--hidden",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
    "--no-ignore-parent",
)


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
    """Return flags for the pattern, and the pattern itself after `--`."""
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
        "--",
        text,
    ]


def disk_arguments(query: SearchQuery, target: Location, encoding: str | None) -> list[str]:
    """Return the arguments to search the files below `target`; ripgrep runs in its root."""
    base = target.below
    arguments = ["--sort=path", "--no-messages", *_IGNORE_FLAGS, f"--max-filesize={MAX_FILE_BYTES}"]
    if query.glob:
        arguments.append(f"--glob={_anchored(query.glob, base)}")
    arguments += [f"--glob=!{name}" for name in sorted(IGNORED_NAMES)]
    if base and not is_ignored(target.root, (), base, folder=True):
        arguments.append("--ignore-file=.gitignore")
    if encoding:
        arguments.append(f"--encoding={encoding.replace('_', '-')}")
    return [*arguments, *pattern_arguments(query), "./" + "/".join(base)]


def _anchored(glob: str, base: tuple[str, ...]) -> str:
    """Return a glob relative to `base` as one relative to the root, where ripgrep runs."""
    glob = glob.replace("\\", "/").removeprefix("./")
    negation = "!" if glob.startswith("!") else ""
    glob = glob.removeprefix("!")
    if base and "/" in glob.rstrip("/"):
        folder = re.sub(r"[\[\]{}*?!]", r"[\g<0>]", "/".join(base))
        glob = f"/{folder}/{glob.lstrip('/')}"
    return negation + glob
