"""The project a run works on: copied into the sandbox, its changes given back as a patch (B4)."""

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.errors import KodeError
from kode_sidecar.headless_run.contracts import RunScope
from kode_sidecar.headless_run.sandbox import (
    ARCHIVE,
    DELIVERABLES,
    WORKSPACE,
    source_path,
    write_file,
)
from kode_sidecar.text.git_patch import quoted
from kode_sidecar.tools.applied_edits import AppliedEdits
from kode_sidecar.workspace.project_changes import ProjectChanges, project_changes
from kode_sidecar.workspace.project_copy import (
    CopyLimits,
    CopyWishes,
    LeftOut,
    ProjectCopy,
    copy_project,
)

CHANGES_PATCH = f"{DELIVERABLES}/changes.patch"
IMPORT_ARCHIVE = f"{ARCHIVE}/workspace-import.zip"
_MAX_TOLD = 50


async def import_project(scope: RunScope, base: Path) -> ProjectCopy | None:
    """Copy the project of `workspace.import` into the sandbox; None where there is none.

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
            wishes=CopyWishes(exclude=config.exclude, named=config.include),
            limits=CopyLimits(total_bytes=config.max_bytes),
            stopped=stop.is_set,
        )
    finally:
        stop.set()
    scope.artifacts.add(
        IMPORT_ARCHIVE, kind="workspace", created_by="runtime", content_type="application/zip"
    )
    total = sum(file.size for file in copy.files.values())
    scope.log.event(
        "workspace.imported",
        f"{len(copy.files)} files copied, {len(copy.left_out)} left out",
        data={"files": len(copy.files), "bytes": total, "left_out": _told(copy.left_out)},
    )
    return copy


async def deliver_changes(scope: RunScope, copy: ProjectCopy, edits: AppliedEdits) -> None:
    """Write `deliverables/changes.patch`, for `git apply` on the project; none without changes.

    Raises KodeError `Storage`.
    """
    place = scope.sandbox.locate(CHANGES_PATCH, "write")
    stop = threading.Event()
    try:
        changes = await asyncio.to_thread(
            project_changes, copy, edits.origins, edits.touched, stop.is_set
        )
    finally:
        stop.set()
    if changes.patch:
        write_file(place, changes.patch)
        scope.artifacts.add(
            CHANGES_PATCH, kind="deliverable", created_by="runtime", content_type="text/x-diff"
        )
    else:
        with suppress(FileNotFoundError):  # a program may have written one; it would be a lie
            place.real.unlink()
    scope.log.event("workspace.changed", _summary(changes), data=_data(changes))


def _summary(changes: ProjectChanges) -> str:
    if not changes.files:
        return "The project is unchanged."
    count = f"{len(changes.files)} file{'' if len(changes.files) == 1 else 's'}"
    return f"{count} changed; {CHANGES_PATCH} has the patch"


def _data(changes: ProjectChanges) -> dict[str, Any]:
    return {
        "files": [msgspec.to_builtins(one) for one in changes.files[:_MAX_TOLD]],
        "count": len(changes.files),
        "left_out": _told(changes.left_out),
    }


def _told(left_out: Sequence[LeftOut]) -> list[str]:
    told = [f"{quoted(one.path)}: {one.reason}" for one in left_out[:_MAX_TOLD]]
    more = len(left_out) - len(told)
    return [*told, f"and {more} more"] if more else told
