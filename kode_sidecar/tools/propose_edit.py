"""`propose_edit`: changes of one file, proposed to the user, never written."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.text.apply_patch import FilePatch
from kode_sidecar.tools.contracts import FileProposals, ShownLines
from kode_sidecar.tools.edit_arguments import mended_edits, patch_in
from kode_sidecar.tools.patch_proposals import propose_patch
from kode_sidecar.tools.proposal_outcome import outcome, text_report
from kode_sidecar.tools.text_rewrites import LineEdit, QuotedEdits
from kode_sidecar.workspace.contracts import SessionFiles

_log = logging.getLogger(__name__)


class Replacement(Struct, forbid_unknown_fields=True):
    """One replacement."""

    old: Annotated[
        str,
        Meta(
            description="Text to replace, exactly as in the file, without line numbers. It must "
            "occur once: quote enough lines around the place."
        ),
    ]
    new: Annotated[str, Meta(description="The text to put there; empty deletes.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence of old.")] = False
    near_line: (
        Annotated[int, Meta(ge=1, description="A line of the occurrence meant, if old has several")]
        | None
    ) = None


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
    """A call as it was understood: edits of one file, or of several in a patch."""

    request: ProposeEditParams | tuple[FilePatch, ...]
    repairs: tuple[str, ...] = ()


def propose_edit_tool(proposals: FileProposals, files: SessionFiles, shown: ShownLines) -> Tool:
    """The tool, for one session."""

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
        report = text_report(proposed, rewrite.notes, tiers)
        return outcome([proposed], report, given.repairs)

    return Tool("propose_edit", ProposeEditParams, run, accept=_accept)


def _accept(arguments: Mapping[str, Any]) -> EditCall:
    patch = patch_in(arguments)
    if patch:
        return EditCall(patch, ("a patch was read as edits",))
    given, repairs = mended_edits(arguments)
    return EditCall(msgspec.convert(given, ProposeEditParams, strict=False), repairs)


def _rewrite(params: ProposeEditParams, shown: ShownLines) -> QuotedEdits | LineEdit:
    """Raises KodeError `InvalidArguments`."""
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
