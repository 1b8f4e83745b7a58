"""What a proposed text must not be, whichever tool proposes it. Every refusal says what to do."""

from kode_sidecar.errors import KodeError
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.omission import omission
from kode_sidecar.text.shown_text import without_controls
from kode_sidecar.workspace.disk import MAX_FILE_BYTES
from kode_sidecar.workspace.document import Document

MAX_CHANGE_CHARS = 4_000
"""How much of what changed since a read a `stale` error shows."""


def refusal(reason: str, message: str, **details: object) -> KodeError:
    """A failed edit; `reason` is for machines, the message for the model."""
    return KodeError("ToolFailed", without_controls(message), details={"reason": reason, **details})


def stale(path: str, read: str, now: str, what: str) -> KodeError:
    """An edit that belongs to the text the model `read` and does not fit that of `now`."""
    diff = unified_diff(split_lines(read), split_lines(now), path)
    if len(diff) > MAX_CHANGE_CHARS:
        diff = diff[:MAX_CHANGE_CHARS] + "\n[cut]\n"
    return KodeError(
        "StaleBase",
        without_controls(
            f"{what} {path} has changed since you read it:\n{diff}Read the place again, then edit."
        ),
        details={"reason": "stale"},
    )


def check_omission(new: str, known: str, which: str, *, confirm: bool = False) -> None:
    """Raises KodeError where `new` says that it leaves out what `known` does not."""
    line = omission(new, known)
    if line is None:
        return
    literal = (
        "If it is meant literally, send the call again with confirm=true."
        if confirm
        else "If it is meant literally, word it otherwise."
    )
    raise refusal(
        "placeholder",
        f"{which}The line `{line}` stands for text that is left out; it would replace that text. "
        f"Write it out, or edit only the lines that change. {literal}",
    )


def check_encodable(new: str, document: Document, path: str, text: str = "", at: int = 0) -> None:
    """Raises KodeError `Unencodable`; `new` goes to the offset `at` of `text`."""
    charset = document.charset
    try:
        new.encode(charset)
    except UnicodeEncodeError as error:
        char = new[error.start]
        line = text.count("\n", 0, at) + new.count("\n", 0, error.start) + 1
        shown = f" ({char})" if char.isprintable() else ""
        raise KodeError(
            "Unencodable",
            f"{path} is saved as {charset}, which has no U+{ord(char):04X}{shown}, in line {line} "
            "of the new text. Write the text without it.",
            details={"reason": "unencodable", "character": f"U+{ord(char):04X}", "line": line},
        ) from None


def check_size(text: str, path: str) -> None:
    """Raises KodeError `TooLarge`."""
    if len(text) > MAX_FILE_BYTES:
        raise KodeError("TooLarge", f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes.")


def check_finished(text: str, result: str, path: str) -> str:
    """`result` with the final line end of `text`. Raises KodeError."""
    if text.endswith("\n") and result and not result.endswith("\n"):
        result += "\n"
    check_size(result, path)
    if result == text:
        raise refusal("identical", "The edits cancel each other out: nothing would change.")
    return result
