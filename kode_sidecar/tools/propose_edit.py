"""`propose_edit`: exact replacements in one file, proposed to the user, never written."""

from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.domain.edit_match import MatchError, locate, replace_spans
from kode_sidecar.domain.line_diff import split_lines, unified_diff
from kode_sidecar.domain.text_edit import to_lf
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.tools.contracts import Proposals, Proposed
from kode_sidecar.workspace.disk import MAX_FILE_BYTES
from kode_sidecar.workspace.document import Document, text_rev
from kode_sidecar.workspace.shown_text import strip_line_numbers, without_controls


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


class ProposeEditParams(Struct, forbid_unknown_fields=True):
    """Propose changes to one existing text file. The user decides about each hunk.

    Each edit replaces `old`, quoted exactly, by `new`. Edits are done in order, each on the
    result of the one before; if one of them does not fit, none is done. What you read afterwards
    shows your pending edits. A final newline of the file is kept. An empty file takes one edit
    with an empty `old`.
    """

    path: Annotated[str, Meta(description="File, relative to the open folder, e.g. src/app.py")]
    edits: Annotated[list[Replacement], Meta(min_length=1, description="The replacements.")]
    base_rev: (
        Annotated[str, Meta(description="base_rev of your read_file, to notice later changes.")]
        | None
    ) = None


def propose_edit_tool(proposals: Proposals) -> Tool:
    """The tool, for one session."""

    async def run(params: ProposeEditParams, call: ToolCall) -> ToolOutcome:
        stale = False

        def rewrite(document: Document, text: str) -> str:
            nonlocal stale
            stale = bool(params.base_rev) and not text_rev(text).startswith(params.base_rev or "")
            return _rewrite(params, document, text)

        proposed = await proposals.propose(params.path, rewrite, call)
        return _outcome(proposed, stale)

    return Tool("propose_edit", ProposeEditParams, run)


def _rewrite(params: ProposeEditParams, document: Document, text: str) -> str:
    """All edits done on `text`. Raises KodeError."""
    if "\r" in document.text.replace("\r\n", ""):
        raise KodeError(
            "NotEditable",
            f"{params.path} holds lone carriage returns, which editors count as lines in "
            "different ways. Ask the user to convert its line ends first.",
        )
    result = text
    for number, edit in enumerate(params.edits, 1):
        _check_encodable(edit.new, document, params.path)
        old, new = to_lf(edit.old), to_lf(edit.new)
        found = locate(result, old, new, replace_all=edit.replace_all)
        if isinstance(found, MatchError):
            raise _no_match(found, number, len(params.edits), result, old)
        result = replace_spans(result, found.spans, new)
    if text.endswith("\n") and result and not result.endswith("\n"):
        result += "\n"
    if len(result) > MAX_FILE_BYTES:
        raise KodeError("TooLarge", f"{params.path} would grow beyond {MAX_FILE_BYTES:,} bytes.")
    if result == text:
        raise KodeError("ToolFailed", "The edits cancel each other out: nothing would change.")
    return result


def _check_encodable(new: str, document: Document, path: str) -> None:
    try:
        new.encode(document.encoding)
    except UnicodeEncodeError as error:
        char = new[error.start]
        raise KodeError(
            "Unencodable",
            f"{path} is saved as {document.encoding}, which has no U+{ord(char):04X}"
            f"{f' ({char})' if char.isprintable() else ''}. Write the text without it.",
        ) from None


def _no_match(error: MatchError, number: int, count: int, text: str, old: str) -> KodeError:
    which = f"Edit {number} of {count}: " if count > 1 else ""
    bare = strip_line_numbers(old) if error.code == "not_found" else None
    hint = " It begins with line numbers; quote it without them." if bare and bare in text else ""
    after = " No edit of this call was done." if count > 1 else ""
    message = without_controls(f"{which}{error.message}{hint}{after}")
    return KodeError("ToolFailed", message, details={"reason": error.code})


def _outcome(proposed: Proposed, stale: bool) -> ToolOutcome:
    before, after = split_lines(proposed.before), split_lines(proposed.after)
    head = f"[{proposed.path} · base_rev {text_rev(proposed.text)[:12]}]"
    parts = [proposed.message, head, unified_diff(before, after, proposed.path).rstrip("\n")]
    if stale:
        parts.append(
            "The file had changed since the base_rev you gave; every `old` still fitted exactly. "
            "Read it again before you rely on other parts of it."
        )
    return ToolOutcome(
        ok=True,
        summary=without_controls(proposed.summary),
        content=without_controls("\n".join(parts)),
        data={"changeSetId": proposed.change_set_id, "hunkIds": list(proposed.hunk_ids)},
    )
