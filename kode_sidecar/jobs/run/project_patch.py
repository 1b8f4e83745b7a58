"""Delivers the changes to a copied project as a patch for `git apply` (B4)."""

import asyncio
import hashlib
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from kode_sidecar.core.text.git_patch import PatchedFile, file_patch
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.sensitive import is_refused, why_sensitive
from kode_sidecar.jobs.run.contracts import RunScope
from kode_sidecar.jobs.run.governed_proposals import WrittenFiles
from kode_sidecar.jobs.run.project_copy import (
    LeftOut,
    ProjectCopy,
    file_mode,
    left_out_lines,
    place_in,
)
from kode_sidecar.jobs.run.sandbox import DELIVERABLES, write_file

CHANGES_PATCH = f"{DELIVERABLES}/changes.patch"
_MAX_SHOWN = 50
_MAX_NAMED = 5

ChangeKind = Literal["changed", "created", "deleted", "moved"]


@dataclass(frozen=True)
class ChangedPath:
    """A file of a patch; `origin` is where a moved file was.

    `sensitive` says why the file can run code by itself, if a command and no tool wrote it.
    """

    path: str
    kind: ChangeKind
    origin: str = ""
    sensitive: str = ""


@dataclass(frozen=True)
class ProjectChanges:
    """A patch, empty if nothing changed; `left_out` are changed files that it cannot hold."""

    patch: bytes
    files: tuple[ChangedPath, ...]
    left_out: tuple[LeftOut, ...]


async def deliver_changes(scope: RunScope, copy: ProjectCopy, written: WrittenFiles) -> None:
    """Write `deliverables/changes.patch`, for `git apply` on the project; none without changes.

    Raises KodeError `Storage`.
    """
    place = scope.sandbox.locate(CHANGES_PATCH, "write")
    stop = threading.Event()
    try:
        changes = await asyncio.to_thread(
            project_changes, copy, written.origins, written.touched, stop.is_set
        )
    finally:
        stop.set()
    if changes.patch:
        write_file(place, changes.patch)
        scope.artifacts.add(
            CHANGES_PATCH, kind="deliverable", created_by="runtime", content_type="text/x-diff"
        )
    else:
        with suppress(FileNotFoundError):  # a program may have written a false one
            place.real.unlink()
    scope.log.event(
        "workspace.changed",
        change_summary(changes),
        severity="warning" if any(one.sensitive for one in changes.files) else "info",
        data=_data(changes),
    )


def change_summary(changes: ProjectChanges) -> str:
    """Return the summary of a patch; it warns of files written by commands that can run code."""
    if not changes.files:
        return "The project is unchanged."
    count = f"{len(changes.files)} file{'' if len(changes.files) == 1 else 's'}"
    reported = f"{count} changed; {CHANGES_PATCH} has the patch"
    unasked = [one.path for one in changes.files if one.sensitive]
    if not unasked:
        return reported
    more = f" and {len(unasked) - _MAX_NAMED} more" if len(unasked) > _MAX_NAMED else ""
    named = ", ".join(unasked[:_MAX_NAMED])
    return (
        f"{reported}. LOOK BEFORE YOU APPLY IT: a command wrote {named}{more}, which can run code"
    )


def _data(changes: ProjectChanges) -> dict[str, Any]:
    return {
        "files": [msgspec.to_builtins(one) for one in changes.files[:_MAX_SHOWN]],
        "count": len(changes.files),
        "left_out": left_out_lines(changes.left_out),
    }


def project_changes(
    copy: ProjectCopy,
    origins: Mapping[Path, Path],
    touched: Iterable[Path],
    stopped: Callable[[], bool] = lambda: False,
) -> ProjectChanges:
    """Return the patch that turns the project, as it was copied, into the copy as it is now.

    It holds a new ignored file only if `touched`. `origins` maps the new path of a moved file to
    its old one. Blocks; ends early once `stopped()` is true. Raises KodeError `Storage`.
    """
    by_tools = {parts for path in touched if (parts := _below(copy, path))}
    now, left_out = _now(copy, by_tools, stopped)
    moved = _moved(copy, origins, now)
    odd = {one.path for one in left_out}
    patches: list[bytes] = []
    reported: list[ChangedPath] = []
    try:
        with zipfile.ZipFile(copy.archive) as archive:
            for path in sorted((now.keys() | copy.files.keys()) - odd - set(moved.values())):
                old, new = _old(copy, archive, moved.get(path, path)), now.get(path)
                patch = file_patch(old, new)
                if patch:
                    patches.append(patch)
                    reported.append(_changed_path(old, new, by_tools))
    except (OSError, zipfile.BadZipFile):
        raise _tampered(copy, "the files") from None
    return ProjectChanges(b"".join(patches), tuple(reported), tuple(left_out))


def _now(
    copy: ProjectCopy, touched: Collection[tuple[str, ...]], stopped: Callable[[], bool]
) -> tuple[dict[str, PatchedFile], list[LeftOut]]:
    """Return the files of the copy as they are now, and those that no patch can hold."""
    listing = list_tree(place_in(copy.folder, ()), lambda _path: True, sys.maxsize, stopped)
    wanted = {file.parts for file in listing.files}
    wanted |= {tuple(path.split("/")) for path in copy.files}
    wanted |= set(touched)
    left_out = [LeftOut(".", f"The list of files was cut {listing.cut}.")] if listing.cut else []
    now: dict[str, PatchedFile] = {}
    for parts in sorted(wanted):
        path, place = "/".join(parts), place_in(copy.folder, parts)
        if _is_gone(place.real):
            continue
        try:
            if not path.isprintable():
                raise KodeError("Denied", "Its name is none on every system.")
            if _is_refused_by_git(parts):  # one such name makes Git refuse the whole patch
                raise KodeError("Denied", "Git takes no file of that name.")
            copy.check_free(place)
            data = read_regular(place)
        except KodeError as error:
            left_out.append(LeftOut(path, error.message))
            continue
        known = copy.files.get(path)
        now[path] = PatchedFile(path, data, file_mode(place, *([known.mode] if known else [])))
    return now, left_out


def _is_refused_by_git(parts: Sequence[str]) -> bool:
    short = any(part.casefold().rstrip(". ") == "git~1" for part in parts)
    return is_refused(parts) or short


def _is_gone(path: Path) -> bool:
    """Return whether nothing is there, or only a folder: the files in it are listed themselves."""
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path))


def _below(copy: ProjectCopy, path: Path) -> tuple[str, ...]:
    inside = path.is_relative_to(copy.folder.real)
    return path.relative_to(copy.folder.real).parts if inside else ()


def _moved(
    copy: ProjectCopy, origins: Mapping[Path, Path], now: Mapping[str, PatchedFile]
) -> dict[str, str]:
    """Return the old path of each moved file by its new path, if the old path is free now."""
    moved: dict[str, str] = {}
    for place, origin in origins.items():
        new, old = ("/".join(_below(copy, path)) for path in (place, origin))
        if new in now and new not in copy.files and old in copy.files and old not in now:
            moved[new] = old
    return moved


def _old(copy: ProjectCopy, archive: zipfile.ZipFile, path: str) -> PatchedFile | None:
    """Return a file as it was copied, if it was. Raises KodeError `Storage`."""
    file = copy.files.get(path)
    if file is None:
        return None
    try:
        data = archive.read(path)
    except KeyError:
        raise _tampered(copy, path) from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise _tampered(copy, path)
    return PatchedFile(path, data, file.mode)


def _tampered(copy: ProjectCopy, what: str) -> KodeError:
    return KodeError(
        "Storage", f"{copy.archive.name} does not hold {what} any more as they were copied."
    )


def _changed_path(
    old: PatchedFile | None, new: PatchedFile | None, by_tools: Collection[tuple[str, ...]]
) -> ChangedPath:
    if new is None:
        return ChangedPath(old.path if old else "", "deleted")
    parts = tuple(new.path.split("/"))
    why = "" if parts in by_tools else why_sensitive(parts) or ""
    if old is None:
        return ChangedPath(new.path, "created", sensitive=why)
    if old.path != new.path:
        return ChangedPath(new.path, "moved", old.path, why)
    return ChangedPath(new.path, "changed", sensitive=why)
