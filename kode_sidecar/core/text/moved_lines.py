"""Where lines of an old text are in a new one. It compares the texts, so it holds no state."""

from collections.abc import Callable
from functools import cache

from kode_sidecar.core.text.line_diff import diff_lines, split_lines

Span = tuple[int, int]
"""First and last line, from 1, inclusive."""


def lines_moved(old: str, new: str) -> Callable[[Span], Span | None]:
    """Return what maps lines of `old` to those of `new`; None for lines of which none is left."""

    @cache
    def places() -> dict[int, int]:
        a, b = split_lines(old), split_lines(new)
        moved: dict[int, int] = {}
        a_at = b_at = 0
        for a0, a1, b0, b1 in [*diff_lines(a, b), (len(a), len(a), len(b), len(b))]:
            moved.update(zip(range(a_at, a0), range(b_at, b0), strict=True))
            a_at, b_at = a1, b1
        return moved

    def move(span: Span) -> Span | None:
        if old == new:
            return span
        kept = [places()[line] for line in range(span[0] - 1, span[1]) if line in places()]
        return (kept[0] + 1, kept[-1] + 1) if kept else None

    return move
