"""Which files count: patterns a model writes, ignore rules of a project."""

from collections.abc import Callable, Sequence

from pathspec import GitIgnoreSpec

from kode_sidecar.errors import KodeError
from kode_sidecar.workspace.disk import read_regular
from kode_sidecar.workspace.paths import Location, Root

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
_MAX_RULES_BYTES = 200_000


def is_dependency(path: str) -> bool:
    """Whether a path with forward slashes leads into what others wrote, or what was built."""
    return any(part in _DEPENDENCY_NAMES for part in path.split("/")[:-1])


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """A test for paths with forward slashes, relative to the folder the pattern is meant in.

    Rules as in `.gitignore`: without a slash a name at any depth, `**` any folders; and
    `{a,b}` for alternatives, a leading `!` for all but these. Raises KodeError `InvalidArguments`.
    """
    pattern = pattern.replace("\\", "/").removeprefix("./")
    negated = pattern.startswith("!")
    try:
        spec = GitIgnoreSpec.from_lines(_alternatives(pattern.removeprefix("!")))
    except ValueError:
        raise KodeError(
            "InvalidArguments", f'"{pattern}" is no valid pattern; write one like "src/**/*.py".'
        ) from None
    return lambda path: spec.match_file(path) != negated


def _alternatives(pattern: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`."""
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
            raise ValueError("too many alternatives")
    return done


class IgnoreRules:
    """The `.gitignore` files from a root down to a folder; the deepest that has a word decides."""

    def __init__(self, chain: Sequence[tuple[int, GitIgnoreSpec]] = ()) -> None:
        self._chain = tuple(chain)

    def entered(self, root: Root, parts: tuple[str, ...]) -> "IgnoreRules":
        """These rules and those of the `.gitignore` in the folder at `parts` below the root."""
        spec = _read_rules(root, parts)
        return IgnoreRules((*self._chain, (len(parts), spec))) if spec else self

    def ignores(self, parts: tuple[str, ...], *, folder: bool) -> bool:
        """Whether a file or folder, by its names below the root, is ignored."""
        for depth, spec in reversed(self._chain):
            verdict = spec.check_file("/".join(parts[depth:]) + ("/" if folder else "")).include
            if verdict is not None:
                return verdict
        return False


def rules_for(root: Root, parts: tuple[str, ...]) -> IgnoreRules:
    """The rules in force inside a folder; none from above if the folder itself is ignored."""
    rules = IgnoreRules().entered(root, ())
    for depth in range(1, len(parts) + 1):
        if rules.ignores(parts[:depth], folder=True):
            return IgnoreRules().entered(root, parts)
        rules = rules.entered(root, parts[:depth])
    return rules


def is_ignored(root: Root, base: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a file below the folder `base` is ignored, itself or by a folder on the way."""
    rules = rules_for(root, base)
    for depth in range(len(base) + 1, len(parts) + 1):
        if rules.ignores(parts[:depth], folder=depth < len(parts)):
            return True
        rules = rules.entered(root, parts[:depth])
    return False


def _read_rules(root: Root, parts: tuple[str, ...]) -> GitIgnoreSpec | None:
    names = (*parts, ".gitignore")
    place = Location(
        root, root.path.joinpath(*names), root.real.joinpath(*names), names, "/".join(names)
    )
    try:
        data = read_regular(place, _MAX_RULES_BYTES)
        return GitIgnoreSpec.from_lines(data.decode("utf-8-sig", "replace").split("\n"))
    except (KodeError, ValueError):
        return None
