"""Selects files: by the patterns a model writes, and by a project's ignore rules."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kode_sidecar.core.text.canonical import forms
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.glob_pattern import GlobPattern
from kode_sidecar.infrastructure.workspace.paths import Location, Root

_IGNORED_WORDS = """
    .git .hg .svn .jj node_modules bower_components .venv __pycache__ .mypy_cache .pytest_cache
    .ruff_cache .hypothesis .tox .nox .eggs .gradle .next .nuxt .svelte-kit .terraform
    .DS_Store Thumbs.db
"""
IGNORED_NAMES = frozenset(_IGNORED_WORDS.split())
"""Names never listed or searched, unless a path leads into them."""

_DEPENDENCY_WORDS = """
    vendor third_party site-packages venv Pods Carthage .cargo .m2 jspm_packages target build dist
"""
_DEPENDENCY_NAMES = IGNORED_NAMES | frozenset(_DEPENDENCY_WORDS.split())

_MAX_ALTERNATIVES = 64
_EXCLUDE = (".git", "info", "exclude")
_MAX_RULES_BYTES = 1_000_000
_MAX_RULES = 5_000  # of one file; later ones are ignored


def is_dependency(path: str) -> bool:
    """Return whether a path (with `/`) leads into a folder of dependencies or build results."""
    return any(part in _DEPENDENCY_NAMES for part in path.split("/")[:-1])


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths with forward slashes, relative to the pattern's folder.

    Rules as in `.gitignore`: without a slash a name at any depth, `**` any folders; and
    `{a,b}` for alternatives, a leading `!` for all but these; `[id]` is also a name. Raises
    KodeError `InvalidArguments`.
    """
    patterns, negated = parse_glob(pattern)

    def selected(path: str) -> bool:
        parts = path.split("/")
        found = any(
            pattern.matches(parts[:count], folder=count < len(parts))
            for pattern in patterns
            for count in range(1, len(parts) + 1)
        )
        return found != negated

    return selected


def parse_glob(pattern: str) -> tuple[list[GlobPattern], bool]:
    """Return the alternatives of a pattern, and whether it means all but these.

    Raises KodeError `InvalidArguments`.
    """
    pattern = pattern.replace("\\", "/").removeprefix("./")
    lines = [one for line in _alternatives(pattern.removeprefix("!")) for one in forms(line)]
    wanted = [GlobPattern.parse(line, names_brackets=True) for line in lines]
    patterns = [found for found in wanted if found and not found.negated]
    if not patterns or len(patterns) < len(wanted):
        raise _invalid(pattern)
    return patterns, pattern.startswith("!")


def _invalid(pattern: str) -> KodeError:
    return KodeError(
        "InvalidArguments", f'"{pattern}" is no valid pattern; write one like "src/**/*.py".'
    )


def _alternatives(pattern: str) -> list[str]:
    """Expand `a.{b,c}` to `a.b` and `a.c`."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        head, opened, rest = todo.pop(0).partition("{")
        choice, closed, tail = rest.partition("}")
        if not (opened and closed):
            done.append(head + opened + rest)
        else:
            todo += [f"{head}{option}{tail}" for option in choice.split(",")]
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise _invalid(pattern)
    return done


class IgnoreRules:
    """The `.gitignore` files from a root down to a folder; the deepest one that matches decides."""

    def __init__(self, chain: Sequence[tuple[int, Sequence[GlobPattern]]] = ()) -> None:
        self.chain = tuple(chain)

    def entered(self, root: Root, parts: tuple[str, ...]) -> "IgnoreRules":
        """Return these rules and those of the `.gitignore` in the folder at `parts`."""
        rules = read_rules(root, parts)
        return IgnoreRules((*self.chain, (len(parts), rules))) if rules else self

    def ignores(self, parts: tuple[str, ...], *, folder: bool) -> bool:
        """Return whether a file or folder, by its names below the root, is ignored itself.

        Everything in an ignored folder is ignored: check the folders on the way first.
        """
        for depth, rules in reversed(self.chain):
            below = parts[depth:]
            rule = next((rule for rule in rules if rule.matches(below, folder=folder)), None)
            if rule is not None:
                return not rule.negated
        return False

    def opened(self, parts: tuple[str, ...]) -> "IgnoreRules":
        """Return these rules without those that hide all that a folder holds: it was named."""

        def hides_all(depth: int, rule: GlobPattern) -> bool:
            here = depth == len(parts) or rule.segments != _ANY_NAME
            probe = (*parts[depth:], _NO_NAME)
            return here and not rule.negated and rule.matches(probe, folder=True)

        chain = [
            (depth, [rule for rule in rules if not hides_all(depth, rule)])
            for depth, rules in self.chain
        ]
        return IgnoreRules(chain)


_ANY_NAME = ("**", "*")
_NO_NAME = "\x00"


def rules_for(root: Root, parts: tuple[str, ...]) -> IgnoreRules:
    """Return the rules inside a folder that was named: none of them hides all that it holds."""
    rules = IgnoreRules([(0, read_rules(root, (), _EXCLUDE))]).entered(root, ())
    for depth in range(1, len(parts) + 1):
        if rules.ignores(parts[:depth], folder=True):
            return IgnoreRules().entered(root, parts).opened(parts)
        rules = rules.entered(root, parts[:depth])
    return rules.opened(parts) if parts else rules


def is_other_project(root: Root, parts: tuple[str, ...]) -> bool:
    """Return whether a folder is a checkout of its own, such as a worktree or a submodule.

    The repositories in a folder that holds nothing else are what the user works on.
    """
    if not os.path.lexists(root.real.joinpath(*parts, ".git")):
        return False
    return len(parts) > 1 or not _is_shelf(root.real)


def _is_shelf(folder: Path) -> bool:
    """Return whether a folder holds only folders, and is no repository itself."""
    try:
        with os.scandir(folder) as entries:
            return all(entry.name != ".git" and entry.is_dir() for entry in entries)
    except OSError:
        return False


def is_left_out(
    root: Root, base: tuple[str, ...], parts: tuple[str, ...], rules: IgnoreRules | None = None
) -> bool:
    """Return whether a file below `base` is ignored, or in another project, as a list has it."""
    rules = rules_for(root, base) if rules is None else rules
    for depth in range(len(base) + 1, len(parts) + 1):
        folder = depth < len(parts)
        if rules.ignores(parts[:depth], folder=folder):
            return True
        if folder and is_other_project(root, parts[:depth]):
            return True
        rules = rules.entered(root, parts[:depth])
    return False


def read_rules(
    root: Root, parts: tuple[str, ...], file: tuple[str, ...] = (".gitignore",)
) -> Sequence[GlobPattern]:
    """Return the rules of the folder's own file, last first: the last one that matches decides."""
    names = (*parts, *file)
    place = Location(
        root, root.path.joinpath(*names), root.real.joinpath(*names), names, "/".join(names)
    )
    try:
        lines = read_regular(place, _MAX_RULES_BYTES).decode("utf-8-sig", "replace").split("\n")
    except KodeError:
        return ()
    rules = (GlobPattern.parse(line) for line in lines)
    return [rule for rule in rules if rule is not None][_MAX_RULES - 1 :: -1]
