"""One document: an editor's buffer or a file's text, as lines, with positions and offsets."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.notebook import cells_text, is_notebook
from kode_sidecar.core.text.text_edit import common_prefix, common_suffix, to_lf
from kode_sidecar.core.text.text_lines import (
    PositionEncoding,
    code_point_column,
    dominant_eol,
    encoded_column,
    line_content,
)
from kode_sidecar.core.text.uris import canonical_key, uri_to_path

if TYPE_CHECKING:  # the modules that read the disk load after the process answers
    from kode_sidecar.infrastructure.workspace.disk import FileStatus

LARGE_CHARS = 250_000
"""Work on a longer text would block the event loop, so it runs in a thread."""

MAX_SHIFTS = 256
"""The number of shifts that are collected before they are added to the offsets."""


@dataclass(frozen=True)
class TextChange:
    """The replacement of `[start, end)` by `text`: code-point offsets in the text before it."""

    start: int
    end: int
    text: str


def text_rev(text_lf: str) -> str:
    """Return the revision of a text with LF line ends: hex SHA-256 of its UTF-8 bytes."""
    return hashlib.sha256(text_lf.encode("utf-8", "surrogatepass")).hexdigest()


class LineStarts:
    """The offset of each line of `lines`, computed when asked for.

    A change within a line moves all lines below it. That is noted as a shift, once for all of them:
    from line `_from[k]` on, offsets are `_by[k]` more than `_starts` says.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._starts: list[int] = [0] if lines else []
        self._from: list[int] = []
        self._by: list[int] = []

    def of(self, line: int) -> int:
        """Return the offset of one line."""
        if line >= len(self._starts):
            self._know(line + 1)
        at = bisect_right(self._from, line)
        return self._starts[line] + (self._by[at - 1] if at else 0)

    def all(self) -> Sequence[int]:
        """Return the offsets of all lines."""
        self._know(len(self._lines))
        self._settle()
        return self._starts

    def grow(self, line: int, by: int) -> None:
        """Shift the lines below a line that became longer by `by`."""
        at = bisect_left(self._from, line + 1)
        if self._from[at : at + 1] != [line + 1]:
            self._from.insert(at, line + 1)
            self._by.insert(at, self._by[at - 1] if at else 0)
        self._by[at:] = [shift + by for shift in self._by[at:]]
        if len(self._from) > MAX_SHIFTS:
            self._settle()

    def forget(self, line: int) -> None:
        """Drop the offsets of this line and those below."""
        del self._starts[line:]
        at = bisect_left(self._from, line)
        del self._from[at:], self._by[at:]

    def _settle(self) -> None:
        """Add the shifts to the offsets."""
        ends = [*self._from[1:], len(self._starts)]
        for start, end, by in zip(self._from, ends, self._by, strict=False):
            self._starts[start:end] = [offset + by for offset in self._starts[start:end]]
        self._from, self._by = [], []

    def _know(self, count: int) -> None:
        """Compute the offsets of the first `count` lines."""
        self._settle()
        known = len(self._starts)
        if known < count:
            base = self._starts.pop() if known else 0
            lengths = map(len, self._lines[max(known - 1, 0) : count - 1])
            self._starts.extend(accumulate(lengths, initial=base))


class Document:
    """A text with its identity.

    `uri` is as the editor wrote it (made from the path for a file read from disk), `key` its
    canonical form. `version` is None for a text read from disk. `encoding` (a codec's name) and
    `bom` describe the bytes on disk, not the text; `saved_as` is the codec that the editor named,
    or "". `notebook_type` is that of a notebook which the editor holds as cells. `status` is that
    of the file when its text was read from disk. While `synced` is false the text must not be used;
    `unsynced_reason` says why. Lines end only where LSP says so.
    """

    def __init__(
        self,
        uri: str,
        text: str,
        *,
        path: Path | None = None,
        version: int | None = None,
        language_id: str = "",
        encoding: str = "utf-8",
        charset: str = "",
        bom: bool = False,
        is_open: bool = False,
        status: "FileStatus | None" = None,
    ) -> None:
        self.uri = uri
        self.key = canonical_key(uri)
        self.path = path or uri_to_path(uri)
        self.version = version
        self.language_id = language_id
        self.encoding = encoding
        self._charset = charset
        self.saved_as = ""
        self.differs_from_disk = False
        self.notebook_type = ""
        self.bom = bom
        self.is_open = is_open
        self.status = status
        self.unsynced_reason = ""
        self.learned_at: FileStatus | None = None
        self._set_text(text)

    @property
    def synced(self) -> bool:
        """True if the text is known to be the editor's."""
        return not self.unsynced_reason

    @property
    def is_notebook(self) -> bool:
        """True for a Jupyter notebook: the model reads and edits its cells, not their JSON."""
        return self.path is not None and is_notebook(self.path.name)

    def shown(self, text_lf: str) -> str:
        """Return a text (LF) of this document as the model reads it: of a notebook, its cells."""
        return cells_text(text_lf) if self.is_notebook else text_lf

    @property
    def shown_lines(self) -> Sequence[str]:
        """The lines as the model reads them: an output of a notebook may be a very long one."""
        return split_lines(self.shown(self.lf_text)) if self.is_notebook else self.lines

    @property
    def source(self) -> str:
        """Where its text is from, and how it is shown, in a few words."""
        note = "from the editor's open buffer" if self.is_open else "from disk"
        if self.differs_from_disk:
            note += ", which is not what the disk has"
        if self.is_notebook and self.shown(self.lf_text) == self.lf_text:
            note += ", a notebook whose cells cannot be read"
        elif self.is_notebook:
            note += ", a notebook: a line `# %% [kind] id=…` begins each cell, one without id a new"
            note += " cell; outputs are not shown"
        return note

    @property
    def charset(self) -> str:
        """The codec of all characters that the file can hold."""
        return self.saved_as or self._charset or self.encoding

    def learn_encoding(self, encoding: str, charset: str, *, bom: bool, at: "FileStatus") -> None:
        """Note the encoding of an open file's bytes on disk, and the file's status at that time."""
        self.encoding, self._charset, self.bom = encoding, charset, bom
        self.learned_at = at

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends; no empty entry after a final line end."""
        return self._split()

    @property
    def text(self) -> str:
        """The text with its own line ends; a file's BOM is not part of it."""
        if self._text is None:
            self._text = "".join(self._split())
        return self._text

    @property
    def lf_text(self) -> str:
        """The text with LF line ends."""
        if self._lf_text is None:
            self._lf_text = to_lf(self.text)
        return self._lf_text

    @property
    def eol(self) -> str:
        """The dominant line end: `\\n`, `\\r\\n` or `\\r`."""
        if self._eol is None:
            self._eol = dominant_eol(self.text)
        return self._eol

    @property
    def lf_lines(self) -> Sequence[str]:
        """The lines of `lf_text`."""
        return split_lines(self.lf_text) if self.lf_text is not self.text else self.lines

    @property
    def rev(self) -> str:
        """Hex SHA-256 of `lf_text` in UTF-8."""
        if self._rev is None:
            self._rev = text_rev(self.lf_text)
        return self._rev

    @property
    def line_starts(self) -> Sequence[int]:
        """The code-point offset of each entry of `lines`."""
        self._split()
        return self._starts.all()

    def position_at(self, offset: int, encoding: PositionEncoding) -> Position:
        """Return the position of a code-point offset, clamped to the text.

        An offset between `\\r` and `\\n` is the end of the line's content.
        """
        starts = self.line_starts
        line = bisect_right(starts, offset) - 1
        if line < 0:
            return Position(0, 0)
        text = self.lines[line]
        column = offset - starts[line]
        if column >= len(text) and line_content(text) != text:
            return Position(line + 1, 0)
        return Position(line, encoded_column(text, column, encoding))

    def replace_range(self, span: Range, text: str, encoding: PositionEncoding) -> TextChange:
        """Apply one ranged content change of `didChange`; costs no more than the change.

        Raises ValueError for an impossible range: negative, backwards, or starting more than one
        line past the end. Only `Documents` calls it, on open documents.
        """
        lines = self._split()
        first, first_column = self._locate(span.start, encoding)
        last, last_column = self._locate(span.end, encoding)
        if span.start.line > len(lines) + 1:
            raise ValueError(f"line {span.start.line} is past the end of the text")
        if (span.end.line, span.end.character) < (span.start.line, span.start.character):
            raise ValueError("a range ends before it starts")
        change = TextChange(
            self._start_of(first) + first_column, self._start_of(last) + last_column, text
        )
        head = lines[first][:first_column] if first < len(lines) else ""
        tail = lines[last][last_column:] if last < len(lines) else ""
        if not head and first > 0 and lines[first - 1].endswith("\r"):
            first -= 1  # a "\n" inserted after a lone "\r" joins it into one line end
            head = lines[first]
        fresh = split_lines(head + text + tail)
        one = len(fresh) == 1 and first == last < len(lines)
        lines[first : last + 1] = fresh
        if one:
            self._starts.grow(first, len(text) - (change.end - change.start))
        else:
            self._starts.forget(min(first + 1, len(lines)))
        self._text = self._lf_text = self._rev = self._eol = None
        return change

    def replace_all(self, text: str) -> TextChange | None:
        """Take a whole new text; return the smallest change to it, or None for the same text.

        Only `Documents` calls it, on open documents.
        """
        old = self.text
        if text == old:
            return None
        start = common_prefix(old, text)
        tail = common_suffix(old, text, start)
        self._set_text(text)
        return TextChange(start, len(old) - tail, text[start : len(text) - tail])

    def _set_text(self, text: str) -> None:
        self._text: str | None = text
        self._lf_text: str | None = None
        self._rev: str | None = None
        self._eol: str | None = None
        self._lines: list[str] | None = None
        self._starts = LineStarts(())

    def _split(self) -> list[str]:
        """Return the lines, split on demand: many documents are opened and never read."""
        if self._lines is None:
            self._lines = split_lines(self.text)
            self._starts = LineStarts(self._lines)
        return self._lines

    def _locate(self, position: Position, encoding: PositionEncoding) -> tuple[int, int]:
        """Return line index and code-point column; `len(lines)` only after a final line end."""
        if position.line < 0 or position.character < 0:
            raise ValueError("a position is negative")
        lines = self._split()
        if position.line < len(lines):
            text = lines[position.line]
            return position.line, code_point_column(text, position.character, encoding)
        if lines and line_content(lines[-1]) == lines[-1]:
            return len(lines) - 1, len(lines[-1])
        return len(lines), 0

    def _start_of(self, line: int) -> int:
        lines = self._split()
        if line == len(lines):
            return self._start_of(line - 1) + len(lines[-1]) if line else 0
        return self._starts.of(line)
