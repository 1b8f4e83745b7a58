"""Line diffs for reading: what changed, with line numbers and a little around it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kode_sidecar.client.buffer import Buffer
from kode_sidecar.text.line_diff import DiffGroup, diff_groups
from kode_sidecar.text.text_edit import apply_edits, to_lf
from kode_sidecar.text.text_lines import PositionEncoding


@dataclass(frozen=True)
class ShownLine:
    """One line of a unified diff; numbers start at 1 and are None where the line is not."""

    kind: Literal[" ", "-", "+"]
    old_number: int | None
    new_number: int | None
    text: str


@dataclass(frozen=True)
class ShownGroup:
    """Lines that stand together; `header` is that of a unified diff."""

    header: str
    lines: Sequence[ShownLine]


def line_diff(before: str, after: str, context: int = 2) -> list[ShownGroup]:
    """Return the changed lines of a text in groups, each with `context` lines around it.

    Line ends do not count: a change of nothing but line ends is no group.
    """
    old, new = to_lf(before).split("\n"), to_lf(after).split("\n")
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

    `text` is the buffer's text the hunk's range belongs to; without it the hunk's own old and
    new text stand alone.
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
        for at in range(a0, a1):
            yield ShownLine("-", at + 1, None, old[at])
        for to in range(b0, b1):
            yield ShownLine("+", None, to + 1, new[to])
        at, to = a1, b1


def _extent(first: int, end: int) -> str:
    return f"{first + 1 if end > first else 0},{end - first}"
