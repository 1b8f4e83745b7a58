"""Tracks which lines of a text a model has seen while the text changes. Pure.

Lines count from 0; a span is `(start, end)`, end exclusive.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kode_sidecar.core.text.line_diff import Run

Span = tuple[int, int]
Spans = tuple[Span, ...]
"""Ascending, disjoint, not touching, none empty."""

Gap = Literal["unread", "staleRead"]


def joined(spans: Iterable[Span]) -> Spans:
    """Return any spans as one set of lines."""
    result: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return tuple(result)


def without(spans: Spans, start: int, end: int) -> Spans:
    """Return the lines of `spans` outside `[start, end)`."""
    cut: list[Span] = []
    for first, last in spans:
        cut += ((first, min(last, start)), (max(first, end), last))
    return joined(cut)


def covers(spans: Spans, start: int, end: int) -> bool:
    """Return whether `spans` have all lines of `[start, end)`; true for an empty span."""
    at = bisect_right(spans, start, key=lambda span: span[0]) - 1
    return start >= end or (at >= 0 and spans[at][1] >= end)


def meets(spans: Spans, start: int, end: int) -> bool:
    """Return whether `spans` have some line of `[start, end)`."""
    at = bisect_right(spans, start, key=lambda span: span[1])
    return at < len(spans) and spans[at][0] < end


def moved(spans: Spans, runs: Sequence[Run]) -> Spans:
    """Return the lines of `spans` that a change kept, at their new positions."""
    kept: list[Span] = []
    at = 0
    for start, end in spans:
        at = bisect_left(runs, start, lo=at, key=lambda run: run[1])
        shift = runs[at - 1][3] - runs[at - 1][1] if at else 0
        for old_start, old_end, _, new_end in runs[at:]:
            if old_start >= end:
                break
            kept.append((start + shift, old_start + shift))
            start, shift = max(start, old_end), new_end - old_end
        kept.append((start + shift, end + shift))
    return joined(kept)


@dataclass(frozen=True)
class SeenLines:
    """The model saw `seen` lines as they are; `stale` ones replaced lines that it had seen."""

    seen: Spans = ()
    stale: Spans = ()

    def show(self, start: int, end: int) -> "SeenLines":
        """Return the lines after the model was shown `[start, end)`."""
        return SeenLines(joined((*self.seen, (start, end))), without(self.stale, start, end))

    def follow(self, runs: Sequence[Run]) -> "SeenLines":
        """Return the lines after somebody else changed the text: changed known lines are stale."""
        known = joined((*self.seen, *self.stale))
        stale = [(b0, b1) for a0, a1, b0, b1 in runs if _reaches(known, a0, a1)]
        return SeenLines(moved(self.seen, runs), joined((*moved(self.stale, runs), *stale)))

    def write(self, runs: Sequence[Run]) -> "SeenLines":
        """Return the lines after the model changed the text: it has seen its new lines."""
        mine = [(b0, b1) for _, _, b0, b1 in runs]
        after = SeenLines(moved(self.seen, runs), moved(self.stale, runs))
        return replace(after, seen=joined((*after.seen, *mine)))

    def gaps(self, start: int, end: int) -> tuple[Gap, ...]:
        """Return why the model should not change `[start, end)`: lines unread or stale.

        For an insertion, one seen line beside it is enough.
        """
        if start == end:
            if meets(self.seen, start - 1, start + 1):
                return ()
            return ("staleRead",) if meets(self.stale, start - 1, start + 1) else ("unread",)
        stale = meets(self.stale, start, end)
        unread = not covers(joined((*self.seen, *self.stale)), start, end)
        return (("unread",) if unread else ()) + (("staleRead",) if stale else ())


def _reaches(spans: Spans, start: int, end: int) -> bool:
    """Return whether `[start, end)` has one of these lines, or an insertion is beside one."""
    return meets(spans, start, end) if start < end else meets(spans, start - 1, start + 1)
