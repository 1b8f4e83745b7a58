"""Did the editor do what it was asked? Found out from the text it reports, never from its answer.

Editors drop edits and answer `applied: true`; a `didChange` may hold our edit and the user's
keys, told in any order and any size. So the regions of an edit that was sent are followed
through every change, and each is compared with what it should become, whatever the line ends.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from kode_sidecar.domain.hunk import Hunk, follow, follow_all
from kode_sidecar.edits.sent_part import SentPart, raw_length, sent_parts
from kode_sidecar.text.line_diff import diff_lines, split_lines
from kode_sidecar.text.text_edit import (
    Change,
    Edit,
    apply_edits,
    joined_edits,
    refine,
    to_lf,
    whole_lines,
)

Verdict = Literal["applied", "unchanged", "diverged"]


class SentEdit:
    """An edit of one document that was sent to the editor and is not verified yet.

    `edits` are whole-line edits of `text` by hunk id. What `verified` names is known to be done;
    its place is followed on, so that it can be taken back.
    """

    def __init__(self, text: str, edits: Mapping[str, Edit]) -> None:
        self._before = text
        self._by_id = dict(edits)
        self._edits = sorted(edits.values(), key=lambda edit: (edit.start, edit.end))
        self._parts = sent_parts(text, edits)
        self._done: list[SentPart] = []
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
        done_at_once: Sequence[SentPart] = ()
        for parts in (list(self._parts), *([part] for part in self._parts)):
            if parts and _does(before, change, parts):
                steps: Sequence[Change] = [part.edit for part in reversed(parts)]
                done_at_once = parts
                self._settle(parts)
                break
        else:
            steps = self._steps(before, change)
        strayed = [] if done_at_once else self._strayed(before, change)
        for step in steps:
            before = apply_edits(before, (step,))
            for part in (*self._parts, *self._done):
                if part not in done_at_once:
                    part.move(step)
                part.strays = [follow(stray, step, before) for stray in part.strays]
            self._settle([part for part in self._parts if part.held_in(before) == part.new])
        for part, stray, was_done in strayed:
            if was_done or part in self._parts:
                part.strays.append(stray)
        moved_by = 0
        for part in done_at_once:
            moved_by = part.settle(moved_by)
        return steps

    def verdicts(self, text: str, *, refused: bool = False) -> dict[str, Verdict]:
        """What became of each hunk, seen in the present text.

        `refused`: the editor says that it did nothing, so a short text that came up elsewhere is
        nothing of ours.
        """
        result: dict[str, Verdict] = {}
        for part in self._done:
            result |= dict.fromkeys(part.ids, "applied" if part.stands_in(text) else "diverged")
        for part in self._parts:
            result |= dict.fromkeys(part.ids, self._verdict(part, text, refused=refused))
        return result

    def found(self, hunk_id: str, text: str) -> str:
        """What stands in `text` where the hunk should be, LF line ends."""
        return self._part_of(hunk_id).held_in(text)

    def _part_of(self, hunk_id: str) -> SentPart:
        return next(part for part in (*self._parts, *self._done) if hunk_id in part.ids)

    def inverses(self, hunk_ids: Collection[str], text: str) -> list[Hunk]:
        """What takes these hunks back, which show in the present text; with the same ids."""
        found: dict[str, Hunk] = {}
        for part in self._done:
            found |= self._inverses_of(part, text)
        missed = [hunk_id for hunk_id in hunk_ids if hunk_id not in found]
        if missed:
            found |= self._inverses_by_lines(missed, self.verified.union(hunk_ids), text)
        return [found[hunk_id] for hunk_id in hunk_ids]

    def repairs(self, hunk_id: str, text: str) -> list[Edit]:
        """Whole-line edits of `text` that make of a diverged hunk what was meant; may be none."""
        part = self._part_of(hunk_id)
        if part.ids[0] != hunk_id:
            return []
        head = text[part.start : part.start + part.head]
        tail = text[part.end - part.tail : part.end]
        wanted = [Edit(part.start, part.end, head + part.text + tail)]
        wanted += [stray.edit for stray in part.strays if not stray.touched]
        whole = [whole_lines(text, edit) for edit in sorted(wanted, key=lambda edit: edit.start)]
        if any(one.end > other.start for one, other in pairwise(whole)):
            return []
        return [e for e in joined_edits(whole) if text[e.start : e.end] != e.text]

    def _strayed(self, before: str, change: Change) -> list[tuple[SentPart, Hunk, bool]]:
        """The parts that a change may have done in the wrong place or again, and its undo.

        With each part whether it was done before.
        """
        found: list[tuple[SentPart, Hunk, bool]] = []
        for part in [*self._parts, *self._done]:
            where_asked = part in self._parts and part.overlaps(change)
            apart = part in self._done and bool(part.new) and not part.adjoins(change)
            if where_asked or apart or not part.resembles(before, change):
                continue
            end = change.start + len(change.text)
            gone = before[change.start : change.end]
            stray = Hunk("", change.start, end, change.text, gone)
            found.append((part, stray, part in self._done))
        return found

    def _inverses_of(self, part: SentPart, text: str) -> dict[str, Hunk]:
        """Those of a part whose place is known; touched where the user has typed since."""
        held = text[part.start : part.end]
        touched = to_lf(held) != part.new
        at = part.start + raw_length(held, part.head_lf)
        result: dict[str, Hunk] = {}
        for hunk_id in part.ids:
            edit = self._by_id[hunk_id]
            end = at + raw_length(text[at : part.end], len(to_lf(edit.text)))
            old = self._before[edit.start : edit.end]
            if touched:
                result[hunk_id] = Hunk(hunk_id, part.start, part.end, edit.text, old, touched=True)
            else:
                result[hunk_id] = Hunk(hunk_id, at, end, text[at:end], old)
            at = end
        return result

    def _inverses_by_lines(
        self, wanted: Sequence[str], seen: Collection[str], text: str
    ) -> dict[str, Hunk]:
        """The same where no region could be followed: `text` compared with what it should be."""
        done = sorted((self._by_id[key] for key in seen), key=lambda edit: (edit.start, edit.end))
        expected = apply_edits(self._before, done)
        hunks: list[Hunk] = []
        for hunk_id in wanted:
            edit = self._by_id[hunk_id]
            above = done[: done.index(edit)]
            at = edit.start + sum(len(e.text) - (e.end - e.start) for e in above)
            old = self._before[edit.start : edit.end]
            hunks.append(Hunk(hunk_id, at, at + len(edit.text), edit.text, old))
        moved = follow_all(hunks, Edit(0, len(expected), text), expected, text)
        return {hunk.id: hunk for hunk in moved}

    def _verdict(self, part: SentPart, text: str, *, refused: bool) -> Verdict:
        if part.held_in(text) == part.old and part.has_strayed(refused=refused):
            return "diverged"
        if part.held_in(text) != part.old:
            shows = part.swallowed and self._shows(part, text)
            return "applied" if shows else "diverged"
        came_up = part.inserts and not refused and self._appeared(part, text)
        return "applied" if came_up else "unchanged"

    def _shows(self, part: SentPart, text: str) -> bool:
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

    def _appeared(self, part: SentPart, text: str) -> bool:
        """Whether an inserted text came up somewhere, so that it must not be sent again.

        An insertion leaves nothing in its old place to look at; told together with the user's
        keys it may seem to lie next to it.
        """
        wanted = to_lf(part.text)
        gained = to_lf(text).count(wanted) - to_lf(self._before).count(wanted)
        return gained > sum(done.text == part.text for done in self._done)

    def _steps(self, before: str, change: Change) -> Sequence[Change]:
        """Line by line where a change of several meets a region, so that neighbours stay apart."""
        several = "\n" in change.text or "\n" in before[change.start : change.end]
        lines = whole_lines(before, Edit(change.start, change.end, change.text))
        if several and any(part.adjoins(lines) for part in self._parts):
            return refine(before, change)[::-1]
        return (change,)

    def _settle(self, parts: Sequence[SentPart]) -> None:
        for part in parts:
            self.verified.update(part.ids)
        self._done += parts
        self._parts = [part for part in self._parts if part not in parts]


def _does(before: str, change: Change, parts: Sequence[SentPart]) -> bool:
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
