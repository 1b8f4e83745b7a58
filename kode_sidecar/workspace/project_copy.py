"""A project copied for an agent to work on. The project itself is only read.

What was copied is also kept as it was, in one archive: `project_changes` compares with it, so that
the patch fits even when the project has changed meanwhile.
"""

import hashlib
import os
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.errors import KodeError
from kode_sidecar.text.git_patch import FileState
from kode_sidecar.workspace.credentials import find_secret, is_secret_path
from kode_sidecar.workspace.disk import MAX_FILE_BYTES, read_regular
from kode_sidecar.workspace.globs import compile_glob
from kode_sidecar.workspace.listing import list_tree
from kode_sidecar.workspace.paths import Location, Root, locate, make_roots
from kode_sidecar.workspace.sensitive import is_refused

PLAIN, EXECUTABLE = "100644", "100755"


@dataclass(frozen=True)
class CopyLimits:
    """Beyond `files` or `total_bytes` nothing is copied; a file beyond `file_bytes` is left out."""

    files: int = 20_000
    file_bytes: int = MAX_FILE_BYTES
    total_bytes: int = 200_000_000


@dataclass(frozen=True)
class CopyWishes:
    """What is copied. `exclude` are patterns as in `.gitignore`.

    `named` are files copied although ignore rules or credentials in them say no: paths below the
    project.
    """

    exclude: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """A file that was not copied, or is not in a patch, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class CopiedFile:
    """A file as it was in the project. `path` has forward slashes, `sha256` is hex."""

    path: str
    size: int
    sha256: str
    mode: str


@dataclass(frozen=True)
class ProjectCopy:
    """The copy of `project` in `folder`. `archive` holds each of `files` as it was, by its path."""

    project: Root
    folder: Root
    archive: Path
    files: dict[str, CopiedFile]
    left_out: tuple[LeftOut, ...]

    def check_free(self, place: Location) -> None:
        """Whether a new file there is new in the project too. Raises KodeError `Denied`."""
        if place.root.real != self.folder.real or "/".join(place.below) in self.files:
            return
        if self._is_taken(self.project.real.joinpath(*place.below)):
            raise KodeError(
                "Denied",
                f"{place.display} exists in the project but was not copied here: it is ignored, a "
                "link, too large, or holds credentials. Choose another path.",
            )

    def _is_taken(self, path: Path) -> bool:
        """Whether the project has something there that a patch would not take away."""
        if os.path.islink(path) or not os.path.isdir(path):
            return os.path.lexists(path)
        below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        return any(one.relative_to(self.project.real).as_posix() not in self.files for one in below)


def place_in(root: Root, parts: tuple[str, ...]) -> Location:
    """The place of names that a walk has found below a root, where no link is on the way."""
    name = "/".join(parts) or "."
    return Location(root, root.path.joinpath(*parts), root.real.joinpath(*parts), parts, name)


def file_mode(place: Location, known: str = PLAIN) -> str:
    """A file's mode as Git writes it; `known` where the system has no such thing (Windows)."""
    if sys.platform == "win32":
        return known
    return EXECUTABLE if os.lstat(place.real).st_mode & stat.S_IXUSR else PLAIN


def copy_project(
    project: Path,
    folder: Path,
    archive: Path,
    *,
    apart: Path,
    wishes: CopyWishes = CopyWishes(),
    limits: CopyLimits = CopyLimits(),
    stopped: Callable[[], bool] = lambda: False,
) -> ProjectCopy:
    """Copy a project into an empty folder; nothing in or below `apart`, the sandbox, is copied.

    No link is followed and nothing of Git's own is copied. What ignore rules name is not, nor what
    holds credentials. Blocking; it ends early when `stopped()`.

    Raises KodeError: `ConfigInvalid` and `PathOutsideRoots` for a wish that cannot be granted,
    `TooLarge`, `Storage`, `Cancelled`.
    """
    source, target = make_roots([project])[0], make_roots([folder])[0]
    files: dict[str, CopiedFile] = {}
    left_out: list[LeftOut] = []
    total = 0
    named = {_named(source, path) for path in wishes.named}
    inner = source.parts_of(os.path.realpath(apart))
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as kept:
            for parts in _wanted(source, wishes, limits, stopped, named):
                if inner is not None and parts[: len(inner)] == inner:
                    continue
                try:
                    state = _read(source, parts, limits, named=parts in named)
                except KodeError as error:
                    left_out.append(LeftOut("/".join(parts), error.message))
                    continue
                _write(target, parts, state)
                kept.writestr(state.path, state.data)
                sha256 = hashlib.sha256(state.data).hexdigest()
                files[state.path] = CopiedFile(state.path, len(state.data), sha256, state.mode)
                total += len(state.data)
                if total > limits.total_bytes:
                    raise _too_large(f"more than {limits.total_bytes:,} bytes")
    except OSError as error:
        raise KodeError("Storage", f"The project cannot be copied: {error.strerror}.") from None
    return ProjectCopy(source, target, archive, files, tuple(left_out))


def _wanted(
    source: Root,
    wishes: CopyWishes,
    limits: CopyLimits,
    stopped: Callable[[], bool],
    named: set[tuple[str, ...]],
) -> Iterator[tuple[str, ...]]:
    """The names of each file to copy; links among them, which are refused when they are read."""
    excluded = [compile_glob(pattern) for pattern in wishes.exclude]

    def matches(path: str) -> bool:
        return not any(exclude(path) for exclude in excluded)

    listing = list_tree(place_in(source, ()), matches, limits.files, stopped)
    if listing.cut:
        raise _too_large(f"more than {limits.files:,} files")
    for parts in sorted(named | {file.parts for file in listing.files}):
        _check_stopped(stopped)
        yield parts
    _check_stopped(stopped)


def _check_stopped(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise KodeError("Cancelled", "Cancelled while the project was copied.")


def _named(source: Root, path: str) -> tuple[str, ...]:
    """Raises KodeError `ConfigInvalid`, `PathOutsideRoots`."""
    place = locate(path, (source,), os.path.lexists)
    if is_refused(place.below) or not os.path.isfile(place.real):
        what = "belongs to Git" if is_refused(place.below) else "is no file of the project"
        raise KodeError("ConfigInvalid", f"{path!r} cannot be copied: it {what}.")
    return place.below


def _read(source: Root, parts: tuple[str, ...], limits: CopyLimits, *, named: bool) -> FileState:
    """Raises KodeError for what must not be copied."""
    path = "/".join(parts)
    place = place_in(source, parts)
    if not path.isprintable() or locate(path, (source,), os.path.lexists).below != parts:
        raise KodeError("Denied", "It is a link, or its name is none on every system.")
    if is_secret_path(parts) and not named:
        raise KodeError("Denied", "By its name it holds credentials.")
    data = read_regular(place, limits.file_bytes)
    what = None if named else find_secret(data.decode("latin-1"))
    if what is not None:
        raise KodeError("Denied", f"It holds {what}.")
    return FileState(path, data, file_mode(place))


def _write(target: Root, parts: tuple[str, ...], state: FileState) -> None:
    path = target.real.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(state.data)
    path.chmod(int(state.mode, 8) & 0o777)


def _too_large(what: str) -> KodeError:
    return KodeError(
        "TooLarge",
        f"The project has {what}, too much to copy. Import a folder of it, or exclude what the job "
        "does not need.",
    )
