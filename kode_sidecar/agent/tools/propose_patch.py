"""Patches that a model sends in place of edits: read, tried on the files, and proposed."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kode_sidecar.agent.tools.proposals import Proposals, Proposed, apart, head, text_report
from kode_sidecar.agent.tools.text_rewrites import (
    PatchChunks,
    WholeText,
    check_omission,
    check_size,
    refusal,
)
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.text.apply_patch import begins_at, parse_patch
from kode_sidecar.core.text.file_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchError,
    PatchReadings,
)
from kode_sidecar.core.text.unified_patch import unified_begins_at, unified_readings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView

PATCH_NAMES = ("patch", "input", "edits", "edit", "diff")


def patch_in(arguments: Mapping[str, Any]) -> PatchReadings | None:
    """Return what a patch in the arguments can mean; None if they are no patch.

    Raises msgspec.ValidationError.
    """
    for name in PATCH_NAMES:
        text = arguments.get(name)
        if isinstance(text, str):
            try:
                readings = _readings(text)
            except PatchError as error:
                raise msgspec.ValidationError(f"the patch cannot be read. {error}") from None
            if readings is not None:
                return readings
    return None


def _readings(text: str) -> PatchReadings | None:
    """Return the readings of a patch in the grammar that begins first: the other one is its text.

    Raises PatchError.
    """
    begin, unified = begins_at(text), unified_begins_at(text)
    if begin is not None and (unified is None or begin < unified):
        return PatchReadings((parse_patch(text),))
    return unified_readings(text) if unified is not None else None


def chosen_reading(readings: PatchReadings, files: SessionFileView) -> tuple[FilePatch, ...]:
    """Return the reading of a patch that fits the files, as a whole.

    Raises the KodeError of the likeliest one if none does, and `ToolFailed` if several do.
    """
    likeliest, *others = readings.readings
    errors: list[KodeError] = []
    fitting: list[tuple[FilePatch, ...]] = []
    for reading in (likeliest, *others):
        try:
            for file in reading:
                _try(file, files, needs_folder=bool(others))
        except KodeError as error:
            errors.append(error)
        else:
            fitting.append(reading)
            if readings.sure:
                break
    if not fitting:
        raise errors[0]
    if len(fitting) > 1:
        named = "; or ".join(", ".join(file.path for file in one) for one in fitting)
        raise refusal(
            "ambiguous",
            f"The patch can be read in two ways that both fit, as one of: {named}. Write its "
            "names with `a/` and `b/` in a line `diff --git`, or use one call for each file.",
        )
    return fitting[0]


async def propose_patch(
    patch: Sequence[FilePatch], proposals: Proposals, call: ToolCall
) -> list[tuple[Proposed, str]]:
    """Propose all files of a patch; return each proposal with the report for the model.

    `chosen_reading` has tried all of them: the whole patch fits, or nothing is proposed. Raises
    KodeError; its message names files proposed already, if the user or another edit intervened.
    """
    done: list[tuple[Proposed, str]] = []
    for file in patch:
        try:
            await _propose(file, proposals, call, done)
        except KodeError as error:
            if done:
                paths = ", ".join(proposed.path for proposed, _ in done)
                error.message += f" Already proposed: {paths}."
            raise
    return done


def _try(file: FilePatch, files: SessionFileView, *, needs_folder: bool) -> None:
    """Raise the KodeError that proposing a file would raise.

    `needs_folder`: the first folder of a new file must be there, as the name is uncertain.
    """
    match file:
        case FileAdd(path, text, replaces=True):
            document = files.document(path, purpose="edit")
            WholeText(path, text)(document, files.view(document).text_lf)
        case FileAdd(path, text):
            check_omission(text, "", f"{path}: ")
            check_size(text, path)
            _check_free(path, files)
            if needs_folder and "/" in path:
                _check_folder(path.partition("/")[0], files)
        case FileDelete(path):
            files.document(path, purpose="edit")
        case FileUpdate(path, chunks, move_to):
            if move_to:
                _check_free(move_to, files)
            document = files.document(path, purpose="edit")
            if chunks:
                PatchChunks(path, chunks)(document, files.view(document).text_lf)


def _check_free(path: str, files: SessionFileView) -> None:
    """Raise KodeError if there is a file at the path."""
    try:
        files.document(path, purpose="edit")
    except KodeError as error:
        if error.code != "NotFound":
            raise
    else:
        raise refusal("exists", f"{path} exists already; update it, or choose another path.")


def _check_folder(path: str, files: SessionFileView) -> None:
    """Raise KodeError `NotFound` if there is nothing at the path."""
    try:
        files.document(path, purpose="read")
    except KodeError as error:
        if error.code == "NotFound":
            raise


async def _propose(
    file: FilePatch, proposals: Proposals, call: ToolCall, done: list[tuple[Proposed, str]]
) -> None:
    """Propose one file of a patch; for a moved file, the changes before the move."""
    match file:
        case FileAdd(replaces=True):
            changed = await proposals.propose(file.path, WholeText(file.path, file.text), call)
            done.append((changed, await apart(len(changed.after), partial(text_report, changed))))
            return
        case FileAdd():
            proposed = await proposals.propose_create(file.path, file.text, call)
        case FileDelete():
            proposed = await proposals.propose_delete(file.path, call)
        case FileUpdate():
            if file.chunks:
                rewrite = PatchChunks(file.path, file.chunks)
                changed = await proposals.propose(file.path, rewrite, call)
                reported = partial(text_report, changed, rewrite.notes, rewrite.tiers)
                done.append((changed, await apart(len(changed.after), reported)))
            if file.move_to is None:
                return
            proposed = await proposals.propose_move(file.path, file.move_to, call)
    done.append((proposed, f"{proposed.message}\n{head(proposed)}"))
