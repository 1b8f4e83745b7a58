"""Positions as LSP 3.17 "Text Documents" defines them, for tests: an independent oracle.

It shares no code with the package on purpose: tests hold one against the other. Offsets count
Unicode code points (Python string indexes).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")


class InvalidPosition(ValueError):
    """A position that no editor can have: inside a code point or inside CR LF."""


@dataclass(frozen=True)
class Span:
    """Replace `text[start:end]` by `new_text`."""

    start: int
    end: int
    new_text: str


def units(text: str, encoding: PositionEncoding) -> int:
    """How long `text` is, counted in the units of `encoding`."""
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    if encoding == "utf-16":
        return sum(2 if ord(char) > 0xFFFF else 1 for char in text)
    return len(text)


class Lines:
    """The lines of one text. Only LF, CR LF and CR end a line."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self._text = text
        self._encoding: PositionEncoding = encoding
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(match.end() for match in ends)]
        self._content_ends = [*(match.start() for match in ends), len(text)]

    def __len__(self) -> int:
        return len(self._starts)

    def position(self, offset: int) -> dict[str, int]:
        """The LSP position of an offset. Raises InvalidPosition between CR and LF."""
        line = bisect_right(self._starts, offset) - 1
        if offset > self._content_ends[line]:
            raise InvalidPosition(f"offset {offset} lies inside the line end of line {line}")
        before = self._text[self._starts[line] : offset]
        return {"line": line, "character": units(before, self._encoding)}

    def range(self, start: int, end: int) -> dict[str, dict[str, int]]:
        """The LSP range of two offsets."""
        return {"start": self.position(start), "end": self.position(end)}

    def offset(self, position: dict[str, int]) -> int:
        """The offset of an LSP position.

        A character past the line's end means the line's end, a line past the last one the
        end of the text. Raises InvalidPosition inside a code point.
        """
        line, character = position["line"], position["character"]
        if line < 0 or character < 0:
            raise InvalidPosition(f"negative position {line}:{character}")
        if line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[line], self._content_ends[line]
        return start + self._column(self._text[start:end], line, character)

    def _column(self, content: str, line: int, character: int) -> int:
        used = 0
        for column, char in enumerate(content):
            if used == character:
                return column
            used += units(char, self._encoding)
            if used > character:
                raise InvalidPosition(f"position {line}:{character} splits a character")
        return len(content)

    def spans(self, edits: Sequence[dict[str, Any]]) -> list[Span]:
        """LSP TextEdits as spans, ascending; inserts at one place keep their order.

        Raises InvalidPosition when edits overlap or a range is backwards.
        """
        found = [
            Span(
                self.offset(edit["range"]["start"]),
                self.offset(edit["range"]["end"]),
                str(edit["newText"]),
            )
            for edit in edits
        ]
        found.sort(key=lambda span: (span.start, span.end))
        for span in found:
            if span.end < span.start:
                raise InvalidPosition("an edit ends before it starts")
        for before, after in pairwise(found):
            if after.start < before.end:
                raise InvalidPosition("two edits overlap")
        return found


def replace_spans(text: str, spans: Sequence[Span]) -> str:
    """`text` after ascending, disjoint spans, all measured on `text`."""
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += [text[at : span.start], span.new_text]
        at = span.end
    parts.append(text[at:])
    return "".join(parts)
