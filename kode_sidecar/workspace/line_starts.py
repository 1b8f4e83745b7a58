"""Where the lines of a text begin, kept while keys are typed at many places of a large text."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

MAX_SHIFTS = 256
"""So many shifts are kept before they are worked into the offsets."""


class LineStarts:
    """The offset of each line of `lines`, as far as somebody has asked.

    A change within a line moves all lines below it. That is noted as a shift, once for all of them:
    from line `_from[k]` on, offsets are `_by[k]` more than `_starts` says.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._starts: list[int] = [0] if lines else []
        self._from: list[int] = []
        self._by: list[int] = []

    def of(self, line: int) -> int:
        """Return the offset of one line."""
        if line >= len(self._starts):
            self._know(line + 1)
        at = bisect_right(self._from, line)
        return self._starts[line] + (self._by[at - 1] if at else 0)

    def all(self) -> Sequence[int]:
        """Return those of all lines."""
        self._know(len(self._lines))
        self._settle()
        return self._starts

    def grow(self, line: int, by: int) -> None:
        """One line became longer by so much; the lines below it are the same."""
        at = bisect_left(self._from, line + 1)
        if self._from[at : at + 1] != [line + 1]:
            self._from.insert(at, line + 1)
            self._by.insert(at, self._by[at - 1] if at else 0)
        self._by[at:] = [shift + by for shift in self._by[at:]]
        if len(self._from) > MAX_SHIFTS:
            self._settle()

    def forget(self, line: int) -> None:
        """Nothing is known of this line and those below any more."""
        del self._starts[line:]
        at = bisect_left(self._from, line)
        del self._from[at:], self._by[at:]

    def _settle(self) -> None:
        """Work the shifts into the offsets."""
        ends = [*self._from[1:], len(self._starts)]
        for start, end, by in zip(self._from, ends, self._by, strict=False):
            self._starts[start:end] = [offset + by for offset in self._starts[start:end]]
        self._from, self._by = [], []

    def _know(self, count: int) -> None:
        """Extend what is known to the first `count` lines."""
        self._settle()
        known = len(self._starts)
        if known < count:
            base = self._starts.pop() if known else 0
            lengths = map(len, self._lines[max(known - 1, 0) : count - 1])
            self._starts.extend(accumulate(lengths, initial=base))
