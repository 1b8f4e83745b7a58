"""The gutter of numbered lines that a model is shown, and taking it off a quote. Pure."""

import re
from collections.abc import Sequence

_GUTTER = re.compile(r"^ *(\d+)\t", re.MULTILINE)


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
