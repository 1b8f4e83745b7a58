"""Selects files: by the patterns a model writes, and by a project's ignore rules."""

from collections.abc import Callable, Sequence

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
_MAX_RULES_BYTES = 1_000_000
_MAX_RULES = 5_000  # of one file; later ones are ignored


def is_dependency(path: str) -> bool:
    """Return whether a path (with `/`) leads into a folder of dependencies or build results."""
    return any(part in _DEPENDENCY_NAMES for part in path.split("/")[:-1])


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths with forward slashes, relative to the pattern's folder.

    Rules as in `.gitignore`: without a slash a name at any depth, `**` any folders; and
    `{a,b}` for alternatives, a leading `!` for all but these. Raises KodeError `InvalidArguments`.
    """
    pattern = pattern.replace("\\", "/").removeprefix("./")
    negated = pattern.startswith("!")
    wanted = [GlobPattern.parse(line) for line in _alternatives(pattern.removeprefix("!"))]
    patterns = [found for found in wanted if found and not found.negated]
    if not patterns or len(patterns) < len(wanted):
        raise _invalid(pattern)

    def selected(path: str) -> bool:
        parts = path.split("/")
        found = any(
            pattern.matches(parts[:count], folder=count < len(parts))
            for pattern in patterns
            for count in range(1, len(parts) + 1)
        )
        return found != negated

    return selected


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
        self._chain = tuple(chain)

    def entered(self, root: Root, parts: tuple[str, ...]) -> "IgnoreRules":
        """Return these rules and those of the `.gitignore` in the folder at `parts`."""
        rules = _read_rules(root, parts)
        return IgnoreRules((*self._chain, (len(parts), rules))) if rules else self

    def ignores(self, parts: tuple[str, ...], *, folder: bool) -> bool:
        """Return whether a file or folder, by its names below the root, is ignored itself.

        Everything in an ignored folder is ignored: check the folders on the way first.
        """
        for depth, rules in reversed(self._chain):
            below = parts[depth:]
            rule = next((rule for rule in rules if rule.matches(below, folder=folder)), None)
            if rule is not None:
                return not rule.negated
        return False


def rules_for(root: Root, parts: tuple[str, ...]) -> IgnoreRules:
    """Return the rules inside a folder; none from above if the folder itself is ignored."""
    rules = IgnoreRules().entered(root, ())
    for depth in range(1, len(parts) + 1):
        if rules.ignores(parts[:depth], folder=True):
            return IgnoreRules().entered(root, parts)
        rules = rules.entered(root, parts[:depth])
    return rules


def is_ignored(
    root: Root, base: tuple[str, ...], parts: tuple[str, ...], *, folder: bool = False
) -> bool:
    """Return whether a file or folder below `base` is ignored, itself or by a folder above it."""
    rules = rules_for(root, base)
    for depth in range(len(base) + 1, len(parts) + 1):
        if rules.ignores(parts[:depth], folder=folder or depth < len(parts)):
            return True
        rules = rules.entered(root, parts[:depth])
    return False


def _read_rules(root: Root, parts: tuple[str, ...]) -> Sequence[GlobPattern]:
    """Return the rules of the folder's own file, last first: the last one that matches decides."""
    names = (*parts, ".gitignore")
    place = Location(
        root, root.path.joinpath(*names), root.real.joinpath(*names), names, "/".join(names)
    )
    try:
        lines = read_regular(place, _MAX_RULES_BYTES).decode("utf-8-sig", "replace").split("\n")
    except KodeError:
        return ()
    rules = (GlobPattern.parse(line) for line in lines)
    return [rule for rule in rules if rule is not None][_MAX_RULES - 1 :: -1]
