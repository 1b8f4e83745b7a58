"""Replacing lines by their numbers, and finding them again after the text has changed. Pure; LF."""

from collections.abc import Sequence

from kode_sidecar.text.line_diff import Run, diff_lines, split_lines

Lines = tuple[int, int]
"""First and last line, from 1."""


def replace_lines(text: str, lines: Lines, new: str | None) -> str:
    """`text` with these lines replaced by those of `new`, whose one final line end is optional.

    None deletes the lines, "" leaves one empty line. The text keeps its final line end, or its
    lack of one. Raises ValueError for lines that the text does not have.
    """
    old = split_lines(text)
    first, last = lines
    if not 1 <= first <= last <= len(old):
        raise ValueError(f"there are no lines {first}-{last} in a text of {len(old)} lines")
    put = "" if new is None else new.removesuffix("\n") + "\n"
    result = "".join((*old[: first - 1], put, *old[last:]))
    ended = text.endswith("\n")
    return result if ended or last < len(old) else result.removesuffix("\n")


def follow_lines(before: str, after: str, lines: Lines) -> Lines | None:
    """Where these lines of `before` are in `after`; None if they, or a border, were touched.

    A change that could as well have happened elsewhere, as in a run of equal lines, counts as
    done at each of those places.
    """
    old, new = split_lines(before), split_lines(after)
    first, last = lines[0] - 1, lines[1]
    moved = 0
    for run in diff_lines(old, new):
        start, end = _reach(old, new, run)
        if run[1] <= first and (end < first or (end == first and run[0] < run[1])):
            moved = run[3] - run[1]
        elif not (start > last or (start == last and run[0] < run[1])):
            return None
    return lines[0] + moved, lines[1] + moved


def _reach(old: Sequence[str], new: Sequence[str], run: Run) -> tuple[int, int]:
    """The lines of `old` that an insertion or a deletion may slide over, `[start, end)`."""
    a0, a1, b0, b1 = run
    if a0 < a1 and b0 < b1:
        return a0, a1
    lines, first, last = (old, a0, a1) if a0 < a1 else (new, b0, b1)
    up = down = 0
    while first - up > 0 and lines[first - up - 1] == lines[last - up - 1]:
        up += 1
    while last + down < len(lines) and lines[last + down] == lines[first + down]:
        down += 1
    return a0 - up, a1 + down
