"""Text as a model is shown it: harmless characters, numbered lines, stated cuts."""

import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GUTTER = re.compile(r"^ *(\d+)\t", re.MULTILINE)


def without_controls(text: str) -> str:
    """The text without control characters, except newline and tab (W13)."""
    return _CONTROL.sub("", text)


def number_lines(lines: Sequence[str], first: int) -> str:
    """Lines (without ends) behind a gutter: the number, right-aligned to six, and a tab."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def strip_line_numbers(text: str) -> str | None:
    """The text without the gutter of `number_lines`; None unless each line has its number."""
    numbers = [int(number) for number in _GUTTER.findall(text)]
    lines = text.removesuffix("\n").count("\n") + 1
    if not numbers or numbers != list(range(numbers[0], numbers[0] + lines)):
        return None
    return _GUTTER.sub("", text)


def cut_line(line: str, limit: int, around: int = 0) -> str:
    """A line of at most `limit` characters near the index `around`, saying how much is left out."""
    if len(line) <= limit:
        return line
    start = max(0, min(around - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{start} characters cut] " if start else ""
    after = f" [{len(line) - end} characters cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"
