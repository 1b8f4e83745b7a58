"""`propose_edit`: propose changes of one file, or a patch of several, to the user."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kode_sidecar.agent.tools.proposals import (
    Proposals,
    Proposed,
    apart,
    head,
    outcome,
    text_report,
)
from kode_sidecar.agent.tools.text_rewrites import (
    LineEdit,
    PatchChunks,
    QuotedEdits,
    Replacement,
    check_omission,
    check_size,
    refusal,
)
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.apply_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchError,
    parse_patch,
)
from kode_sidecar.core.text.unified_patch import is_unified, parse_unified
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.freshness import Freshness

_log = logging.getLogger(__name__)

# Wrong names that models use for the arguments of `propose_edit`.
PATH_NAMES = ("file_path", "filepath", "file", "filename", "target_file")
_EDITS_NAMES = ("edit", "replacements", "changes")
_OLD_NAMES = ("old_string", "oldText", "old_str", "old_text", "oldString", "search")
_NEW_NAMES = ("new_string", "newText", "new_str", "new_text", "newString", "replace")
PATCH_NAMES = ("patch", "input", "edits", "edit", "diff")
_BEGIN_PATCH = "*** Begin Patch"


class ProposeEditParams(Struct, forbid_unknown_fields=True):
    """Propose changes to one existing text file. The user decides about each hunk.

    Give `edits`: each replaces `old`, quoted exactly, by `new`. They are done in order, each on
    the result of the one before; if one does not fit, none is done. Or give `range`,
    `new_content` and `base_rev` to replace lines that you have read by their numbers. What you
    read afterwards shows your pending edits. A final newline of the file is kept. An empty file
    takes one edit with an empty `old`.
    """

    path: Annotated[str, Meta(description="File, relative to the open folder, e.g. src/app.py")]
    edits: (
        Annotated[list[Replacement], Meta(min_length=1, description="The replacements.")] | None
    ) = None
    base_rev: (
        Annotated[str, Meta(description="base_rev of your read_file; range needs it")] | None
    ) = None
    range: (
        Annotated[
            list[int],
            Meta(min_length=2, max_length=2, description="First and last line to replace, from 1"),
        ]
        | None
    ) = None
    new_content: (
        Annotated[str, Meta(description='Lines for range; "" is one empty line, null deletes')]
        | UnsetType
        | None
    ) = UNSET


@dataclass(frozen=True)
class EditCall:
    """A parsed call: edits of one file, or of several in a patch."""

    request: ProposeEditParams | tuple[FilePatch, ...]
    repairs: tuple[str, ...] = ()


def propose_edit_tool(proposals: Proposals, files: SessionFileView, shown: Freshness) -> Tool:
    """Make the tool of one session."""

    async def run(given: EditCall, call: ToolCall) -> ToolOutcome:
        if given.repairs:
            _log.info("arguments of propose_edit were mended: %s", "; ".join(given.repairs))
        request = given.request
        if not isinstance(request, ProposeEditParams):
            reports = await propose_patch(request, proposals, files, call)
            content = "\n\n".join(report for _, report in reports)
            return outcome([one for one, _ in reports], content, given.repairs)
        rewrite = _rewrite(request, shown)
        proposed = await proposals.propose(request.path, rewrite, call)
        tiers = rewrite.tiers if isinstance(rewrite, QuotedEdits) else ()
        size = len(proposed.after)
        report = await apart(size, lambda: text_report(proposed, rewrite.notes, tiers))
        return outcome([proposed], report, given.repairs)

    return Tool("propose_edit", ProposeEditParams, run, accept=_accept, kind="edit", card=_card)


def _card(given: EditCall) -> CallCard:
    request = given.request
    if not isinstance(request, ProposeEditParams):
        paths = list(dict.fromkeys(part.path for part in request))
        return CallCard(f"Edit {', '.join(paths)}", [CallPlace(path) for path in paths])
    lines = request.range or (None, None)
    return CallCard(f"Edit {request.path}", (CallPlace(request.path, lines[0], lines[1]),))


def _accept(arguments: Mapping[str, Any]) -> EditCall:
    patch = patch_in(arguments)
    if patch:
        return EditCall(patch, ("a patch was read as edits",))
    given, repairs = mended_edits(arguments)
    return EditCall(msgspec.convert(given, ProposeEditParams, strict=False), repairs)


def _rewrite(params: ProposeEditParams, shown: Freshness) -> QuotedEdits | LineEdit:
    """Return the rewrite of a call. Raises KodeError `InvalidArguments`."""
    base_rev = params.base_rev or ""
    if params.range is None:
        if not params.edits or params.new_content is not UNSET:
            raise _mixed("Give `edits`, or else `range`, `new_content` and `base_rev`.")
        return QuotedEdits(params.path, params.edits, base_rev, shown)
    if params.edits:
        raise _mixed("Give `edits` or `range`, not both.")
    if params.new_content is UNSET or not base_rev:
        raise _mixed("With `range`, give `new_content` and the `base_rev` of your read_file.")
    first, last = params.range
    return LineEdit(params.path, (first, last), params.new_content, base_rev, shown)


def _mixed(message: str) -> KodeError:
    return KodeError("InvalidArguments", message)


def patch_in(arguments: Mapping[str, Any]) -> tuple[FilePatch, ...]:
    """Return the files of a patch; none if the arguments are no patch.

    Raises msgspec.ValidationError.
    """
    given = (arguments.get(name) for name in PATCH_NAMES)
    texts = [text for text in given if isinstance(text, str)]
    patch = next((text for text in texts if _BEGIN_PATCH in text), None)
    unified = next((text for text in texts if is_unified(text)), None) if patch is None else None
    try:
        if patch is not None:
            return parse_patch(patch)
        return parse_unified(unified) if unified is not None else ()
    except PatchError as error:
        raise msgspec.ValidationError(f"the patch cannot be read. {error}") from None


def mended_edits(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments under their right names, and a list of the repairs."""
    given = dict(arguments)
    repairs = rename(given, {"path": PATH_NAMES, "edits": _EDITS_NAMES})
    if "edits" not in given and not {*_OLD_NAMES, "old"}.isdisjoint(given):
        names = (*_OLD_NAMES, *_NEW_NAMES, "old", "new", "replace_all", "replaceAll", "near_line")
        given["edits"] = [{name: given.pop(name) for name in names if name in given}]
        repairs.append("one edit beside `path` was read as a list of one in `edits`")
    edits: object = given.get("edits")
    if isinstance(edits, str):
        edits = _parsed(edits)
        repairs.append("`edits` was text that holds JSON, and was read as a list")
    if isinstance(edits, dict):
        edits = [cast(object, edits)]
        repairs.append("`edits` was one edit, and was read as a list of one")
    if isinstance(edits, list):
        edits = [_renamed(edit, repairs) for edit in cast(list[object], edits)]
    if edits is not None:
        given["edits"] = edits
    return given, tuple(repairs)


def rename(given: dict[str, Any], names: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Rename values in place to their right names, where those are free; return the renamings."""
    repairs: list[str] = []
    for right, others in names.items():
        other = next((name for name in others if name in given), None)
        if right not in given and other is not None:
            given[right] = given.pop(other)
            repairs.append(f"`{other}` was read as `{right}`")
    return repairs


def _renamed(edit: object, repairs: list[str]) -> object:
    if not isinstance(edit, dict):
        return edit
    given = dict(cast(dict[str, Any], edit))
    names = {"old": _OLD_NAMES, "new": _NEW_NAMES, "replace_all": ("replaceAll",)}
    repairs += (repair for repair in rename(given, names) if repair not in repairs)
    return given


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def propose_patch(
    patch: Sequence[FilePatch], proposals: Proposals, files: SessionFileView, call: ToolCall
) -> list[tuple[Proposed, str]]:
    """Propose all files of a patch; return each proposal with the report for the model.

    All files are tried first: the whole patch fits, or nothing is proposed. Raises KodeError; its
    message names files proposed already, if the user or another edit intervened.
    """
    for file in patch:
        _try(file, files)
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


def _try(file: FilePatch, files: SessionFileView) -> None:
    """Raise the KodeError that proposing a file would raise."""
    match file:
        case FileAdd(path, text):
            check_omission(text, "", f"{path}: ")
            check_size(text, path)
            _check_free(path, files)
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


async def _propose(
    file: FilePatch, proposals: Proposals, call: ToolCall, done: list[tuple[Proposed, str]]
) -> None:
    """Propose one file of a patch; for a moved file, the changes before the move."""
    match file:
        case FileAdd():
            proposed = await proposals.propose_create(file.path, file.text, call)
        case FileDelete():
            proposed = await proposals.propose_delete(file.path, call)
        case FileUpdate():
            if file.chunks:
                rewrite = PatchChunks(file.path, file.chunks)
                changed = await proposals.propose(file.path, rewrite, call)
                told = partial(text_report, changed, rewrite.notes, rewrite.tiers)
                done.append((changed, await apart(len(changed.after), told)))
            if file.move_to is None:
                return
            proposed = await proposals.propose_move(file.path, file.move_to, call)
    done.append((proposed, f"{proposed.message}\n{head(proposed)}"))
