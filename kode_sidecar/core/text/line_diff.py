"""The difference of two texts, line by line. Pure and without dependencies.

Trim what both ends share → split at lines that occur once on both sides (patience diff), each with
all equal lines below it → Myers' O(ND) on the lines both sides know → beyond a cap, one run.
"""

import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import lt

MAX_DISTANCE = 1000
"""Changed lines between two anchors beyond which Myers gives up (about 0.2 s of work)."""

LONG_LINES = 5_000
"""From this many lines on, two texts are first compared only near their differences."""
_NEAR_LINES, _SOLID_LINES = 128, 32
"""The size of a compared window, and how many lines must agree at its end to trust it."""

_PART_CHARS = 500_000
"""How much of a text is split at once, so that other threads can run in between."""

Run = tuple[int, int, int, int]
"""`(a0, a1, b0, b1)`: lines `a0..a1` of the old text became lines `b0..b1` of the new one."""

Pair = tuple[int, int]
Block = tuple[int, int, int]
"""`(i, j, n)`: `n` lines from `i` in the old text are equal to those from `j` in the new one."""
Lines = list[str]


@dataclass(frozen=True)
class DiffGroup:
    """Runs that are shown together, with the lines around them.

    These are `first..end` of the old text and `new_first..new_end` of the new one.
    """

    runs: Sequence[Run]
    first: int
    end: int
    new_first: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """Return the lines of `text` with their ends: only `\\n`, `\\r\\n`, `\\r` end one (LSP 3.17).

    Joined they are `text` again; an empty text has no line.
    """
    lines: list[str] = []
    at = 0
    while len(text) - at > _PART_CHARS:
        end = text.find("\n", at + _PART_CHARS) + 1 or len(text)
        lines += io.StringIO(text[at:end], newline="")
        at = end
    lines += io.StringIO(text[at:], newline="")
    return lines


def diff_lines(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return the runs of changed lines, ascending, with at least one equal line between two runs.

    Replacing each run's old lines by its new ones turns `old` into `new`.
    """
    a, b = list(old), list(new)
    return _gaps(_matches(a, b), len(a), len(b))


def unified_diff(
    old: Sequence[str],
    new: Sequence[str],
    path: str,
    *,
    runs: Sequence[Run] | None = None,
    above: int = 0,
) -> str:
    """Return a unified diff for people and models; the empty string when nothing changed.

    Lines have their ends; a missing last line end is marked as by `diff`. Given `runs` of changed
    lines save the comparison. `above` is the number of lines before both texts.
    """
    body = unified_hunks(old, new, _shown, runs=runs, above=above)
    return f"--- a/{path}\n+++ b/{path}\n{body}" if body else ""


def unified_hunks(
    old: Sequence[str],
    new: Sequence[str],
    shown: Callable[[str, str], str],
    *,
    context: int = 3,
    runs: Sequence[Run] | None = None,
    above: int = 0,
) -> str:
    """Return the hunks of a unified diff; `shown(mark, line)` writes a line with its end."""
    out: list[str] = []
    for group in diff_groups(old, new, context, runs):
        places = (
            _extent(group.first + above, group.end + above),
            _extent(group.new_first + above, group.new_end + above),
        )
        out.append(f"@@ -{places[0]} +{places[1]} @@\n")
        at = group.first
        for r0, r1, n0, n1 in group.runs:
            out += (shown(" ", line) for line in old[at:r0])
            out += (shown("-", line) for line in old[r0:r1])
            out += (shown("+", line) for line in new[n0:n1])
            at = r1
        out += (shown(" ", line) for line in old[at : group.end])
    return "".join(out)


def diff_groups(
    old: Sequence[str], new: Sequence[str], context: int, known: Sequence[Run] | None = None
) -> Iterator[DiffGroup]:
    """Yield the runs of `diff_lines`, or those `known`, together where their surroundings meet."""
    groups: list[list[Run]] = []
    for run in diff_lines(old, new) if known is None else known:
        if groups and run[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(run)
        else:
            groups.append([run])
    for runs in groups:
        (a0, _, b0, _), (_, a1, _, b1) = runs[0], runs[-1]
        before = min(context, a0, b0)
        after = min(context, len(old) - a1, len(new) - b1)
        yield DiffGroup(tuple(runs), a0 - before, a1 + after, b0 - before, b1 + after)


def _matches(a: Lines, b: Lines) -> list[Block]:
    """Blocks of equal lines, ascending and disjoint on both sides: an alignment of `a` and `b`."""
    head = _common_prefix(a, 0, len(a), b, 0, len(b))
    tail = _common_suffix(a, b, head)
    a_end, b_end = len(a) - tail, len(b) - tail
    if min(a_end, b_end) - head > LONG_LINES:
        near = _near(a, b, (head, a_end), (head, b_end))
        if near is not None:
            return [(0, 0, head), *near, (a_end, b_end, tail)]
    blocks = [(0, 0, head)]
    at_a = at_b = head
    in_a, in_b = _anchors(a[head:a_end], b[head:b_end])
    at = 0
    while at < len(in_a):
        i, j = in_a[at] + head, in_b[at] + head
        if at_a < i and at_b < j:
            blocks += _between(a, b, (at_a, i), (at_b, j))
        size = _common_prefix(a, i, a_end, b, j, b_end)
        blocks.append((i, j, size))
        at_a, at_b = i + size, j + size
        # Anchors inside the block belong to it: they occur once on both sides.
        at = bisect_left(in_a, at_a - head, lo=at + 1)
    if at_a < a_end and at_b < b_end:
        blocks += _between(a, b, (at_a, a_end), (at_b, b_end))
    blocks.append((a_end, b_end, tail))
    return blocks


def _near(a: Lines, b: Lines, a_span: Pair, b_span: Pair) -> list[Block] | None:
    """An alignment of long texts that differ here and there; None where they differ by more."""
    (i, a_end), (j, b_end) = a_span, b_span
    blocks: list[Block] = []
    while i < a_end and j < b_end:
        whole = max(a_end - i, b_end - j) <= _NEAR_LINES
        left, right = a[i : min(i + _NEAR_LINES, a_end)], b[j : min(j + _NEAR_LINES, b_end)]
        found = [block for block in _matches(left, right) if block[2]]
        while not whole and found and found[-1][2] < _SOLID_LINES:
            found.pop()
        if not found and not whole:
            return None
        blocks += ((i + x, j + y, size) for x, y, size in found)
        if whole:
            break
        x, y, size = blocks[-1]
        size = _common_prefix(a, x, a_end, b, y, b_end)
        blocks[-1] = (x, y, size)
        i, j = x + size, y + size
    return blocks


def _gaps(blocks: Sequence[Block], a_len: int, b_len: int) -> list[Run]:
    """Return what an alignment leaves out, as runs."""
    runs: list[Run] = []
    i = j = 0
    for x, y, size in [*blocks, (a_len, b_len, 0)]:
        if x > i or y > j:
            runs.append((i, x, j, y))
        i, j = x + size, y + size
    return runs


def _common_prefix(a: Lines, i: int, a_end: int, b: Lines, j: int, b_end: int) -> int:
    """Return how many lines from `i` and `j` on are equal."""
    return longest(
        lambda low, high: a[i + low : i + high] == b[j + low : j + high], min(a_end - i, b_end - j)
    )


def _common_suffix(a: Lines, b: Lines, head: int) -> int:
    """Return how many lines at the end are equal, the first `head` left out."""
    a_len, b_len = len(a), len(b)
    return longest(
        lambda low, high: a[a_len - high : a_len - low] == b[b_len - high : b_len - low],
        min(a_len, b_len) - head,
    )


def longest(equal: Callable[[int, int], bool], room: int) -> int:
    """The largest `n` up to `room` with `equal(0, n)`: ever longer slices, then bisection."""
    low, step = 0, 8
    high = min(step, room)
    while low < high and equal(low, high):
        low, step = high, 2 * step
        high = min(low + step, room)
    while low < high:
        middle = (low + high + 1) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _anchors(a: Lines, b: Lines) -> tuple[Sequence[int], Sequence[int]]:
    """Return where lines stand that occur once on both sides, in an order both sides agree on."""
    shared = _singles(a) & _singles(b)
    at_b = dict(zip(b, range(len(b)), strict=True))
    in_a = [i for i, line in enumerate(a) if line in shared]
    in_b = [at_b[a[i]] for i in in_a]
    if all(map(lt, in_b, in_b[1:])):
        return in_a, in_b
    rising = _longest_rising(in_b)
    return [in_a[k] for k in rising], [in_b[k] for k in rising]


def _singles(lines: Lines) -> set[str]:
    return {line for line, count in Counter(lines).items() if count == 1}


def _longest_rising(places: Sequence[int]) -> list[int]:
    """Return the indexes of a longest subsequence that rises (patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    back: list[int] = []
    for k, place in enumerate(places):
        pile = bisect_left(tops, place)
        back.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(k)
        else:
            tops[pile], piles[pile] = place, k
    chain: list[int] = []
    k = piles[-1] if piles else -1
    while k >= 0:
        chain.append(k)
        k = back[k]
    chain.reverse()
    return chain


def _between(a: Lines, b: Lines, a_span: Pair, b_span: Pair) -> list[Block]:
    """An alignment between two anchors. Lines only one side knows cannot match: drop them."""
    shared = set(a[slice(*a_span)]) & set(b[slice(*b_span)])
    if not shared:
        return []
    left = [i for i in range(*a_span) if a[i] in shared]
    right = [j for j in range(*b_span) if b[j] in shared]
    ids = {line: number for number, line in enumerate(shared)}
    inner = _myers([ids[a[i]] for i in left], [ids[b[j]] for j in right])
    return [(left[x], right[y], 1) for x, y in inner]


def _myers(a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    """Return a shortest edit script (Myers 1986), as the pairs it keeps; none beyond the cap."""
    a_len, b_len = len(a), len(b)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    for distance in range(min(a_len + b_len, MAX_DISTANCE) + 1):
        reached: dict[int, int] = {}
        trace.append(reached)
        # Diagonals that have left the grid cannot end it.
        low = -distance + 2 * max(0, distance - b_len)
        high = distance - 2 * max(0, distance - a_len)
        for k in range(low, high + 1, 2):
            down = furthest.get(k + 1, -1)
            right = furthest.get(k - 1, -2) + 1
            x = max(down, right)
            y = x - k
            while x < a_len and y < b_len and a[x] == b[y]:
                x += 1
                y += 1
            reached[k] = x
            if x >= a_len and y >= b_len:
                return _walk_back(trace, a_len, b_len)
        furthest = reached
    return []


def _walk_back(trace: Sequence[dict[int, int]], x: int, y: int) -> list[Pair]:
    """Return the pairs on the path that `trace` found, ascending."""
    pairs: list[Pair] = []
    for distance in range(len(trace) - 1, 0, -1):
        before = trace[distance - 1]
        k = x - y
        down, right = before.get(k + 1, -1), before.get(k - 1, -2) + 1
        start = max(down, right)
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if down >= right:
            y -= 1
        else:
            x -= 1
    while x > 0 and y > 0:
        x, y = x - 1, y - 1
        pairs.append((x, y))
    pairs.reverse()
    return pairs


def _extent(start: int, end: int) -> str:
    """Return a hunk's place as `diff -u` writes it: 1-based; an empty one names the line before."""
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1 if count else start},{count}"


def _shown(mark: str, line: str) -> str:
    text = line.removesuffix("\n").removesuffix("\r")
    if line.endswith(("\n", "\r")):
        return f"{mark}{text}\n"
    return f"{mark}{text}\n\\ No newline at end of file\n"
