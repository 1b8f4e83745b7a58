"""Line diffs for reading: what changed, with line numbers and a little around it."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kode_sidecar.client.positions import Lines, PositionEncoding, replace_spans

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class DiffLine:
    """One line of a unified diff; numbers start at 1 and are None where the line is not."""

    kind: Literal[" ", "-", "+"]
    old_number: int | None
    new_number: int | None
    text: str


@dataclass(frozen=True)
class DiffGroup:
    """Lines that stand together; `header` is that of a unified diff."""

    header: str
    lines: Sequence[DiffLine]


def line_diff(before: str, after: str, context: int = 2) -> list[DiffGroup]:
    """The changed lines of a text in groups, each with `context` lines around it.

    Line ends do not count: a change of nothing but line ends is no group.
    """
    old, new = _LINE_END.split(before), _LINE_END.split(after)
    # The common head and tail are left out: difflib needs quadratic time.
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = max(0, head - context)
    keep = max(0, tail - context)
    old_part, new_part = old[start : len(old) - keep], new[start : len(new) - keep]
    matcher = difflib.SequenceMatcher(None, old_part, new_part, autojunk=False)
    return [
        _group(list(_lines(opcodes, old_part, new_part, start)))
        for opcodes in matcher.get_grouped_opcodes(context)
        if any(tag != "equal" for tag, *_ in opcodes)
    ]


def hunk_diff(
    hunk: dict[str, Any], text: str | None, encoding: PositionEncoding = "utf-16"
) -> list[DiffGroup]:
    """One proposed hunk as a diff.

    `text` is the buffer's text the hunk's range belongs to; without it the hunk's own old and
    new text stand alone.
    """
    place = hunk.get("range")
    if text is None or place is None:
        return line_diff(hunk.get("oldText", ""), hunk.get("newText", ""))
    edit = {"range": place, "newText": hunk.get("newText", "")}
    return line_diff(text, replace_spans(text, Lines(text, encoding).spans([edit])))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _lines(
    opcodes: Sequence[tuple[str, int, int, int, int]],
    old: Sequence[str],
    new: Sequence[str],
    start: int,
) -> Iterator[DiffLine]:
    for tag, old_from, old_to, new_from, new_to in opcodes:
        if tag == "equal":
            for offset in range(old_to - old_from):
                at, to = old_from + offset, new_from + offset
                yield DiffLine(" ", start + at + 1, start + to + 1, old[at])
            continue
        for at in range(old_from, old_to):
            yield DiffLine("-", start + at + 1, None, old[at])
        for to in range(new_from, new_to):
            yield DiffLine("+", None, start + to + 1, new[to])


def _group(lines: Sequence[DiffLine]) -> DiffGroup:
    old = [line.old_number for line in lines if line.old_number is not None]
    new = [line.new_number for line in lines if line.new_number is not None]
    return DiffGroup(f"@@ -{_span(old)} +{_span(new)} @@", lines)


def _span(numbers: Sequence[int]) -> str:
    return f"{numbers[0] if numbers else 0},{len(numbers)}"
