"""Words the ignore rules for ripgrep, so that it searches at least the files that a list shows.

Ripgrep reads `.gitignore` in its own way: `{a,b}` is a choice there, while git takes it literally.
What it searches too much is filtered from its hits by the same rules as lists.
"""

from collections.abc import Iterator, Sequence

from kode_sidecar.infrastructure.workspace.glob_pattern import GlobPattern, for_ripgrep
from kode_sidecar.infrastructure.workspace.globs import (
    is_other_project,
    parse_glob,
    read_rules,
    rules_for,
)
from kode_sidecar.infrastructure.workspace.paths import Location

MARKS = ("**/.gitignore", "**/.git", "**/.git/HEAD", "!**/.git/*/")
"""Globs of the files that say what is left out of a search."""


def ignore_text(target: Location, marks: Sequence[str]) -> str:
    """Return the text of an ignore file for ripgrep in the root of `target`, which is searched.

    `marks` are the files found below it by `MARKS`. Blocking: it reads them.
    """
    root, base = target.root, target.below
    folders = sorted({_folder(mark) for mark in marks}, key=len)
    rules = rules_for(root, base).chain
    lines: list[str] = []
    for depth, patterns in rules:
        lines += _lines(patterns, base[:depth])
    for folder in folders:
        if len(folder) > len(base) and folder[: len(base)] == base:
            lines += _lines(read_rules(root, folder), folder)
            if is_other_project(root, folder):
                lines.append("".join(f"/{_word(name)}" for name in folder))
    return "".join(f"{line}\n" for line in lines)


def glob_arguments(glob: str, base: tuple[str, ...]) -> list[str]:
    """Return a pattern below `base` as ripgrep's arguments, which may select too many files."""
    if not glob:
        return []
    patterns, negated = parse_glob(glob)
    found: list[str] = []
    for pattern in patterns:
        words = [for_ripgrep(name, names_brackets=True) for name in pattern.segments]
        if negated and not all(exact for _, exact in words):
            continue
        path = "".join(f"/{word}" for word in [*map(_word, base), *(word for word, _ in words)])
        if negated:
            found.append(f"--glob=!{path}{'/' * pattern.folders_only}")
        else:
            found += [f"--glob={path}/**"] + [f"--glob={path}"] * (not pattern.folders_only)
    return found


def _folder(mark: str) -> tuple[str, ...]:
    parts = tuple(mark.removeprefix("./").split("/"))
    return parts[: parts.index(".git")] if ".git" in parts else parts[:-1]


def _lines(patterns: Sequence[GlobPattern], folder: tuple[str, ...]) -> Iterator[str]:
    """Yield rules in the order of their file; one that ripgrep would apply to more is left out."""
    for pattern in reversed(patterns):
        words = [for_ripgrep(name) for name in pattern.segments]
        if pattern.negated or all(exact for _, exact in words):
            path = "".join(f"/{name}" for name in [*map(_word, folder), *(one for one, _ in words)])
            yield f"{'!' * pattern.negated}{path}{'/' * pattern.folders_only}"


def _plain(name: str) -> str:
    """Return a name as a pattern that means only it."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in name)


def _word(name: str) -> str:
    return for_ripgrep(_plain(name))[0]
