"""`propose_edit`: propose changes of one file, or a patch of several, to the user."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kode_sidecar.agent.tools.proposals import (
    Proposals,
    apart,
    outcome,
    text_report,
)
from kode_sidecar.agent.tools.propose_patch import chosen_reading, patch_in, propose_patch
from kode_sidecar.agent.tools.text_rewrites import (
    LineEdit,
    QuotedEdits,
    Replacement,
)
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.file_patch import PatchReadings
from kode_sidecar.core.text.tool_arguments import fitted
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.freshness import Freshness

_log = logging.getLogger(__name__)

MAX_EDITS, MAX_CHARS = 1_000, 2_000_000
"""What one call may hold."""


class ProposeEditParams(Struct, forbid_unknown_fields=True):
    """Propose changes to one existing text file.

    Give `edits`, which are done in order, each on the result of the one before; if one does not
    fit, none is done. An empty file takes one with an empty `old`. Or give `range`, `new_content`
    and `base_rev` to replace lines by their numbers. A final newline of the file stays.
    """

    path: str
    edits: (
        Annotated[
            list[Replacement],
            Meta(min_length=1),
        ]
        | None
    ) = None
    base_rev: Annotated[str, Meta(description="From read_file; for range")] | None = None
    range: (
        Annotated[
            list[int],
            Meta(min_length=2, max_length=2, description="First and last line, from 1"),
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
    """A parsed call: edits of one file, or a patch of several."""

    request: ProposeEditParams | PatchReadings
    repairs: tuple[str, ...] = ()


def propose_edit_tool(proposals: Proposals, files: SessionFileView, shown: Freshness) -> Tool:
    """Make the tool of one session."""

    async def run(given: EditCall, call: ToolCall) -> ToolOutcome:
        if given.repairs:
            _log.info("arguments of propose_edit were fixed: %s", "; ".join(given.repairs))
        request = given.request
        if not isinstance(request, ProposeEditParams):
            patch = chosen_reading(request, files)
            reports = await propose_patch(patch, proposals, call)
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
        paths = list(dict.fromkeys(part.path for part in request.readings[0]))
        return CallCard(f"Edit {', '.join(paths)}", [CallPlace(path) for path in paths])
    lines = request.range or (None, None)
    return CallCard(f"Edit {request.path}", (CallPlace(request.path, lines[0], lines[1]),))


def _accept(arguments: Mapping[str, Any]) -> EditCall:
    _check_amount(arguments)
    patch = patch_in(arguments)
    if patch is not None:
        return EditCall(patch, ("a patch was read as edits",))
    given, repairs = fixed_edits(arguments)
    return EditCall(msgspec.convert(given, ProposeEditParams, strict=False), repairs)


def _check_amount(arguments: Mapping[str, Any]) -> None:
    """Raise msgspec.ValidationError for more than one call may do, before anything is parsed."""
    chars = edits = 0
    waiting: list[object] = [arguments]
    while waiting and chars <= MAX_CHARS:
        one = waiting.pop()
        if isinstance(one, str):
            chars += len(one)
        elif isinstance(one, list):
            items = cast(list[object], one)
            edits = max(edits, len(items))
            waiting += items[:MAX_EDITS]
        elif isinstance(one, Mapping):
            waiting += cast(Mapping[str, object], one).values()
    if chars > MAX_CHARS or edits > MAX_EDITS:
        raise msgspec.ValidationError(
            f"one call takes at most {MAX_EDITS:,} edits and {MAX_CHARS:,} characters. "
            "Split it into several calls, or use propose_file with the action overwrite"
        )


def _rewrite(params: ProposeEditParams, shown: Freshness) -> QuotedEdits | LineEdit:
    """Return the rewrite of a call. Raises KodeError `InvalidArguments`."""
    base_rev = params.base_rev or ""
    if params.range is None:
        if not params.edits or params.new_content is not UNSET:
            raise _mixed("Give `edits`, or else `range`, `new_content` and `base_rev`.")
        return QuotedEdits(params.path, params.edits, base_rev, shown)
    if params.edits:
        raise _mixed("Give `edits` or `range`, not both.")
    if params.new_content is UNSET:
        raise _mixed("With `range`, give `new_content` and the `base_rev` of your read_file.")
    first, last = params.range
    return LineEdit(params.path, (first, last), params.new_content, base_rev, shown)


def _mixed(message: str) -> KodeError:
    return KodeError("InvalidArguments", message)


def fixed_edits(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments under their right names, and a list of the repairs."""
    one, _ = fitted(arguments, Replacement)
    given, reported = fitted(arguments, ProposeEditParams)
    repairs = list(reported)
    if "edits" not in given and "old" in one:
        # Its names are corrected with those of the edits in a list.
        renamed = {name for name in arguments if f"`{name}` was read as" in " ".join(repairs)}
        rest = {k: v for k, v in arguments.items() if k not in given and k not in renamed}
        given["edits"] = [rest]
        repairs = [one for one in repairs if " was read as " in one]
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


def _renamed(edit: object, repairs: list[str]) -> object:
    if not isinstance(edit, dict):
        return edit
    given, reported = fitted(cast(dict[str, Any], edit), Replacement)
    repairs += (repair for repair in reported if repair not in repairs)
    return given


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
