"""Did the editor do what it was asked? Found out from the text it reports, never from its answer.

Editors drop edits and answer `applied: true`; a `didChange` may hold our edit and the user's
keys, told in any order and any size. So the regions of an edit that was sent are followed
through every change, and each is compared with what it should become, whatever the line ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.domain.line_diff import diff_lines, split_lines
from kode_sidecar.domain.text_edit import (
    Change,
    Edit,
    apply_edits,
    minimal_edits,
    refine,
    shift,
    to_lf,
)

Verdict = Literal["applied", "unchanged", "diverged"]


@dataclass
class _Part:
    """One whole-line edit that was sent, and the region of the text in which it shows.

    `[start, end)` held `old` (LF) before and will hold `new` (LF). `head` and `tail` are what of
    the region lies outside the edit: at the end of a file the editor is told of one line earlier.
    `first` is the edit in the text it was made for.
    """

    ids: tuple[str, ...]
    start: int
    end: int
    head: int
    tail: int
    text: str
    old: str
    new: str
    first: Edit

    @property
    def edit(self) -> Edit:
        return Edit(self.start + self.head, self.end - self.tail, self.text)

    @property
    def inserts(self) -> bool:
        """Whether it takes nothing away."""
        return self.start + self.head == self.end - self.tail

    def move(self, change: Change) -> None:
        self.start, self.end, _ = shift(self.start, self.end, change)

    def held_in(self, text: str) -> str:
        return to_lf(text[self.start : self.end])


class SentEdit:
    """An edit of one document that was sent to the editor and is not verified yet.

    `edits` are whole-line edits of `text` by hunk id. What `verified` names is known to be done.
    """

    def __init__(self, text: str, edits: Mapping[str, Edit]) -> None:
        self._before = text
        self._edits = sorted(edits.values(), key=lambda edit: (edit.start, edit.end))
        self._parts = _parts(text, edits)
        self._done: list[_Part] = []
        self.verified: set[str] = set()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self._parts

    def follow(self, before: str, change: Change) -> Sequence[Change]:
        """A change of `before`, as the smaller ones it stands for; apply them one after the other.

        Where it does just what was asked, these are our own edits: an editor may tell an
        inserted line as one that begins in the middle of its neighbour.
        """
        for parts in (self._parts, *([part] for part in self._parts)):
            if parts and _does(before, change, parts):
                steps: Sequence[Change] = [part.edit for part in reversed(parts)]
                self._settle(parts)
                break
        else:
            steps = self._steps(before, change)
        for step in steps:
            before = apply_edits(before, (step,))
            for part in self._parts:
                part.move(step)
            self._settle([part for part in self._parts if part.held_in(before) == part.new])
        return steps

    def verdicts(self, text: str) -> dict[str, Verdict]:
        """What became of each hunk, seen in the present text."""
        result: dict[str, Verdict] = dict.fromkeys(self.verified, "applied")
        for part in self._parts:
            result |= dict.fromkeys(part.ids, self._verdict(part, text))
        return result

    def found(self, hunk_id: str, text: str) -> str:
        """What stands in `text` where the hunk should be, LF line ends."""
        part = next((part for part in self._parts if hunk_id in part.ids), None)
        return part.held_in(text) if part else ""

    def _verdict(self, part: _Part, text: str) -> Verdict:
        if part.held_in(text) != part.old:
            return "applied" if self._shows(part, text) else "diverged"
        return "applied" if part.inserts and self._appeared(part, text) else "unchanged"

    def _shows(self, part: _Part, text: str) -> bool:
        """Whether `text`, compared as a whole with what it should be, has just this part right.

        For changes too large to follow a region through, such as all of it taken and put back.
        """
        at = sum(edit.end <= part.first.start for edit in self._edits)
        above = apply_edits(self._before[: part.first.start], self._edits[:at])
        start = to_lf(above).count("\n")
        end = start + len(split_lines(to_lf(part.text)))
        expected = split_lines(to_lf(apply_edits(self._before, self._edits)))
        runs = diff_lines(expected, split_lines(to_lf(text)))
        return not any(a0 <= end and start <= a1 for a0, a1, _, _ in runs)

    def _appeared(self, part: _Part, text: str) -> bool:
        """Whether an inserted text came up somewhere, so that it must not be sent again.

        An insertion leaves nothing in its old place to look at; told together with the user's
        keys it may seem to lie next to it.
        """
        wanted = to_lf(part.text)
        gained = to_lf(text).count(wanted) - to_lf(self._before).count(wanted)
        return gained > sum(done.text == part.text for done in self._done)

    def _steps(self, before: str, change: Change) -> Sequence[Change]:
        """Line by line where the change meets a region, so that neighbours stay apart."""
        if any(shift(part.start, part.end, change)[2] for part in self._parts):
            return refine(before, change)[::-1]
        return (change,)

    def _settle(self, parts: Sequence[_Part]) -> None:
        for part in parts:
            self.verified.update(part.ids)
        self._done += parts
        self._parts = [part for part in self._parts if part not in parts]


def _parts(text: str, edits: Mapping[str, Edit]) -> list[_Part]:
    """One part per edit, ascending; edits that adjoin are one part."""
    parts: list[_Part] = []
    ids: list[str] = []
    run: list[Edit] = []
    ordered = sorted(edits.items(), key=lambda item: (item[1].start, item[1].end))
    for k, (hunk_id, edit) in enumerate(ordered):
        ids.append(hunk_id)
        run.append(edit)
        if k + 1 == len(ordered) or ordered[k + 1][1].start > edit.end:
            parts.append(_part(text, tuple(ids), run))
            ids, run = [], []
    return parts


def _part(text: str, ids: tuple[str, ...], run: Sequence[Edit]) -> _Part:
    whole = Edit(run[0].start, run[-1].end, "".join(edit.text for edit in run))
    told = minimal_edits(text, [whole])
    start = min([whole.start, *(edit.start for edit in told)])
    end = max([whole.end, *(edit.end for edit in told)])
    head, tail = whole.start - start, end - whole.end
    region = text[start:end]
    new = region[:head] + whole.text + region[len(region) - tail :]
    return _Part(ids, start, end, head, tail, whole.text, to_lf(region), to_lf(new), whole)


def _does(before: str, change: Change, parts: Sequence[_Part]) -> bool:
    """Whether `change` leads to the same text as the edits of `parts`, all still undone."""
    if any(part.held_in(before) != part.old for part in parts):
        return False
    edits = [part.edit for part in parts]
    growth = sum(len(edit.text) - (edit.end - edit.start) for edit in edits)
    if growth != len(change.text) - (change.end - change.start):
        return False
    start, end = min(change.start, edits[0].start), max(change.end, edits[-1].end)
    ours = [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits]
    theirs = Edit(change.start - start, change.end - start, change.text)
    window = before[start:end]
    return to_lf(apply_edits(window, ours)) == to_lf(apply_edits(window, (theirs,)))
