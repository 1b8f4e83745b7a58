"""One document: an editor's buffer or a file's text, as lines, with positions and offsets."""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from kode_sidecar.domain.change_set import Position, Range
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.text_edit import common_prefix, common_suffix, to_lf
from kode_sidecar.text.text_lines import (
    PositionEncoding,
    code_point_column,
    dominant_eol,
    encoded_column,
    line_content,
)
from kode_sidecar.text.uris import canonical_key, uri_to_path
from kode_sidecar.workspace.disk import FileStatus


@dataclass(frozen=True)
class TextChange:
    """`text` took the place of `[start, end)`: code-point offsets in the text before it."""

    start: int
    end: int
    text: str


def text_rev(text_lf: str) -> str:
    """The revision of a text with LF line ends: hex SHA-256 of its UTF-8 bytes."""
    return hashlib.sha256(text_lf.encode("utf-8", "surrogatepass")).hexdigest()


class Document:
    """A text with its identity.

    `uri` is as the editor wrote it (made from the path for a file read from disk), `key` its
    canonical form. `version` is None for a text read from disk. `encoding` (a codec's name) and
    `bom` describe the bytes on disk, not the text; `charset` is the codec of all characters that
    can be saved there. `status` is the file's when its text was read from there. While `synced` is
    false the text must not be used; `unsynced_reason` says why. Lines end only where LSP says so.
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
        status: FileStatus | None = None,
    ) -> None:
        self.uri = uri
        self.key = canonical_key(uri)
        self.path = path or uri_to_path(uri)
        self.version = version
        self.language_id = language_id
        self.encoding = encoding
        self.charset = charset or encoding
        self.bom = bom
        self.is_open = is_open
        self.status = status
        self.unsynced_reason = ""
        self._set_lines(split_lines(text), text)

    @property
    def synced(self) -> bool:
        """Whether the text is known to be the editor's."""
        return not self.unsynced_reason

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends; no empty entry after a final line end."""
        return self._lines

    @property
    def text(self) -> str:
        """The text with its own line ends; a file's BOM is not part of it."""
        if self._text is None:
            self._text = "".join(self._lines)
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
        return dominant_eol(self.text)

    @property
    def rev(self) -> str:
        """Hex SHA-256 of `lf_text` in UTF-8."""
        if self._rev is None:
            self._rev = text_rev(self.lf_text)
        return self._rev

    @property
    def line_starts(self) -> Sequence[int]:
        """The code-point offset of each entry of `lines`."""
        self._know_starts(len(self._lines))
        return self._starts

    def offset_at(self, position: Position, encoding: PositionEncoding) -> int:
        """The code-point offset of a position.

        Past a line's content it is the end of the content, past the last line the end of the
        text, inside a character its start. Raises ValueError for a negative position.
        """
        line, column = self._locate(position, encoding)
        return self._start_of(line) + column

    def position_at(self, offset: int, encoding: PositionEncoding) -> Position:
        """The position of a code-point offset, clamped to the text.

        An offset between `\\r` and `\\n` is the end of the line's content.
        """
        starts = self.line_starts
        line = bisect_right(starts, offset) - 1
        if line < 0:
            return Position(0, 0)
        text = self._lines[line]
        column = offset - starts[line]
        if column >= len(text) and line_content(text) != text:
            return Position(line + 1, 0)
        return Position(line, encoded_column(text, column, encoding))

    def replace_range(self, span: Range, text: str, encoding: PositionEncoding) -> TextChange:
        """Apply one ranged content change of `didChange`; costs no more than the change.

        Raises ValueError for a range that cannot be meant: negative, backwards, or starting
        more than one line past the end. Only `Documents` calls it, on open documents.
        """
        first, first_column = self._locate(span.start, encoding)
        last, last_column = self._locate(span.end, encoding)
        if span.start.line > len(self._lines) + 1:
            raise ValueError(f"line {span.start.line} is past the end of the text")
        if (span.end.line, span.end.character) < (span.start.line, span.start.character):
            raise ValueError("a range ends before it starts")
        change = TextChange(
            self._start_of(first) + first_column, self._start_of(last) + last_column, text
        )
        head = self._lines[first][:first_column] if first < len(self._lines) else ""
        tail = self._lines[last][last_column:] if last < len(self._lines) else ""
        if not head and first > 0 and self._lines[first - 1].endswith("\r"):
            first -= 1  # a "\n" put after a lone "\r" makes one line end of the two
            head = self._lines[first]
        self._lines[first : last + 1] = split_lines(head + text + tail)
        del self._starts[min(first + 1, len(self._lines)) :]
        self._text = self._lf_text = self._rev = None
        return change

    def replace_all(self, text: str) -> TextChange | None:
        """Take a whole new text; the smallest change that leads to it, None for the same text.

        Only `Documents` calls it, on open documents.
        """
        old = self.text
        if text == old:
            return None
        start = common_prefix(old, text)
        tail = common_suffix(old, text, start)
        self._set_lines(split_lines(text), text)
        return TextChange(start, len(old) - tail, text[start : len(text) - tail])

    def _set_lines(self, lines: list[str], text: str) -> None:
        self._lines = lines
        self._text: str | None = text
        self._lf_text: str | None = None
        self._rev: str | None = None
        self._starts: list[int] = [0] if lines else []

    def _locate(self, position: Position, encoding: PositionEncoding) -> tuple[int, int]:
        """Line index and code-point column; the index is `len(lines)` only after a line end."""
        if position.line < 0 or position.character < 0:
            raise ValueError("a position is negative")
        if position.line < len(self._lines):
            text = self._lines[position.line]
            return position.line, code_point_column(text, position.character, encoding)
        if self._lines and line_content(self._lines[-1]) == self._lines[-1]:
            return len(self._lines) - 1, len(self._lines[-1])
        return len(self._lines), 0

    def _start_of(self, line: int) -> int:
        if line == len(self._lines):
            return self._start_of(line - 1) + len(self._lines[-1]) if line else 0
        self._know_starts(line + 1)
        return self._starts[line]

    def _know_starts(self, count: int) -> None:
        """Extend the known line starts to `count`; an edit forgets only those after it."""
        known = len(self._starts)
        if known < count:
            base = self._starts.pop() if known else 0
            lengths = map(len, self._lines[max(known - 1, 0) : count - 1])
            self._starts.extend(accumulate(lengths, initial=base))
