"""Reports to the model what became of its hunks: a line each, by a name that it remembers."""

from kode_sidecar.core.domain.change_set import ProposedHunk
from kode_sidecar.core.domain.hunk_state import facts

MAX_COMMENT_CHARS = 2_000
MAX_QUOTED_CHARS = 2_000
MAX_NAME_CHARS = 60


def verdict_line(hunk: ProposedHunk) -> str:
    """What became of a decided hunk, for the model."""
    return f"- {hunk.file.path}, {_name(hunk)}: {_verdict(hunk)}"


def _verdict(hunk: ProposedHunk) -> str:
    words = facts(hunk.state).words
    comment = (hunk.comment or "").strip()[:MAX_COMMENT_CHARS]
    match hunk.state:
        case "applied" if hunk.unconfirmed:
            return "accepted and sent to the editor, unconfirmed: the file is not open there."
        case "applied" if hunk.undone_by:
            return "put back by the user: it is applied again."
        case "applied" if hunk.is_to_keep:
            return "applied; the user has yet to keep or undo it."
        case "applied" | "undone" if comment:
            return f"{words} The user says: {comment}"
        case "replaced":
            sent = " (sent, unconfirmed: the file is not open)" if hunk.unconfirmed else ""
            own = _quoted(hunk.replacement or "")
            return f"{words.removesuffix('.')}{sent}. The text is now:{own}"
        case "rejected" if comment:
            return f"{words.removesuffix('.')}: {comment}"
        case "stale" | "conflict" if hunk.reason:
            return f"not applied: {hunk.reason.removesuffix('.')}."
        case "diverged":
            found = hunk.diff or "" if hunk.found is None else hunk.found
            return f"{words}{_quoted(found)}"
        case "conflict" if hunk.kind != "modify":
            return "not done: there is another file, or another text, by now. Look again first."
        case _:
            return words


def _name(hunk: ProposedHunk) -> str:
    """A hunk by the first line that it changes, as a model remembers it."""
    match hunk.kind:
        case "create":
            return "the new file"
        case "delete":
            return "the deletion of the file"
        case "rename":
            return f"the move to {hunk.new_file.path if hunk.new_file else ''}"
        case "modify":
            pass
    old, new = _first_line(hunk.old_text), _first_line(hunk.new_text)
    if not hunk.old_text:
        return f"the added lines from `{new}`"
    return f"the change at `{old}`" if hunk.new_text else f"the deletion of `{old}`"


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= MAX_NAME_CHARS else line[:MAX_NAME_CHARS] + "…"


def _quoted(text: str) -> str:
    if not text:
        return " (nothing)"
    cut = text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + "…\n"
    fence = "```" if "```" not in cut else "~~~~"
    return f"\n{fence}\n{cut}{'' if cut.endswith(chr(10)) else chr(10)}{fence}"
