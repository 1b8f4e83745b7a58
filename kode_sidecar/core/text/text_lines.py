"""Lines and columns as LSP counts them: line ends are `\\n`, `\\r\\n` and `\\r`, nothing else.

`str.splitlines` also breaks at form feed, NEL, U+2028 and others; an edit placed by it lands
on the wrong line. Source: LSP 3.17, "Text Documents" and "Position".
"""

from bisect import bisect_right
from itertools import accumulate
from typing import Literal

from kode_sidecar.core.text.line_diff import split_lines

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]


def line_content(line: str) -> str:
    """Return a line without its end."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line


def dominant_eol(text: str) -> str:
    """Return the most frequent line end; `\\n` where there is none and on a tie."""
    if "\r" not in text:
        return "\n"
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda eol: counts[eol])


def code_point_column(line: str, column: int, encoding: PositionEncoding) -> int:
    """Return a column counted in units of `encoding`, as an index into `line`.

    Past the content it is the end of the content (before the line end); inside a
    character it is that character's start.
    """
    content = line_content(line)
    if column <= 0:
        return 0
    if column >= len(content) * (4 if encoding == "utf-8" else 2):
        return len(content)
    if encoding == "utf-32" or content.isascii():
        return min(column, len(content))
    if encoding == "utf-16":
        units = content.encode("utf-16-le", "surrogatepass")[: 2 * column]
        if 0xD8 <= units[-1] <= 0xDB:
            units = units[:-2]
        return len(units.decode("utf-16-le", "surrogatepass"))
    octets = content.encode("utf-8", "surrogatepass")
    if column >= len(octets):
        return len(content)
    while octets[column] & 0xC0 == 0x80:
        column -= 1
    return len(octets[:column].decode("utf-8", "surrogatepass"))


def encoded_column(line: str, column: int, encoding: PositionEncoding) -> int:
    """An index into `line` as a column counted in units of `encoding`, at most the content's."""
    prefix = line_content(line)[: max(column, 0)]
    if encoding == "utf-32" or prefix.isascii():
        return len(prefix)
    if encoding == "utf-16":
        return len(prefix.encode("utf-16-le", "surrogatepass")) // 2
    return len(prefix.encode("utf-8", "surrogatepass"))


class LineIndex:
    """Finds LSP positions in one text, and their offsets."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self._lines = split_lines(text)
        if not self._lines or line_content(self._lines[-1]) != self._lines[-1]:
            self._lines.append("")
        self._starts = list(accumulate(map(len, self._lines[:-1]), initial=0))
        self._encoding: PositionEncoding = encoding

    def offset(self, line: int, character: int) -> int:
        """Return the offset of a position.

        A character past the line's end means the line's end, one inside a code point its start,
        and a line past the last one the end of the text.
        """
        if line >= len(self._lines):
            return self._starts[-1] + len(self._lines[-1])
        return self._starts[line] + code_point_column(self._lines[line], character, self._encoding)

    @property
    def last_line(self) -> int:
        """The number of the last line, which is empty after a line end."""
        return len(self._lines) - 1

    def width(self, line: int) -> int:
        """Return the units in a line with its end; none in a line after the last one."""
        if line > self.last_line:
            return 0
        end = len(self._lines[line]) - len(line_content(self._lines[line]))
        return encoded_column(self._lines[line], len(self._lines[line]), self._encoding) + end

    def position(self, offset: int) -> dict[str, int]:
        """Return the position of an offset; between `\\r` and `\\n` it is the end of the line."""
        line = bisect_right(self._starts, offset) - 1
        column = encoded_column(self._lines[line], offset - self._starts[line], self._encoding)
        return {"line": line, "character": column}
