"""What became of a copied project, as a patch that `git apply` accepts on the project."""

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kode_sidecar.errors import KodeError
from kode_sidecar.text.git_patch import FileState, file_patch
from kode_sidecar.workspace.disk import read_regular
from kode_sidecar.workspace.listing import list_tree
from kode_sidecar.workspace.project_copy import LeftOut, ProjectCopy, file_mode, place_in

ChangeKind = Literal["changed", "created", "deleted", "moved"]


@dataclass(frozen=True)
class ChangedPath:
    """A file that a patch is about. `origin` is where a moved one was."""

    path: str
    kind: ChangeKind
    origin: str = ""


@dataclass(frozen=True)
class ProjectChanges:
    """`patch` is empty where nothing changed; `left_out` are changes that it does not tell."""

    patch: bytes
    files: tuple[ChangedPath, ...]
    left_out: tuple[LeftOut, ...]


def project_changes(
    copy: ProjectCopy,
    origins: Mapping[Path, Path],
    touched: Iterable[Path],
    stopped: Callable[[], bool] = lambda: False,
) -> ProjectChanges:
    """The patch that turns the project, as it was copied, into the copy as it is now.

    A new file that ignore rules name is in it only if `touched`. `origins` leads from where a moved
    file is to where it was. Blocking; it ends early when `stopped()`. Raises KodeError `Storage`.
    """
    now, left_out = _now(copy, touched, stopped)
    moved = _moved(copy, origins, now)
    odd = {one.path for one in left_out}
    patches: list[bytes] = []
    told: list[ChangedPath] = []
    try:
        with zipfile.ZipFile(copy.archive) as archive:
            for path in sorted((now.keys() | copy.files.keys()) - odd - set(moved.values())):
                old, new = _old(copy, archive, moved.get(path, path)), now.get(path)
                patch = file_patch(old, new)
                if patch:
                    patches.append(patch)
                    told.append(_told(old, new))
    except (OSError, zipfile.BadZipFile):
        raise _tampered(copy, "the files") from None
    return ProjectChanges(b"".join(patches), tuple(told), tuple(left_out))


def _now(
    copy: ProjectCopy, touched: Iterable[Path], stopped: Callable[[], bool]
) -> tuple[dict[str, FileState], list[LeftOut]]:
    """The files of the copy as they are, and those whose state no patch can tell."""
    listing = list_tree(place_in(copy.folder, ()), lambda _path: True, sys.maxsize, stopped)
    wanted = {file.parts for file in listing.files}
    wanted |= {tuple(path.split("/")) for path in copy.files}
    wanted |= {parts for path in touched if (parts := _below(copy, path))}
    left_out = [LeftOut(".", f"The list of files was cut {listing.cut}.")] if listing.cut else []
    now: dict[str, FileState] = {}
    for parts in sorted(wanted):
        path, place = "/".join(parts), place_in(copy.folder, parts)
        if _is_gone(place.real):
            continue
        try:
            if not path.isprintable():
                raise KodeError("Denied", "Its name is none on every system.")
            copy.check_free(place)
            data = read_regular(place)
        except KodeError as error:
            left_out.append(LeftOut(path, error.message))
            continue
        known = copy.files.get(path)
        now[path] = FileState(path, data, file_mode(place, *([known.mode] if known else [])))
    return now, left_out


def _is_gone(path: Path) -> bool:
    """Nothing is there, or a folder, whose files speak for themselves."""
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path))


def _below(copy: ProjectCopy, path: Path) -> tuple[str, ...]:
    inside = path.is_relative_to(copy.folder.real)
    return path.relative_to(copy.folder.real).parts if inside else ()


def _moved(
    copy: ProjectCopy, origins: Mapping[Path, Path], now: Mapping[str, FileState]
) -> dict[str, str]:
    """New paths by the old ones they came from, where these are free now."""
    moved: dict[str, str] = {}
    for place, origin in origins.items():
        new, old = ("/".join(_below(copy, path)) for path in (place, origin))
        if new in now and new not in copy.files and old in copy.files and old not in now:
            moved[new] = old
    return moved


def _old(copy: ProjectCopy, archive: zipfile.ZipFile, path: str) -> FileState | None:
    """Raises KodeError `Storage`."""
    file = copy.files.get(path)
    if file is None:
        return None
    try:
        data = archive.read(path)
    except KeyError:
        raise _tampered(copy, path) from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise _tampered(copy, path)
    return FileState(path, data, file.mode)


def _tampered(copy: ProjectCopy, what: str) -> KodeError:
    return KodeError(
        "Storage", f"{copy.archive.name} does not hold {what} any more as they were copied."
    )


def _told(old: FileState | None, new: FileState | None) -> ChangedPath:
    if new is None:
        return ChangedPath(old.path if old else "", "deleted")
    if old is None:
        return ChangedPath(new.path, "created")
    if old.path != new.path:
        return ChangedPath(new.path, "moved", old.path)
    return ChangedPath(new.path, "changed")
