"""Merges two changes of the same lines, as far as they do not conflict. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.core.text.text_edit import to_lf


@dataclass(frozen=True)
class Merge:
    """`text` is `ours` with what fits of `theirs`; `left_out` of their changes do not."""

    text: str
    done: int
    left_out: int


def merge_lines(base: str, ours: str, theirs: str) -> Merge:
    """Merge by lines: where both changed the same lines, ours stay as they are.

    Where both put lines in one place, ours come first. Line ends make no difference.
    """
    lines, mine, other = split_lines(base), split_lines(ours), split_lines(theirs)
    plain = [to_lf(line) for line in lines]
    own = _single(diff_lines(plain, [to_lf(line) for line in mine]))
    result: list[str] = []
    at = done = left_out = 0
    ends = [run[1] for run in own]
    growth = list(accumulate(((b1 - b0) - (a1 - a0) for a0, a1, b0, b1 in own), initial=0))
    for a0, a1, b0, b1 in _single(diff_lines(plain, [to_lf(line) for line in other])):
        if any(_same(run, (a0, a1, b0, b1), mine, other) for run in own):
            continue  # both did it
        if any(_clash(run, (a0, a1)) for run in own):
            left_out += 1
            continue
        start = a0 + growth[bisect_right(ends, a0)]
        result += mine[at:start]
        result += other[b0:b1]
        at = start + (a1 - a0)
        done += 1
    result += mine[at:]
    return Merge("".join(result), done, left_out)


def _single(runs: Sequence[Run]) -> list[Run]:
    """Return the runs; those with as many lines before as after are split line by line."""
    result: list[Run] = []
    for a0, a1, b0, b1 in runs:
        if a1 - a0 == b1 - b0:
            result += ((a0 + k, a0 + k + 1, b0 + k, b0 + k + 1) for k in range(a1 - a0))
        else:
            result.append((a0, a1, b0, b1))
    return result


def _clash(run: Run, theirs: tuple[int, int]) -> bool:
    """Return whether both change one line, or one puts lines into what the other changes."""
    (start, end, _, _), (a0, a1) = run, theirs
    if start == end == a0 == a1:
        return False
    if start == end or a0 == a1:
        place, (low, high) = (start, theirs) if start == end else (a0, (start, end))
        return low < place < high
    return start < a1 and a0 < end


def _same(run: Run, their: Run, mine: Sequence[str], other: Sequence[str]) -> bool:
    a0, a1, b0, b1 = run
    put = [to_lf(line) for line in mine[b0:b1]]
    return (a0, a1) == their[:2] and put == [to_lf(line) for line in other[their[2] : their[3]]]
