"""Pending hunks: spans of the editor's text that follow it, and how new edits join them. Pure.

A hunk replaces whole lines. The untouched hunks of one text are disjoint and ascending.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from kode_sidecar.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.text.text_edit import (
    Change,
    Edit,
    apply_edits,
    between_lines,
    refine,
    shift,
    to_lf,
    with_eol,
)


@dataclass(frozen=True)
class Hunk:
    """A pending edit of one run of lines: `[start, end)`, in code points of the editor's text.

    `touched`: somebody else changed the span or its border since, so it cannot be applied.
    """

    id: str
    start: int
    end: int
    old_text: str
    new_text: str
    touched: bool = False

    @property
    def edit(self) -> Edit:
        """What accepting it does to the text."""
        return Edit(self.start, self.end, self.new_text)


@dataclass(frozen=True)
class Draft:
    """A hunk before it has an id. `replaces` names the pending hunks it takes over."""

    start: int
    end: int
    old_text: str
    new_text: str
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Composition:
    """What a new overlay text means for the hunks: those that neither part names stay.

    `withdrawn` are pending hunks of which nothing is left.
    """

    drafts: tuple[Draft, ...]
    withdrawn: tuple[str, ...]


def overlay_text(text: str, hunks: Sequence[Hunk]) -> str:
    """`text` as it will be with all `hunks` accepted."""
    return apply_edits(text, [hunk.edit for hunk in hunks])


def follow(hunk: Hunk, change: Change, text: str) -> Hunk:
    """`hunk` after `change`, which led to `text`.

    Typing that was taken back leaves no mark where there is old text to compare. A hunk whose
    span no longer begins and ends between lines counts as touched.
    """
    start, end, touched = shift(hunk.start, hunk.end, change)
    if not touched:
        touched = hunk.touched
    elif hunk.old_text:
        touched = text[start:end] != hunk.old_text
    touched = touched or not (between_lines(text, start) and between_lines(text, end))
    return replace(hunk, start=start, end=end, touched=touched)


def follow_all(hunks: Sequence[Hunk], change: Change, before: str, after: str) -> list[Hunk]:
    """`hunks` after `change` led from `before` to `after`.

    A change of several lines that touches a hunk is looked at line by line first.
    """
    changes: Sequence[Change] = (change,)
    several = "\n" in change.text or "\n" in before[change.start : change.end]
    if several and any(shift(hunk.start, hunk.end, change)[2] for hunk in hunks):
        changes = refine(before, change)[::-1]
    result = list(hunks)
    for step in changes:
        last = step is changes[-1]
        before = after if last else apply_edits(before, (step,))
        result = [follow(hunk, step, before) for hunk in result]
    return result


def compose(text: str, eol: str, hunks: Sequence[Hunk], overlay: str) -> Composition:
    """The hunks that turn `text` into `overlay`, given those already pending.

    `hunks` are the untouched pending ones of this overlay, ascending; `overlay` has LF line
    ends. A run of changed lines that overlaps or adjoins a pending hunk is joined with it into
    drafts that replace it. Lines that do not change keep their line ends; new ones get `eol`,
    the last one of the file its old one.
    """
    base = split_lines(text)
    lf = split_lines(to_lf(text)) if "\r" in text else base
    offsets = list(accumulate(map(len, base), initial=0))
    lines, pieces = _overlay_lines(lf, offsets, hunks)
    new = split_lines(overlay)
    drafts: list[Draft] = []
    withdrawn: list[str] = []
    for window in _windows(diff_lines(lines, new), pieces):
        made = _drafts(base, lf, offsets, window, new, eol)
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
    """Lines `start..end` of the overlay, which a hunk puts in place of `base_lines` lines."""

    start: int
    end: int
    base_lines: int
    hunk: Hunk


@dataclass(frozen=True)
class _Window:
    """Neighbouring changes and hunks: the lines they cover in the base and in the new overlay."""

    base: tuple[int, int]
    new: tuple[int, int]
    hunks: tuple[Hunk, ...]


def _overlay_lines(
    lf: Sequence[str], offsets: Sequence[int], hunks: Sequence[Hunk]
) -> tuple[list[str], list[_Piece]]:
    """The overlay's lines, and which of them are hunks; `lf` are the text's, with LF ends."""
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
    """Runs of changed lines, each joined with the pieces it overlaps or adjoins."""
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


def _drafts(
    base: Sequence[str],
    lf: Sequence[str],
    offsets: Sequence[int],
    window: _Window,
    new: Sequence[str],
    eol: str,
) -> list[Draft]:
    """One draft per run of lines that differ between the base and the new overlay."""
    first, last = window.base
    new_lines = new[slice(*window.new)]
    result: list[Draft] = []
    for a0, a1, b0, b1 in diff_lines(lf[first:last], new_lines):
        start, end = offsets[first + a0], offsets[first + a1]
        fresh = with_eol("".join(new_lines[b0:b1]), eol)
        if end == offsets[-1] and base and fresh:
            fresh = _with_final_eol(fresh, eol, base[-1])
        result.append(Draft(start, end, "".join(base[first + a0 : first + a1]), fresh))
    return result


def _with_final_eol(text: str, eol: str, last_line: str) -> str:
    """`text` at the end of a file keeps the line end the file closes with."""
    final = next((end for end in ("\r\n", "\n", "\r") if last_line.endswith(end)), "")
    return text.removesuffix(eol) + final if final and text.endswith(eol) else text


def _draft_of(hunk: Hunk) -> Draft:
    return Draft(hunk.start, hunk.end, hunk.old_text, hunk.new_text)
