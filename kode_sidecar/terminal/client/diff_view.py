"""Diffs for reading: changed lines with numbers and context, and the words that changed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kode_sidecar.core.text.line_diff import DiffGroup, diff_groups
from kode_sidecar.core.text.text_edit import apply_edits, to_lf
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.terminal.client.buffer import Buffer

# Chinese and Japanese have no blanks between words: each character counts.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|\s+|.", re.DOTALL
)


@dataclass(frozen=True)
class ShownLine:
    """One line of a unified diff; numbers start at 1, None on the side that lacks the line.

    `changed` are the parts of the text that the opposite line lacks, as (start, end).
    """

    kind: Literal[" ", "-", "+"]
    old_number: int | None
    new_number: int | None
    text: str
    changed: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class ShownGroup:
    """Adjacent lines of a diff; `header` is that of a unified diff."""

    header: str
    lines: Sequence[ShownLine]


def line_diff(before: str, after: str, context: int = 2) -> list[ShownGroup]:
    """Return the changed lines of a text in groups, each with `context` lines around it.

    Changes of line ends alone are ignored.
    """
    old, new = _text_lines(before, other=after), _text_lines(after, other=before)
    return [
        ShownGroup(
            f"@@ -{_extent(group.first, group.end)} +{_extent(group.new_first, group.new_end)} @@",
            tuple(_lines(group, old, new)),
        )
        for group in diff_groups(old, new, context)
    ]


def hunk_diff(
    hunk: dict[str, Any], text: str | None, encoding: PositionEncoding = "utf-16"
) -> list[ShownGroup]:
    """Return one proposed hunk as a diff.

    `text` is the buffer's text that the hunk's range refers to; without it the diff shows only the
    hunk's own old and new text.
    """
    place = hunk.get("range")
    if text is None or place is None:
        return line_diff(hunk.get("oldText", ""), hunk.get("newText", ""))
    edit = {"range": place, "newText": hunk.get("newText", "")}
    edits = Buffer("", text, encoding=encoding).check([edit], None)
    return line_diff(text, apply_edits(text, edits))


def _lines(group: DiffGroup, old: Sequence[str], new: Sequence[str]) -> Iterator[ShownLine]:
    at, to = group.first, group.new_first
    for a0, a1, b0, b1 in (*group.runs, (group.end, group.end, group.new_end, group.new_end)):
        while at < a0:
            yield ShownLine(" ", at + 1, to + 1, old[at])
            at, to = at + 1, to + 1
        gone, come = _changed_words(old[a0:a1], new[b0:b1])
        for at, changed in zip(range(a0, a1), gone, strict=True):
            yield ShownLine("-", at + 1, None, old[at], changed)
        for to, changed in zip(range(b0, b1), come, strict=True):
            yield ShownLine("+", None, to + 1, new[to], changed)
        at, to = a1, b1


def _text_lines(text: str, *, other: str) -> list[str]:
    """Return the lines of a text; compared with no text, it has no line after its last end."""
    lines = to_lf(text).split("\n")
    if not text and other:
        return []
    return lines[:-1] if not other and text.endswith("\n") else lines


def _changed_words(
    old: Sequence[str], new: Sequence[str]
) -> tuple[list[Sequence[tuple[int, int]]], list[Sequence[tuple[int, int]]]]:
    """Return the changed parts of each line, if old and new lines match one to one.

    In lines with little in common no part is marked: the whole line has changed.
    """
    gone: list[Sequence[tuple[int, int]]] = [()] * len(old)
    come: list[Sequence[tuple[int, int]]] = [()] * len(new)
    if len(old) != len(new):
        return gone, come
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        words, others = _WORD.findall(before), _WORD.findall(after)
        runs = [run for group in diff_groups(words, others, 0) for run in group.runs]
        left = sum(len(word) for word in words)
        left -= sum(len("".join(words[a0:a1])) for a0, a1, _, _ in runs)
        if left * 3 >= max(len(before), len(after)):
            gone[number] = [_span(words, a0, a1) for a0, a1, _, _ in runs if a1 > a0]
            come[number] = [_span(others, b0, b1) for _, _, b0, b1 in runs if b1 > b0]
    return gone, come


def _span(words: Sequence[str], first: int, end: int) -> tuple[int, int]:
    start = len("".join(words[:first]))
    return start, start + len("".join(words[first:end]))


def _extent(first: int, end: int) -> str:
    return f"{first + 1 if end > first else 0},{end - first}"
