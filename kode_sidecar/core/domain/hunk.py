"""Pending hunks: spans that follow changes of the editor's text, and are joined with new edits.

Pure.

A hunk replaces whole lines. The untouched hunks of one text are disjoint and ascending.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.core.text.text_edit import (
    Change,
    Edit,
    apply_edits,
    between_lines,
    refine,
    splits_crlf,
    to_lf,
    with_ends_of,
    with_eol,
)
from kode_sidecar.core.text.text_lines import line_content

_EOLS = ("\n", "\r")


@dataclass(frozen=True)
class Hunk:
    """A pending edit of one run of lines: `[start, end)`, in code points of the editor's text.

    `touched`: somebody else has changed the span or its border, so it cannot be applied.
    `replaces` names the pending hunks that a newly composed hunk, still without id, replaces.
    """

    id: str
    start: int
    end: int
    old_text: str
    new_text: str
    touched: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def edit(self) -> Edit:
        """The edit that accepting it makes."""
        return Edit(self.start, self.end, self.new_text)


@dataclass(frozen=True)
class Composition:
    """The effect of a new overlay text on the pending hunks; hunks in neither part stay.

    `withdrawn` are pending hunks of which nothing is left.
    """

    drafts: tuple[Hunk, ...]
    withdrawn: tuple[str, ...]


def overlay_text(text: str, hunks: Sequence[Hunk]) -> str:
    """Return `text` as it will be with all `hunks` accepted."""
    return apply_edits(text, [hunk.edit for hunk in hunks])


def follow_all(
    hunks: Sequence[Hunk], changes: Sequence[Change], before: str, after: str
) -> list[Hunk]:
    """Return `hunks` after `changes`, ascending and disjoint, led from `before` to `after`.

    A change of several lines that touches a hunk is compared line by line. If the whole text was
    replaced by one with other line ends (some editors use only LF), the hunks get those line ends:
    else every line would count as changed.
    """
    if [(change.start, change.end) for change in changes] == [(0, len(before))]:
        hunks, before = _ending_as(after, hunks, before)
        changes = [Edit(0, len(before), after)]
    spans = Spans(hunks)
    fine: list[Change] = []
    for change in changes:
        several = "\n" in change.text or "\n" in before[change.start : change.end]
        fine += refine(before, change) if several and spans.meet(change) else (change,)
    if any(later.start < earlier.end for earlier, later in pairwise(fine)):  # two in one line
        start, end = changes[0].start, changes[-1].end
        fine[:] = refine(before, Edit(start, end, after[start : len(after) - len(before) + end]))
    shifts = Shifts(fine)
    return [shifts.follow(hunk, after) for hunk in hunks]


def _ending_as(after: str, hunks: Sequence[Hunk], before: str) -> tuple[Sequence[Hunk], str]:
    """Return the hunks and their text `before` with the line end of `after`, if it has but one."""
    if not hunks or "\n" not in after:
        return hunks, before
    eol = "\r\n" if "\r\n" in after else "\n"
    ended = with_eol(before, eol)
    if ended == before or with_eol(after, eol) != after:
        return hunks, before
    places = sorted({at for hunk in hunks for at in (hunk.start, hunk.end)})
    ends = [at + splits_crlf(before, at) for at in places]
    sizes = (len(with_eol(before[a:b], eol)) for a, b in pairwise([0, *ends]))
    moved = dict(zip(places, accumulate(sizes), strict=True))
    return [
        replace(
            hunk,
            start=moved[hunk.start],
            end=moved[hunk.end],
            old_text=with_eol(hunk.old_text, eol),
            new_text=with_eol(hunk.new_text, eol),
        )
        for hunk in hunks
    ], ended


class Spans:
    """The spans of hunks in one text; finds which changes touch any of them."""

    def __init__(self, hunks: Sequence[Hunk]) -> None:
        places = sorted((hunk.start, hunk.end) for hunk in hunks)
        self._starts = [start for start, _ in places]
        self._ends = list(accumulate((end for _, end in places), max))

    def meet(self, change: Change) -> bool:
        """Return whether a change overlaps or adjoins a span."""
        at = bisect_right(self._starts, change.end) - 1
        return at >= 0 and self._ends[at] >= change.start


class Shifts:
    """Maps positions of a text past changes of it, which are ascending and disjoint."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = changes
        self._starts = [change.start for change in changes]
        self._ends = [change.end for change in changes]
        sizes = (len(change.text) - (change.end - change.start) for change in changes)
        self._growth = list(accumulate(sizes, initial=0))

    def touching(self, start: int, end: int) -> range:
        """Return the changes that overlap `[start, end)` or insert text at its border."""
        first = bisect_left(self._ends, start)
        while first < len(self._ends) and self._starts[first] < self._ends[first] == start:
            first += 1
        last = max(first, bisect_left(self._starts, end))
        while last < len(self._starts) and self._starts[last] == self._ends[last] == end:
            last += 1
        return range(first, last)

    def move(self, start: int, end: int) -> tuple[int, int]:
        """Return a span after the changes; text inserted in it or at its border belongs to it."""
        touching = self.touching(start, end)
        if touching:
            start = min(start, self._starts[touching[0]])
            end = max(end, self._ends[touching[-1]])
        return start + self._growth[touching.start], end + self._growth[touching.stop]

    def start_of(self, at: int) -> int:
        """Return where the text of change `at` begins after all changes."""
        return self._starts[at] + self._growth[at]

    def follow(self, hunk: Hunk, text: str) -> Hunk:
        """Return `hunk` after the changes, which led to `text`.

        Lines inserted right above or below it do not touch it, nor does typing in the line below.
        Typing that was undone leaves no trace. A hunk whose span no longer begins and ends between
        lines counts as touched.
        """
        touching = self._inside(hunk)
        if hunk.touched and hunk.start == hunk.end and hunk.old_text:
            back = self._come_back(hunk, text)
            if back is not None:
                return back
        if not touching:
            at = touching.start
            start, end = hunk.start + self._growth[at], hunk.end + self._growth[at]
            apart = between_lines(text, start) and between_lines(text, end)
            return replace(hunk, start=start, end=end, touched=hunk.touched or not apart)
        start = min(hunk.start, self._starts[touching[0]]) + self._growth[touching.start]
        end = max(hunk.end, self._ends[touching[-1]]) + self._growth[touching.stop]
        place = _place_of(hunk, text, start, end)
        if place is None and hunk.touched and not hunk.old_text and start == end:
            within = all(hunk.start <= self._starts[at] for at in touching)
            if within and self._ends[touching[-1]] <= hunk.end:
                place = start  # the lines inserted in its place are gone again
        if place is not None:
            end = place + len(hunk.old_text)
            return replace(hunk, start=place, end=end, touched=False)
        return _ended_anew(hunk, text, start) or replace(hunk, start=start, end=end, touched=True)

    def _come_back(self, hunk: Hunk, text: str) -> Hunk | None:
        """Return a hunk whose removed lines are back in their place; None if they are not."""
        touching = self.touching(hunk.start, hunk.end)
        if not touching:
            return None
        start, end = self.move(hunk.start, hunk.end)
        place = _place_of(hunk, text, start, end)
        if place is None:
            return None
        return replace(hunk, start=place, end=place + len(hunk.old_text), touched=False)

    def _inside(self, hunk: Hunk) -> range:
        """Return the changes that touch a hunk's own lines, or the exact place of an insertion.

        If there are none, `start` is the number of changes before it.
        """
        touching = self.touching(hunk.start, hunk.end)
        first, last = touching.start, touching.stop
        empty = hunk.start == hunk.end
        ended = empty or hunk.old_text.endswith(_EOLS)
        while first < last and self._ends[first] == hunk.start and not empty:
            if not self.changes[first].text.endswith(_EOLS):
                break
            first += 1
        while first < last and self._starts[last - 1] == hunk.end and ended:
            if empty and not hunk.touched and self.changes[last - 1].text.endswith(_EOLS):
                break
            last -= 1
        return range(first, last)


def _place_of(hunk: Hunk, text: str, start: int, end: int) -> int | None:
    """Return where in `[start, end)` the lines of a hunk are unchanged; None if nowhere."""
    size = len(hunk.old_text)
    if not 0 < size <= end - start:
        return None
    for at in (start, end - size):
        apart = between_lines(text, at) and between_lines(text, at + size)
        if apart and text.startswith(hunk.old_text, at):
            return at
    return None


def _ended_anew(hunk: Hunk, text: str, start: int) -> Hunk | None:
    """Return a hunk whose last line gained a line end (lines were added below it) or lost its own.

    None for any other change.
    """
    bare = line_content(hunk.old_text)
    for eol in ("\r\n", "\n", "\r", ""):
        old = bare + eol
        end = start + len(old)
        if not bare or old == hunk.old_text or not text.startswith(old, start):
            continue
        if between_lines(text, start) and between_lines(text, end):
            new = line_content(hunk.new_text) + eol if hunk.new_text else ""
            return Hunk(hunk.id, start, end, old, new)
    return None


def compose(
    text: str, eol: str, hunks: Sequence[Hunk], overlay: str, *, by_lines: bool = True
) -> Composition:
    """Return the hunks that turn `text` into `overlay`, given those already pending.

    `hunks` are the untouched pending ones of this overlay, ascending; `overlay` has LF line
    ends. A run of changed lines that overlaps or adjoins a pending hunk is joined with it into
    drafts that replace it. Unchanged and replaced lines keep their line ends, new ones get `eol`;
    the last line of the file keeps its old one. Unless `by_lines`, all that changes is one run.
    """
    base = split_lines(text)
    lf = split_lines(to_lf(text)) if "\r" in text else base
    offsets = list(accumulate(map(len, base), initial=0))
    lines, pieces = _overlay_lines(lf, offsets, hunks)
    new = split_lines(overlay)
    drafts: list[Hunk] = []
    withdrawn: list[str] = []
    changes = diff_lines if by_lines else _one_change
    for window in _windows(changes(lines, new), pieces):
        fresh_runs = changes(lf[slice(*window.base)], new[slice(*window.new)])
        made = _drafts(base, offsets, window, new, eol, fresh_runs)
        kept = {hunk.id for hunk in window.hunks if _draft_of(hunk) in made}
        gone = tuple(hunk.id for hunk in window.hunks if hunk.id not in kept)
        fresh = [draft for draft in made if draft not in map(_draft_of, window.hunks)]
        if fresh:
            fresh[0] = replace(fresh[0], replaces=gone)
            drafts += fresh
        else:
            withdrawn += gone
    return Composition(tuple(drafts), tuple(withdrawn))


@dataclass(frozen=True)
class _Piece:
    """Lines `start..end` of the overlay, by which a hunk replaces `base_lines` lines."""

    start: int
    end: int
    base_lines: int
    hunk: Hunk


@dataclass(frozen=True)
class _Window:
    """Adjacent changes and hunks: the lines they cover in the base and in the new overlay."""

    base: tuple[int, int]
    new: tuple[int, int]
    hunks: tuple[Hunk, ...]


def _overlay_lines(
    lf: Sequence[str], offsets: Sequence[int], hunks: Sequence[Hunk]
) -> tuple[list[str], list[_Piece]]:
    """Return the overlay's lines and the hunks among them; `lf` are the text's, with LF ends."""
    lines: list[str] = []
    pieces: list[_Piece] = []
    at = 0
    for hunk in hunks:
        first, last = bisect_left(offsets, hunk.start), bisect_left(offsets, hunk.end)
        lines += lf[at:first]
        start = len(lines)
        lines += split_lines(to_lf(hunk.new_text))
        pieces.append(_Piece(start, len(lines), last - first, hunk))
        at = last
    lines += lf[at:]
    return lines, pieces


def _windows(runs: Sequence[Run], pieces: Sequence[_Piece]) -> Iterator[_Window]:
    """Yield runs of changed lines, each joined with the pieces it overlaps or adjoins."""
    marked = [(run[0], run[1], 0, k) for k, run in enumerate(runs)]
    marked += [(piece.start, piece.end, 1, k) for k, piece in enumerate(pieces)]
    marked.sort()
    to_base = to_new = at = 0  # overlay line + shift = line of the base, of the new overlay
    while at < len(marked):
        first, last, from_base, from_new = marked[at][0], marked[at][1], to_base, to_new
        hunks: list[Hunk] = []
        changed = False
        while at < len(marked) and marked[at][0] <= last:
            _, end, is_piece, k = marked[at]
            if is_piece:
                to_base += pieces[k].base_lines - (pieces[k].end - pieces[k].start)
                hunks.append(pieces[k].hunk)
            else:
                a0, a1, b0, b1 = runs[k]
                to_new += (b1 - b0) - (a1 - a0)
                changed = True
            last = max(last, end)
            at += 1
        if changed:
            base = (first + from_base, last + to_base)
            yield _Window(base, (first + from_new, last + to_new), tuple(hunks))


def _one_change(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return all that differs as one run."""
    runs = diff_lines(old, new)
    return [(runs[0][0], runs[-1][1], runs[0][2], runs[-1][3])] if runs else []


def _drafts(
    base: Sequence[str],
    offsets: Sequence[int],
    window: _Window,
    new: Sequence[str],
    eol: str,
    runs: Sequence[Run],
) -> list[Hunk]:
    """Return one draft per run of lines of a window that differ from the base."""
    first = window.base[0]
    new_lines = new[slice(*window.new)]
    result: list[Hunk] = []
    for a0, a1, b0, b1 in runs:
        start, end = offsets[first + a0], offsets[first + a1]
        replaced = base[first + a0 : first + a1]
        fresh = with_ends_of("".join(new_lines[b0:b1]), replaced, eol)
        if end == offsets[-1] and base and fresh:
            fresh = _with_final_eol(fresh, base[-1])
        result.append(Hunk("", start, end, "".join(base[first + a0 : first + a1]), fresh))
    return result


def _with_final_eol(text: str, last_line: str) -> str:
    """Return `text` with the final line end that the file ends with."""
    final = last_line.removeprefix(line_content(last_line))
    return line_content(text) + final if final and text.endswith(_EOLS) else text


def _draft_of(hunk: Hunk) -> Hunk:
    """Return a pending hunk as a new draft of `compose`."""
    return Hunk("", hunk.start, hunk.end, hunk.old_text, hunk.new_text)
