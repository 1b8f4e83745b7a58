"""Copies the project of a run into its sandbox; the project itself is only read (B4).

The copied files are also saved in an archive. The patch is made against that archive, so it does
not depend on later changes of the project.
"""

import asyncio
import hashlib
import os
import shutil
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.core.real_path import real_path
from kode_sidecar.core.text.git_patch import PatchedFile, quoted
from kode_sidecar.core.text.secret_text import find_in_data
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES, read_regular
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, Root, locate, make_roots
from kode_sidecar.infrastructure.workspace.sensitive import is_refused
from kode_sidecar.jobs.run.contracts import RunScope
from kode_sidecar.jobs.run.sandbox import ARCHIVE, WORKSPACE, source_path

IMPORT_ARCHIVE = f"{ARCHIVE}/workspace-import.zip"
PLAIN, EXECUTABLE = "100644", "100755"
_MAX_SHOWN = 50
_GIT_FILES = ("HEAD", "index", "packed-refs", "shallow")
_GIT_FOLDERS = ("refs", "objects")
_GIT_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"


@dataclass(frozen=True)
class CopyLimits:
    """Above `files` or `total_bytes` the copy fails; a file above `file_bytes` is left out."""

    files: int = 20_000
    file_bytes: int = MAX_FILE_BYTES
    total_bytes: int = 200_000_000


@dataclass(frozen=True)
class LeftOut:
    """A file that was not copied, or is missing from a patch, and why."""

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
    """The copy of `project` in `folder`; `archive` holds the copied `files` by their paths."""

    project: Root
    folder: Root
    archive: Path
    files: dict[str, CopiedFile]
    left_out: tuple[LeftOut, ...]

    def check_free(self, place: Location) -> None:
        """Raise KodeError `Denied` for a new file that the project has but the copy has not."""
        if place.root.real != self.folder.real or "/".join(place.below) in self.files:
            return
        if self._is_taken(self.project.real.joinpath(*place.below)):
            raise KodeError(
                "Denied",
                f"{place.display} exists in the project but was not copied here: it is ignored, a "
                "link, too large, or holds credentials. Choose another path.",
            )

    def _is_taken(self, path: Path) -> bool:
        """Return whether the project has something there that was not copied, or a link."""
        if os.path.islink(path) or not os.path.isdir(path):
            return os.path.lexists(path)
        below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
        return any(one.relative_to(self.project.real).as_posix() not in self.files for one in below)


async def import_project(scope: RunScope, base: Path) -> ProjectCopy | None:
    """Copy the project of `workspace.import` into the sandbox; return None if there is none.

    `base` is the folder of the configuration. The project is only read. Raises KodeError
    `ConfigInvalid`, `PathOutsideRoots`, `TooLarge`, `Storage`.
    """
    config, sandbox = scope.config.workspace, scope.sandbox
    if config.source is None:
        return None
    source = source_path(config.source, base)
    if not os.path.isdir(source):
        text = f"`workspace.import`: there is no folder {config.source!r}."
        raise KodeError("ConfigInvalid", text, details={"field": "workspace.import"})
    folder = sandbox.zone(WORKSPACE)
    if os.listdir(folder):
        raise KodeError(
            "ConfigInvalid",
            "There are files in the workspace of the sandbox already. Choose a new --sandbox.",
        )
    stop = threading.Event()
    try:
        copy = await asyncio.to_thread(
            copy_project,
            source,
            folder,
            sandbox.root / IMPORT_ARCHIVE,
            apart=sandbox.root,
            exclude=config.exclude,
            named=config.include,
            limits=CopyLimits(total_bytes=config.max_bytes),
            stopped=stop.is_set,
        )
        if config.git:
            await asyncio.to_thread(copy_history, source, folder, config.max_bytes, stop.is_set)
    finally:
        stop.set()
    scope.artifacts.add(
        IMPORT_ARCHIVE, kind="workspace", created_by="runtime", content_type="application/zip"
    )
    total = sum(file.size for file in copy.files.values())
    scope.log.event(
        "workspace.imported",
        f"{len(copy.files)} files copied, {len(copy.left_out)} left out",
        data={"files": len(copy.files), "bytes": total, "left_out": left_out_lines(copy.left_out)},
    )
    return copy


def left_out_lines(left_out: Sequence[LeftOut]) -> list[str]:
    """Return the lines of an event: which files were left out and why, at most fifty of them."""
    reported = [f"{quoted(one.path)}: {one.reason}" for one in left_out[:_MAX_SHOWN]]
    more = len(left_out) - len(reported)
    return [*reported, f"and {more} more"] if more else reported


def place_in(root: Root, parts: tuple[str, ...]) -> Location:
    """Return the place of a path that a walk found below a root, with no link on the way."""
    name = "/".join(parts) or "."
    return Location(root, root.path.joinpath(*parts), root.real.joinpath(*parts), parts, name)


def file_mode(place: Location, known: str = PLAIN) -> str:
    """Return a file's mode as Git writes it; `known` on Windows, which has no such modes."""
    if sys.platform == "win32":
        return known
    return EXECUTABLE if os.lstat(place.real).st_mode & stat.S_IXUSR else PLAIN


def copy_project(
    project: Path,
    folder: Path,
    archive: Path,
    *,
    apart: Path,
    exclude: Sequence[str] = (),
    named: Sequence[str] = (),
    limits: CopyLimits = CopyLimits(),
    stopped: Callable[[], bool] = lambda: False,
) -> ProjectCopy:
    """Copy a project into an empty folder, except the sandbox `apart`, which may lie in it.

    No link is followed. Git's own folder, ignored files, files with credentials and matches of
    `exclude` (patterns as in `.gitignore`) are left out; files `named` by their path below the
    project are copied even if they are ignored or hold credentials. Blocks; ends early once
    `stopped()` is true.

    Raises KodeError: `ConfigInvalid` and `PathOutsideRoots` for a name that cannot be copied,
    `TooLarge`, `Storage`, `Cancelled`.
    """
    source, target = make_roots([project])[0], make_roots([folder])[0]
    files: dict[str, CopiedFile] = {}
    left_out: list[LeftOut] = []
    total = 0
    wanted = {_named(source, path) for path in named}
    inner = source.parts_of(str(real_path(apart)))
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as kept:
            for parts in _files_to_copy(source, exclude, wanted, limits, stopped):
                if inner is not None and parts[: len(inner)] == inner:
                    continue
                try:
                    state = _read(source, parts, limits, named=parts in wanted)
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


def _files_to_copy(
    source: Root,
    exclude: Sequence[str],
    named: set[tuple[str, ...]],
    limits: CopyLimits,
    stopped: Callable[[], bool],
) -> Iterator[tuple[str, ...]]:
    """Yield the path parts of each file to copy, and of links, which are refused when read."""
    excluded = [compile_glob(pattern) for pattern in exclude]

    def matches(path: str) -> bool:
        return not any(excludes(path) for excludes in excluded)

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
    """Return the parts of a file's path. Raises KodeError `ConfigInvalid`, `PathOutsideRoots`."""
    place = locate(path, (source,), os.path.lexists)
    if is_refused(place.below) or not os.path.isfile(place.real):
        what = "belongs to Git" if is_refused(place.below) else "is no file of the project"
        raise KodeError("ConfigInvalid", f"{path!r} cannot be copied: it {what}.")
    return place.below


def _read(source: Root, parts: tuple[str, ...], limits: CopyLimits, *, named: bool) -> PatchedFile:
    """Return a file of the project. Raises KodeError for one that must not be copied."""
    path = "/".join(parts)
    place = place_in(source, parts)
    if not path.isprintable() or locate(path, (source,), os.path.lexists).below != parts:
        raise KodeError("Denied", "It is a link, or its name is none on every system.")
    if is_secret_path(parts) and not named:
        raise KodeError("Denied", "By its name it holds credentials.")
    data = read_regular(place, limits.file_bytes)
    what = None if named else find_in_data(data)
    if what is not None:
        raise KodeError("Denied", f"It holds {what}.")
    return PatchedFile(path, data, file_mode(place))


def _write(target: Root, parts: tuple[str, ...], state: PatchedFile) -> None:
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


def copy_history(
    project: Path, copy: Path, max_bytes: int, stopped: Callable[[], bool] = lambda: False
) -> None:
    """Copy the history of `project` into `copy`. Blocks; ends early once `stopped()` is true.

    Branches, tags, objects and the index are copied. Hooks, the configuration, the reflogs and the
    addresses of remotes are not: `git diff` and `git log` work, but nothing in the copy can contact
    a remote or name a program.

    Raises KodeError `ConfigInvalid` for a project that has none of its own, `TooLarge`, `Storage`,
    `Cancelled`.
    """
    source, target = project / ".git", copy / ".git"
    if not _has_whole_history(source):
        raise KodeError(
            "ConfigInvalid",
            "`workspace.git`: the project has no whole .git folder of its own (a work tree, a "
            "submodule and a clone that borrows objects have none). Clone it, or set it to false.",
            details={"field": "workspace.git"},
        )
    total = 0
    try:
        for path in _history(source):
            _check_stopped(stopped)
            total += path.stat().st_size
            if total > max_bytes:
                raise KodeError(
                    "TooLarge", f"The history of the project has more than {max_bytes:,} bytes."
                )
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        for name in _GIT_FOLDERS:
            (target / name).mkdir(exist_ok=True)
        (target / "config").write_text(_git_config(source), encoding="utf-8", newline="\n")
    except OSError as error:
        raise KodeError("Storage", f"The history cannot be copied: {error.strerror}.") from None


def _has_whole_history(folder: Path) -> bool:
    borrows = (folder / "objects" / "info" / "alternates").exists()
    return folder.is_dir() and not folder.is_symlink() and not borrows


def _history(folder: Path) -> Iterator[Path]:
    """Yield the regular files of the history, but no links."""
    candidates = [folder / name for name in _GIT_FILES]
    for name in _GIT_FOLDERS:
        for parent, folders, names in os.walk(folder / name):
            folders.sort()
            candidates += [Path(parent, one) for one in sorted(names)]
    for path in candidates:
        if os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode):
            yield path


def _git_config(folder: Path) -> str:
    """Return a configuration with the format of the objects, and nothing else."""
    theirs = (folder / "config").read_text("utf-8", "replace").lower().replace(" ", "")
    long = "objectformat=sha256" in theirs
    return _GIT_CONFIG.format(version=1 if long else 0) + (_SHA256 if long else "")
