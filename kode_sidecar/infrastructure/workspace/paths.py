"""Guards every path a model names (W11): checks first the string, then the real place.

1. The string is screened with the rules of Windows on every platform, before any system call.
2. The place behind all links must lie inside a root (folder the editor opened).
3. `disk.read_regular` opens it without following links and checks what it opened.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.sensitive import is_refused

_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE
)
_SHORT_NAME = re.compile(r"[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ANCHOR = re.compile(r"[/\\]{1,2}|[A-Za-z]:[/\\]?")
_SEPARATOR = re.compile(r"[/\\]+")
_MAX_PATH = 4096


@dataclass(frozen=True)
class Root:
    """A folder the editor opened. `name` is unique among the roots; `real` is behind all links."""

    name: str
    path: Path
    real: Path
    case_sensitive: bool

    @cached_property
    def _bases(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return [_split(str(base)) for base in dict.fromkeys((self.path, self.real))]

    def parts_of(self, path: str) -> tuple[str, ...] | None:
        """Return the names from this root to an absolute path; None if it is not below the root.

        Compares spellings, both with the root as given and with its real path.
        """
        anchor, parts = _split(path)
        for base_anchor, base_parts in self._bases:
            count = len(base_parts)
            if anchor == base_anchor and self._same(parts[:count], base_parts):
                return parts[count:]
        return None

    def contains(self, real: Path) -> bool:
        """Return whether a link-free path lies inside; compares identity if case is ignored."""
        base, parts = self.real.parts, real.parts
        if parts[: len(base)] == base:
            return True
        if self.case_sensitive or not self._same(parts[: len(base)], base):
            return False
        try:
            return os.path.samefile(Path(*parts[: len(base)]), self.real)
        except OSError:
            return False

    def _same(self, one: Sequence[str], other: Sequence[str]) -> bool:
        if self.case_sensitive:
            return tuple(one) == tuple(other)
        return [part.lower() for part in one] == [part.lower() for part in other]


@dataclass(frozen=True)
class Location:
    """A guarded place inside `root`; there may be nothing yet.

    `path` spells the root as the editor does and holds no link below it; `real` is behind all
    links. `named` are the parts as they were asked for. `display` is how the model knows it.
    """

    root: Root
    path: Path
    real: Path
    named: tuple[str, ...]
    display: str

    @cached_property
    def below(self) -> tuple[str, ...]:
        """The names from the root to `real`."""
        return self.real.parts[len(self.root.real.parts) :]

    @cached_property
    def uri(self) -> str:
        """The URI of `path`."""
        return path_to_uri(self.path)

    @cached_property
    def real_uri(self) -> str:
        """The URI of `real`."""
        return path_to_uri(self.real)

    @cached_property
    def is_secret(self) -> bool:
        """True if a file there holds credentials by its name, the given or the real one."""
        return is_secret_path(self.named) or is_secret_path(self.below)

    @cached_property
    def is_refused(self) -> bool:
        """True if no edit is ever allowed there, by the given or the real name."""
        return is_refused(self.named) or is_refused(self.below)


def make_roots(paths: Sequence[Path]) -> tuple[Root, ...]:
    """Make roots from absolute folders, in order; a second `app` is named `app-2`."""
    roots: list[Root] = []
    for path in paths:
        base = path.name or "root"
        name, count = base, 1
        while any(root.name.lower() == name.lower() for root in roots):
            count += 1
            name = f"{base}-{count}"
        real = Path(os.path.realpath(path))
        roots.append(Root(name, path, real, _is_case_sensitive(real)))
    return tuple(roots)


def locate(path: str, roots: Sequence[Root], exists: Callable[[Path], bool]) -> Location:
    """Return the guarded place of a path that a model wrote.

    The path is absolute, relative to the first root that has it (`exists`), or, with several
    roots, begins with a root's name. Raises KodeError `PathOutsideRoots`.
    """
    if not roots:
        raise _outside("No folder is open in the editor, so there are no files to work on.")
    _check_text(path)
    root, parts = _choose(path, roots, exists)
    real = Path(os.path.realpath(root.real.joinpath(*parts)))
    for home in roots:
        if home.contains(real):
            below = real.parts[len(home.real.parts) :]
            display = display_name(home, below, roots)
            return Location(home, home.path.joinpath(*below), real, parts, display)
    raise _outside(f"{'/'.join(parts)} is a link that leads out of the open folder.")


def screened(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the anchor of a path, and its names, each plain under the rules of Windows.

    The anchor is "", `/`, `//` (UNC), `c:` or `c:/`. No system call is made.
    Raises KodeError `PathOutsideRoots`.
    """
    _check_text(path)
    anchor, parts = _split(path)
    return anchor, _screen(parts)


def display_name(root: Root, parts: Sequence[str], roots: Sequence[Root]) -> str:
    """Return a path as the model knows it: below its root, named if there are several roots."""
    named = (root.name, *parts) if len(roots) > 1 else tuple(parts)
    return "/".join(named) or "."


def _choose(
    path: str, roots: Sequence[Root], exists: Callable[[Path], bool]
) -> tuple[Root, tuple[str, ...]]:
    anchor, parts = _split(path)
    if anchor:
        for root in roots:
            below = root.parts_of(path)
            if below is not None:
                return root, _screen(below)
        raise _outside(
            "That absolute path is not inside an open folder. "
            f"Write the path relative to the folder {' or '.join(root.name for root in roots)}."
        )
    parts = _screen(parts)
    choices = [(root, parts) for root in roots]
    if len(roots) > 1 and parts:
        named = [(root, parts[1:]) for root in roots if root.name == parts[0]]
        choices = named + choices
    if len(choices) == 1:
        return choices[0]
    found = (choice for choice in choices if exists(choice[0].path.joinpath(*choice[1])))
    return next(found, choices[0])


def _check_text(path: str) -> None:
    if _CONTROL.search(path) or len(path) > _MAX_PATH:
        raise _outside("The path holds control characters or is too long.")


def _split(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the anchor of a path, and its names. Anchors: "", `/`, `//`, `c:`, `c:/`."""
    anchor = _ANCHOR.match(path)
    rest = path[anchor.end() :] if anchor else path
    names = tuple(name for name in _SEPARATOR.split(rest) if name)
    return (anchor[0].replace("\\", "/").lower() if anchor else ""), names


def _screen(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts without `.`, if each is a plain name under the rules of Windows."""
    kept = tuple(part for part in parts if part != ".")
    for part in kept:
        reason = _refusal(part)
        if reason:
            raise _outside(f'The path is refused because "{part}" {reason}.')
    return kept


def _refusal(part: str) -> str | None:
    if part == "..":
        return "climbs out of a folder; write the path from the open folder downwards"
    if ":" in part:
        return "names an alternate stream or a drive"
    if part.endswith((".", " ")):
        return "ends with a dot or a space"
    if _DEVICE.fullmatch(part):
        return "is a device name on Windows"
    if _SHORT_NAME.fullmatch(part):
        return "looks like a short (8.3) name; write the full name"
    return "is too long" if len(part) > 255 else None


def _is_case_sensitive(real: Path) -> bool:
    """Return whether a folder cannot be reached by a differently cased spelling."""
    try:
        return not os.path.samefile(real, str(real).swapcase())
    except OSError:
        return True


def _outside(message: str) -> KodeError:
    return KodeError("PathOutsideRoots", message)
