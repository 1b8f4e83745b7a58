"""Rewrite texts by the arguments of an edit, and refuse bad results.

Each class is a `Rewrite`. Every refusal says what to do next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta, Struct

from kode_sidecar.core.text.chunk_place import locate_chunk, with_final_end_of
from kode_sidecar.core.text.edit_hints import line_span
from kode_sidecar.core.text.edit_match import EditMatch, MatchError, locate
from kode_sidecar.core.text.edit_tiers import Tier
from kode_sidecar.core.text.edited_text import EditedText
from kode_sidecar.core.text.file_patch import PatchChunk
from kode_sidecar.core.text.line_diff import split_lines, unified_diff
from kode_sidecar.core.text.notebook import NotebookError, new_notebook, read_notebook
from kode_sidecar.core.text.omission import elision, omission
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.core.text.text_edit import Edit, apply_edits, follow_lines, replace_lines, to_lf
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.freshness import Freshness

MAX_CHANGE_CHARS = 4_000
"""The most characters of a diff that a `stale` error shows."""
_CHARS_OF_AN_EDIT = 5_000
_DIFFERENCES = {
    "exact": "",
    "canonical": "letters are composed otherwise there, and `new` was written in the same way",
    "trailing_blanks": "blanks at the ends of lines differ",
    "indentation": "the indentation differs, and `new` was moved along",
    "punctuation": "dashes, quotes, blanks or full-width signs differ",
}


def refusal(reason: str, message: str, **details: object) -> KodeError:
    """Return the error of a failed edit; `reason` is for machines, the message for the model."""
    return KodeError("ToolFailed", without_controls(message), details={"reason": reason, **details})


def stale(path: str, read: str, now: str, what: str) -> KodeError:
    """Return the error of an edit that fits the text the model `read`, but not the text `now`."""
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


def check_omission(
    new: str, known: str, which: str, *, old: str = "", confirm: bool = False
) -> None:
    """Raise KodeError if `new` has a placeholder for omitted text that `known` does not have.

    `old` is the text that `new` replaces.
    """
    line = omission(new, known) or elision(old, new)
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
    """Raise KodeError `Unencodable` if needed; `new` goes to the offset `at` of `text`."""
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


def check_size(text: str, path: str, known: str = "") -> None:
    """Raise KodeError `TooLarge` if a text exceeds the size limit, `ToolFailed` if it is none."""
    if "\0" in text and "\0" not in known:
        raise refusal(
            "binary", f"{path} would hold a NUL character, so that nothing reads it as text again."
        )
    if len(text) > MAX_FILE_BYTES:
        raise KodeError("TooLarge", f"{path} would grow beyond {MAX_FILE_BYTES:,} bytes.")


def held_text(document: Document, before: str, shown: str, base: str) -> tuple[str, bool]:
    """Return the text that a file with the text `before` must have for the model to read `shown`.

    Says also whether the lines that differ from `base` may be accepted one by one: not those of
    cells that come, go or move. Raises KodeError where no notebook would be left.
    """
    name = document.path.name if document.path else document.uri
    if document.notebook_type and not document.is_notebook:
        raise refusal(
            "notebook",
            f"{name} is open as a notebook of the kind {document.notebook_type}, which takes no "
            "edit of its text. Ask the user to close it, or say what to change.",
        )
    if not document.is_notebook:
        return shown, True
    try:
        held, same_cells = read_notebook(before).with_text(shown)
        if document.notebook_type and not same_cells:
            raise refusal(
                "notebook",
                f"{name} is open as a notebook: only the sources of the cells that it has can be "
                "changed from here. Ask the user to add, move or delete cells, or to close it.",
            )
        return held, same_cells and read_notebook(base).shape == read_notebook(held).shape
    except NotebookError as error:
        why = error
    try:
        if before == document.shown(before):  # it was no notebook, and may become one
            return new_notebook(shown), False
    except NotebookError as error:
        why = error
    raise refusal("notebook", f"{name} is a notebook, and would be none any more. {why}")


def check_finished(text: str, result: str, path: str) -> str:
    """Return `result` with the final line end of `text`.

    Raises KodeError if nothing changed.
    """
    if text.endswith("\n") and result and not result.endswith("\n"):
        result += "\n"
    check_size(result, path, text)
    if result == text:
        raise refusal("identical", "The edits cancel each other out: nothing would change.")
    return result


class Replacement(Struct, forbid_unknown_fields=True):
    """One replacement."""

    old: Annotated[
        str,
        Meta(
            description="Exactly as in the file, without line numbers. It must occur once: quote "
            "enough lines around the place."
        ),
    ]
    new: Annotated[str, Meta(description="Empty deletes")]
    replace_all: bool = False
    near_line: Annotated[int, Meta(ge=1, description="If old occurs more than once")] | None = None


@dataclass
class QuotedEdits:
    """Replacements of quoted text, each done on the result of the one before.

    After a call, `tiers` say how exactly each text matched; `notes` are for the model.
    """

    path: str
    edits: Sequence[Replacement]
    base_rev: str
    shown: Freshness
    tiers: list[Tier] = field(default_factory=list[Tier], init=False)
    notes: list[str] = field(default_factory=list[str], init=False)

    @property
    def weight(self) -> int:
        """The characters of a text that take as long to edit once."""
        return _CHARS_OF_AN_EDIT * len(self.edits)

    def __call__(self, document: Document, text: str) -> str:
        """Return the new text. `near_line` counts lines of `text`."""
        self.tiers, self.notes = [], []
        edited = EditedText(text)
        done: list[tuple[int, int]] = []
        several = len(self.edits) > 1
        in_order = any(edit.near_line is not None for edit in self.edits)
        for number, edit in enumerate(self.edits, 1):
            which = f"Edit {number} of {len(self.edits)}: " if several else ""
            old, new = to_lf(edit.old), to_lf(edit.new)
            if not in_order and _is_plain(old, new, document) and edited.replace_only(old, new):
                self.tiers.append("exact")
                continue
            result = edited.text
            near = None if edit.near_line is None else _line_now(edit.near_line, done)
            found = locate(result, old, new, replace_all=edit.replace_all, near_line=near)
            if isinstance(found, MatchError):
                self._check_stale(document, text, old, new, which)
                error = _no_match(found, which, several)
                if document.is_notebook:
                    error.message += "\nQuote cells as read_file shows them, not their JSON."
                raise error
            check_omission(new, result, which, old=old)
            check_encodable(new, document, self.path, result, found.edits[0].start)
            self.tiers.append(found.tier)
            self.notes += _notes(found, f"Edit {number}" if several else "It")
            if any(later.near_line is not None for later in self.edits[number:]):
                done += (_growth(result, one) for one in reversed(found.edits))
            edited.do(found.edits)
        if self.base_rev and not text_rev(text).startswith(self.base_rev):
            self.notes.append(
                "The file had changed since the base_rev you gave; every `old` still fitted. "
                "Read it again before you rely on other parts of it."
            )
        return check_finished(text, edited.text, self.path)

    def _check_stale(self, document: Document, text: str, old: str, new: str, which: str) -> None:
        """Raise the error `stale` if `old` disappeared after the model read the file."""
        read = self.shown.text_of(document.key, self.base_rev) if self.base_rev else None
        if read is None or read == text or isinstance(locate(text, old, new), EditMatch):
            return
        if isinstance(locate(read, old, new), EditMatch):
            raise stale(self.path, read, text, f"{which}`old` is not in the file any more.")


@dataclass
class LineEdit:
    """Replaces lines by number, in a revision where the model has seen them."""

    path: str
    lines: tuple[int, int]
    new: str | None
    base_rev: str
    shown: Freshness
    notes: list[str] = field(default_factory=list[str], init=False)

    def __call__(self, document: Document, text: str) -> str:
        """Return the new text."""
        self.notes = []
        first, last = self._find(document, text)
        if (first, last) != self.lines:
            self.notes.append(
                f"Lines {self.lines[0]}-{self.lines[1]} of that base_rev are "
                f"{first}-{last} in the text of now."
            )
        new = None if self.new is None else to_lf(self.new)
        if new is not None:
            lines = split_lines(text)
            old = "".join(lines[first - 1 : last])
            at = sum(map(len, lines[: first - 1]))
            check_omission(new, text, "", old=old)
            check_encodable(new, document, self.path, text, at)
            if new.removesuffix("\n") == old.removesuffix("\n") and new:
                raise refusal("identical", "The lines already read like that.")
        return check_finished(text, replace_lines(text, (first, last), new), self.path)

    def _find(self, document: Document, text: str) -> tuple[int, int]:
        """Return the lines in `text`. Raises KodeError `StaleBase`, `ToolFailed`."""
        first, last = self.lines
        rev = self.base_rev or self.shown.last_read(document.key)
        if not rev:
            raise KodeError(
                "InvalidArguments",
                f"You have not read {self.path}, or have edited it since: give `base_rev` of the "
                "read_file whose lines you count with `range`.",
            )
        read = self.shown.text_of(document.key, rev)
        if read is None:
            raise KodeError(
                "StaleBase",
                f"{rev} is no base_rev of {self.path} that you were shown, or it is "
                "too old. Read the lines again and give the base_rev of that.",
                details={"reason": "stale"},
            )
        count = len(split_lines(read))
        if not 1 <= first <= last <= count:
            raise refusal(
                "not_found",
                f"There are no lines {first}-{last} in {self.path}: that revision has {count}.",
            )
        if not self.shown.was_shown(document.key, rev, first, last):
            raise refusal(
                "unread",
                f"You were not shown all of the lines {first}-{last} in that revision of "
                f"{self.path}. Read them first.",
            )
        found = (first, last) if read == text else follow_lines(read, text, (first, last))
        if found is None:
            raise stale(self.path, read, text, f"The lines {first}-{last} were changed.")
        return found


@dataclass
class Overwrite:
    """Replaces the whole text. The model must have seen all of the old one.

    Unless `confirmed`, refuses a text with omissions, or less than half as long.
    """

    path: str
    content: str
    shown: Freshness
    confirmed: bool
    notes: list[str] = field(default_factory=list[str], init=False)

    def __call__(self, document: Document, text: str) -> str:
        """Return the new text."""
        content, count = to_lf(self.content), len(split_lines(text))
        if not self.shown.was_shown(document.key, text_rev(text), 1, count):
            raise refusal(
                "unread",
                f"To overwrite {self.path} you must have read all of it as it is now: {count} "
                "lines. Read the rest first, or change only what you know with propose_edit.",
            )
        if not self.confirmed:
            check_omission(content, text, "", old=text, confirm=True)
            if 2 * len(content) < len(text):
                raise refusal(
                    "placeholder",
                    f"{self.path} would shrink from {len(text):,} to {len(content):,} "
                    "characters. If something was left out, write it out. If all of it shall go, "
                    "send the call again with confirm=true.",
                )
        check_encodable(content, document, self.path)
        return check_finished(text, content, self.path)


@dataclass
class PatchChunks:
    """The chunks of a patch for one file, each done on the result of the one before."""

    path: str
    chunks: Sequence[PatchChunk]
    tiers: list[Tier] = field(default_factory=list[Tier], init=False)
    notes: list[str] = field(default_factory=list[str], init=False)

    def __call__(self, document: Document, text: str) -> str:
        """Return the new text."""
        self.tiers, self.notes = [], []
        result = text
        for number, chunk in enumerate(self.chunks, 1):
            which = f"{self.path}, chunk {number} of {len(self.chunks)}: "
            found = locate_chunk(result, chunk)
            if isinstance(found, MatchError):
                raise _no_match(found, which, several=True)
            goes_on = found.edits[-1].end < len(result)
            if chunk.cut == "yes" or (chunk.cut == "perhaps" and goes_on):
                raise refusal(
                    "cut",
                    f"{which}It has fewer lines than its `@@` says and ends with a change, so its "
                    "end may be missing. Send all of it again, or correct the numbers.",
                )
            old, new = ("".join(f"{line}\n" for line in side) for side in (chunk.old, chunk.new))
            check_omission(new, result, which, old=old)
            check_encodable(new, document, self.path, result, found.edits[0].start)
            self.tiers.append(found.tier)
            self.notes += _notes(found, f"{self.path}, chunk {number}")
            result = apply_edits(result, found.edits)
        result = with_final_end_of(text, result, self.chunks)
        return check_finished(text, result, self.path)


@dataclass(frozen=True)
class WholeText:
    """Replaces the whole text, of a file that a patch deletes and adds again."""

    path: str
    content: str

    def __call__(self, document: Document, text: str) -> str:
        """Return the new text."""
        content = to_lf(self.content)
        check_omission(content, text, f"{self.path}: ", old=text)
        check_encodable(content, document, self.path)
        return check_finished(text, content, self.path)


def _is_plain(old: str, new: str, document: Document) -> bool:
    """Return whether a replacement needs no check other than its place."""
    try:
        new.encode(document.charset)
    except UnicodeEncodeError:
        return False
    return old != new and omission(new, "") is None and elision(old, new) is None


def _no_match(error: MatchError, which: str, several: bool) -> KodeError:
    after = "\nNo edit of this call was done." if several else ""
    details = {"lines": list(error.lines)} if error.lines else {}
    return refusal(error.code, f"{which}{error.message}{after}", **details)


def _notes(found: EditMatch, what: str) -> list[str]:
    reported = [f"{found.repair}" if found.repair else "", _DIFFERENCES[found.tier]]
    said = "; ".join(part for part in reported if part)
    return [f"{what} fitted, but not as quoted: {said}."] if said else []


def _growth(text: str, edit: Edit) -> tuple[int, int]:
    """Return the last line an edit touches, and by how many lines the rest moves."""
    last = line_span(text, edit.start, edit.end)[1]
    return last, edit.text.count("\n") - text.count("\n", edit.start, edit.end)


def _line_now(line: int, done: Sequence[tuple[int, int]]) -> int:
    for last, growth in done:
        line += growth if line > last else 0
    return line
