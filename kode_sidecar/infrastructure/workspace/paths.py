"""Guards every path a model names (W11): checks first the string, then the real place.

1. The string is screened with the rules of Windows on every platform, before any system call.
   Elsewhere `places` lets a name pass that only Windows forbids, if its folder lists it.
2. The place behind all links must lie inside a root (folder the editor opened).
3. `disk.read_regular` opens it without following links and checks what it opened.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kode_sidecar.core.real_path import real_path
from kode_sidecar.core.text.canonical import composed
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.second_names import SecondNames
from kode_sidecar.infrastructure.workspace.sensitive import is_refused

_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE
)
_SHORT_NAME = re.compile(r"[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ANCHOR = re.compile(r"[/\\]{1,2}|[A-Za-z]:[/\\]?")
_SEPARATOR = re.compile(r"[/\\]+")
NATIVE_SEPARATOR = _SEPARATOR if os.name == "nt" else re.compile("/+")
_FOREIGN = re.compile(r"\\|\A[A-Za-z]:")
_MAX_PATH = 4096


@dataclass(frozen=True)
class Root:
    """A folder the editor opened. `name` is unique among the roots; `real` is behind all links."""

    name: str
    path: Path
    real: Path
    case_sensitive: bool

    @cached_property
    def second_names(self) -> SecondNames:
        """The other names of its files that have several."""
        return SecondNames(self.real)

    @cached_property
    def _bases(self) -> Sequence[str]:
        return [str(base) for base in dict.fromkeys((self.path, self.real))]

    def parts_of(
        self, path: str, separator: re.Pattern[str] = _SEPARATOR
    ) -> tuple[str, ...] | None:
        """Return the names from this root to an absolute path; None if it is not below the root.

        Compares spellings, both with the root as given and with its real path.
        """
        anchor, parts = _split(path, separator)
        for base in self._bases:
            base_anchor, base_parts = _split(base, separator)
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
        real = real_path(path)
        roots.append(Root(name, path, real, _is_case_sensitive(real)))
    return tuple(roots)


def locate(path: str, roots: Sequence[Root], exists: Callable[[Path], bool]) -> Location:
    """Return the first of `places`, by the rules of Windows everywhere; raises as that does."""
    return places(path, roots, exists, portable=True)[0]


def places(
    path: str, roots: Sequence[Root], exists: Callable[[Path], bool], *, portable: bool = False
) -> tuple[Location, ...]:
    """Return the guarded places that a path may mean, in the order of the roots: mostly one.

    The path is absolute, or relative to a root, or begins with the name of one of several roots.
    It means the roots that have it (`exists`); if none has, those that have its first folder, else
    all. What a root's name begins means only that root. Unless `portable`, names that only Windows
    forbids are used where they are. Raises KodeError `PathOutsideRoots`.
    """
    if not roots:
        raise _outside("No folder is open in the editor, so there are no files to work on.")
    _check_text(path)
    native = os.name != "nt" and not portable
    if native and _FOREIGN.search(path):  # here they are letters like others
        with suppress(KodeError):
            found = _meant(_choices(path, roots, NATIVE_SEPARATOR, native=True), exists)
            if all(exists(root.path.joinpath(*parts)) for root, parts in found):
                return _guarded(found, roots)
    return _guarded(_meant(_choices(path, roots, _SEPARATOR, native=native), exists), roots)


_Choice = tuple[Root, tuple[str, ...]]


def _guarded(choices: Sequence[_Choice], roots: Sequence[Root]) -> tuple[Location, ...]:
    """Return the places behind all links, each once, if at least one is inside the roots."""
    found: dict[Path, Location] = {}
    refused: KodeError | None = None
    for root, parts in choices:
        try:
            location = _place(root, parts, roots)
        except KodeError as error:
            refused = refused or error
        else:
            found.setdefault(location.real, location)
    if refused is not None and not found:
        raise refused
    return tuple(found.values())


def _place(root: Root, parts: tuple[str, ...], roots: Sequence[Root]) -> Location:
    real = real_path(root.real.joinpath(*parts))
    home = home_of(real, roots)
    if home is None:
        raise _outside(f"{'/'.join(parts)} is a link that leads out of the open folder.")
    below = real.parts[len(home.real.parts) :]
    display = display_name(home, below, roots)
    return Location(home, home.path.joinpath(*below), real, parts, display)


def home_of(real: Path, roots: Sequence[Root]) -> Root | None:
    """Return the innermost root that holds a link-free path."""
    homes = [root for root in roots if root.contains(real)]
    return max(homes, key=lambda root: len(root.real.parts), default=None)


def screened(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the anchor of a path, and its names, each plain under the rules of Windows.

    The anchor is "", `/`, `//` (UNC), `c:` or `c:/`. No system call is made.
    Raises KodeError `PathOutsideRoots`.
    """
    _check_text(path)
    anchor, parts = _split(path, _SEPARATOR)
    return anchor, _screen(parts)


def display_name(root: Root, parts: Sequence[str], roots: Sequence[Root]) -> str:
    """Return a path as the model knows it: below its root, named if there are several roots."""
    named = (root.name, *parts) if len(roots) > 1 else tuple(parts)
    return "/".join(named) or "."


def _choices(
    path: str, roots: Sequence[Root], separator: re.Pattern[str], *, native: bool
) -> list[tuple[Root, tuple[str, ...], bool]]:
    """Return where a path may lead, and whether it names the root; at least one place."""
    anchor, parts = _split(path, separator)
    if anchor:
        below = [(root, root.parts_of(path, separator)) for root in roots]
        choices = [(root, parts, True) for root, parts in below if parts is not None]
        if not choices:
            raise _outside(
                "That absolute path is not inside an open folder. Write the path relative to the "
                f"folder {' or '.join(root.name for root in roots)}."
            )
        choices = choices[:1]
    else:
        named = [(root, parts[1:], True) for root in roots if root.name in parts[:1]]
        choices = [*(named if len(roots) > 1 else ()), *((root, parts, False) for root in roots)]
    found: list[tuple[Root, tuple[str, ...], bool]] = []
    refused: KodeError | None = None
    for root, names, is_named in choices:
        try:
            plain = _screen(names, root.real if native else None)
            found.append((root, _as_listed(root.real, plain), is_named))
        except KodeError as error:
            refused = refused or error
    if refused is not None and not found:
        raise refused
    return found


def _meant(
    choices: Sequence[tuple[Root, tuple[str, ...], bool]], exists: Callable[[Path], bool]
) -> list[_Choice]:
    """Return the places of which the model may mean any."""
    named = [(root, parts) for root, parts, is_named in choices if is_named]
    plain = [(root, parts) for root, parts, is_named in choices if not is_named]
    if len(choices) == 1 or not any(parts for _, parts in plain):
        return [*named, *plain][:1]
    for some, depth in ((named, None), (plain, None), (named, 0), (plain, 1)):
        there = [one for one in some if exists(one[0].path.joinpath(*one[1][:depth]))]
        if there:
            return there
    return named or plain


def _check_text(path: str) -> None:
    if _CONTROL.search(path) or len(path) > _MAX_PATH:
        raise _outside("The path holds control characters or is too long.")


def _split(path: str, separator: re.Pattern[str]) -> tuple[str, tuple[str, ...]]:
    """Return the anchor of a path, and its names. Anchors: "", `/`, `//`, `c:`, `c:/`."""
    anchor = (_ANCHOR if separator is _SEPARATOR else NATIVE_SEPARATOR).match(path)
    rest = path[anchor.end() :] if anchor else path
    names = tuple(name for name in separator.split(rest) if name)
    return (anchor[0].replace("\\", "/").lower() if anchor else ""), names


def _screen(parts: Sequence[str], folder: Path | None = None) -> tuple[str, ...]:
    """Return the parts without `.`, if each is a plain name under the rules of Windows.

    On another system a name that is listed in its place below `folder` is plain, too.
    """
    plain = tuple(part for part in parts if part != ".")
    for depth, part in enumerate(plain):
        reason = _climbs(part) or _refusal(part)
        if reason and (_climbs(part) or not _is_listed(folder, plain[:depth], part)):
            raise _outside(f'The path is refused because "{part}" {reason}.')
    return plain


def _as_listed(folder: Path, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts as the folders list them, where only the letters are composed otherwise."""
    found: list[str] = []
    for part in parts:
        here = folder.joinpath(*found)
        if not part.isascii() and not os.path.lexists(here / part):
            with suppress(OSError):
                same = [name for name in os.listdir(here) if composed(name) == composed(part)]
                part = same[0] if len(same) == 1 else part
        found.append(part)
    return tuple(found)


def _is_listed(folder: Path | None, above: Sequence[str], name: str) -> bool:
    """Return whether a folder lists exactly this name: it is no alias, stream or device.

    To open it would prove nothing: a Windows disk that is mounted elsewhere opens aliases, too.
    """
    if folder is None:
        return False
    try:
        with os.scandir(folder.joinpath(*above)) as entries:
            return any(entry.name == name for entry in entries)
    except OSError:
        return False


def _climbs(part: str) -> str | None:
    if part == "..":
        return "climbs out of a folder; write the path from the open folder downwards"
    return None


def _refusal(part: str) -> str | None:
    if "\\" in part:
        return "holds a backslash"
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
