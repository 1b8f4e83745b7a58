"""What a text shows of hunks that an earlier process may have sent.

Proof is that it becomes the base of a hunk again once all that stands there of the hunks of that
base is taken back.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from kode_sidecar.core.domain.change_set import ProposedHunk, TextBase
from kode_sidecar.core.domain.hunk_state import facts
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import between_lines, to_lf, with_eol
from kode_sidecar.infrastructure.workspace.document import Document, text_rev

_TELLING = 12
"""So many characters hardly stand in a text by chance."""

_PREFERENCES: Sequence[Callable[[ProposedHunk], bool]] = (
    lambda _: True,
    lambda one: one.is_done,
    lambda one: len(one.new_text) > len(one.old_text),
)
"""Whether a hunk counts as applied where the text shows both its sides: one that is empty always
shows."""

Lines = Mapping[str, tuple[int, int]]
"""The lines of the hunks that are applied, by their ids."""


class Proof:
    """Looks in one text for hunks of a document, of which `hunks` are all.

    Most hunks of one base ask the same of it: that is found out once.
    """

    def __init__(self, document: Document, hunks: Sequence[ProposedHunk]) -> None:
        self._document = document
        self._hunks = hunks
        self._starts = [*document.line_starts, len(document.text)]
        self._known: dict[str, tuple[Mapping[str, str | None], Lines | None]] = {}

    def place_of(self, hunk: ProposedHunk, *, prove: bool) -> tuple[int, int] | None:
        """Return where the text shows that a hunk was applied.

        Without proof, unless it is to `prove`, the new lines must stand there once and the old ones
        not.
        """
        document, base = self._document, hunk.base
        if base is None or hunk.range is None or base.sha256 == document.rev:
            return None
        lines = self._lines_beside(hunk, base)
        if lines is not None:
            place = lines.get(hunk.id)
            return (self._starts[place[0]], self._starts[place[1]]) if place else None
        if prove:
            return None
        new = with_eol(hunk.put_text, document.eol)
        old = with_eol(hunk.old_text, document.eol)
        places = lines_at(document.text, new) if len(new.strip()) >= _TELLING else []
        if len(places) != 1 or (old and lines_at(document.text, old)):
            return None
        return places[0], places[0] + len(new)

    def _lines_beside(self, hunk: ProposedHunk, base: TextBase) -> Lines | None:
        """Return which hunks of its base are applied, this one and those that may be beside it."""
        if base.sha256 not in self._known:
            likely = self._apart(base)
            puts = {one.id: one.replacement for one in likely}
            self._known[base.sha256] = puts, self._applied(likely, base)
        puts, lines = self._known[base.sha256]
        if hunk.id in puts and puts[hunk.id] == hunk.replacement:
            return lines
        return self._applied(self._apart(base, hunk), base)

    def _apart(self, base: TextBase, wanted: ProposedHunk | None = None) -> list[ProposedHunk]:
        """Return the hunks of a base that may be applied beside each other, in their order.

        Of two that change the same lines only one can be: `wanted`, or else the likelier one.
        """
        mates = [
            wanted if wanted is not None and one.id == wanted.id else one
            for one in self._hunks
            if one.base and one.base.sha256 == base.sha256 and one.state != "superseded"
        ]
        taken: list[tuple[int, int]] = []
        apart: set[str] = set()
        for one in sorted(mates, key=lambda one: -1 if one is wanted else rank(one)):
            lines = lines_of_old(one)
            at = bisect_left(taken, lines)
            if not any(overlap(lines, other) for other in taken[max(at - 1, 0) : at + 1]):
                taken.insert(at, lines)
                apart.add(one.id)
        return [one for one in mates if one.id in apart]

    def _applied(self, mates: Sequence[ProposedHunk], base: TextBase) -> Lines | None:
        """Return which of them are applied, where taking these back leads to the base."""
        tries = (_walk(self._document, mates, base, prefers) for prefers in _PREFERENCES)
        return next((lines for lines in tries if lines is not None), None)


def rank(hunk: ProposedHunk) -> int:
    """Return how unlikely it is that a hunk of that state stands in the text."""
    return facts(hunk.state).rank


def lines_of_old(hunk: ProposedHunk) -> tuple[int, int]:
    """Return the lines of its base that a hunk changes."""
    first = hunk.range.start.line if hunk.range is not None else 0
    return first, first + len(split_lines(to_lf(hunk.old_text)))


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two ranges have something in common, or one is inside the other."""
    return one[0] < other[1] and other[0] < one[1]


def lines_at(text: str, part: str) -> list[int]:
    """Return where `part` stands in `text` as whole lines."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        if between_lines(text, at) and between_lines(text, at + len(part)):
            found.append(at)
        at = text.find(part, at + 1)
    return found


def _walk(
    document: Document,
    mates: Sequence[ProposedHunk],
    base: TextBase,
    prefers_new: Callable[[ProposedHunk], bool],
) -> Lines | None:
    """Return the lines of the hunks that are applied, where taking them back leads to the base."""
    lines = [to_lf(line) for line in document.lines]
    rebuilt: list[str] = []
    applied: dict[str, tuple[int, int]] = {}
    at = base_line = 0
    placed = [(one.range.start.line, one) for one in mates if one.range is not None]
    for first, one in sorted(placed, key=lambda pair: (pair[0], len(pair[1].old_text))):
        gap = first - base_line
        old, new = split_lines(to_lf(one.old_text)), split_lines(to_lf(one.put_text))
        if gap < 0:
            return None
        rebuilt += lines[at : at + gap]
        at += gap
        done = _begins(lines, at, new)
        if done and _begins(lines, at, old):
            done = prefers_new(one)
        if not done and not _begins(lines, at, old):
            return None
        if done:
            applied[one.id] = at, at + len(new)
        at += len(new) if done else len(old)
        rebuilt += old
        base_line = first + len(old)
    rebuilt += lines[at:]
    return applied if text_rev("".join(rebuilt)) == base.sha256 else None


def _begins(lines: Sequence[str], at: int, part: Sequence[str]) -> bool:
    return list(lines[at : at + len(part)]) == list(part)
