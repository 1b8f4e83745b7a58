"""Did the editor do what it was asked? Found out from the text it reports, never from its answer.

Editors drop edits and answer `applied: true`; a `didChange` may hold our edit and the user's keys,
reported in any order and size. So the places of an edit are followed through every change, and
compared with what they should become. What else was done counts as somebody else's change: no
guesses.
"""

from bisect import bisect_left
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Literal

from kode_sidecar.agent.edits.sent_parts import Part, parts_of, recognised
from kode_sidecar.core.domain.hunk import Hunk, Shifts, follow_all
from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.core.text.text_edit import Change, Edit, apply_edits, minimal_edits, to_lf

Verdict = Literal["applied", "unchanged", "diverged"]


class SentEdit:
    """An edit of one document that was sent to the editor and is not verified yet.

    `edits` are whole-line edits of `text` by hunk id. What `verified` names is known to be done;
    its place is followed on, so that it can be taken back.
    """

    def __init__(self, text: str, edits: Mapping[str, Edit]) -> None:
        self._before = text
        self._by_id = dict(edits)
        self._parts = parts_of(text, edits)
        self._inverses: dict[str, Hunk] = {}
        self._saw_others = False

    @property
    def verified(self) -> Collection[str]:
        """The hunks that the text has shown."""
        return self._inverses.keys()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self._parts

    def follow(self, before: str, changes: Sequence[Change]) -> Sequence[Change]:
        """Return changes of `before`, ascending and disjoint, as the smaller ones they stand for.

        Where they do just what was asked, these are our own edits: an editor may report an inserted
        line as one that begins in the middle of its neighbour.
        """
        found = recognised(before, self._parts, changes)
        steps = [step for step, _ in found]
        after = apply_edits(before, steps)
        shifts = Shifts(steps)
        others = [step for step, part in found if part is None]
        done = {part: shifts.start_of(at) for at, (_, part) in enumerate(found) if part}
        self._saw_others = self._saw_others or len(done) < len(steps)
        moved = follow_all(list(self._inverses.values()), steps, before, after)
        self._inverses = {hunk.id: hunk for hunk in moved}
        waiting: list[Part] = []
        for part in self._parts:
            now = _moved(part, shifts, before, others)
            if part in done:
                now = replace(part, start=done[part], end=done[part] + len(part.new))
            if part in done or to_lf(after[now.start : now.end]) == to_lf(part.new):
                self._verify(now, after)
            else:
                waiting.append(now)
        self._parts = self._without_gone(waiting, others, after)
        return steps

    def overwritten(self, text: str) -> dict[str, str]:
        """Return what stands where lines of ours were to go and are gone; looked for no more.

        By hunk id, LF line ends. Nobody can know whether the edit came before the user's.
        """
        touched = [part for part in self._parts if text[part.start : part.end] != part.old]
        lines = set(split_lines(to_lf(text))) if touched else set[str]()
        lost = [part for part in touched if _is_gone(part, lines)]
        self._parts = [part for part in self._parts if part not in lost]
        return {
            hunk_id: to_lf(text[part.start : part.end]) for part in lost for hunk_id in part.ids
        }

    def verdicts(self, text: str, *, refused: bool = False) -> dict[str, Verdict]:
        """Return what became of each hunk, seen in the present text.

        `refused`: the editor says that it did nothing, so what is not there was not done. Else no
        deletion is `unchanged` where the user's keys came with what is done.
        """
        if not refused and self._is_elsewhere(text):
            return dict.fromkeys(self._by_id, "diverged")
        result: dict[str, Verdict] = {}
        for hunk_id, inverse in self._inverses.items():
            held, new = to_lf(text[inverse.start : inverse.end]), to_lf(inverse.old_text)
            beside = bool(new) and (held.startswith(new) or held.endswith(new))
            result[hunk_id] = "applied" if held == new or beside else "diverged"
        shown = self._shown_elsewhere(text, refused=refused)
        for part in self._parts:
            verdict: Verdict = "diverged"
            if part.ids in shown or (not refused and part.stands_beside_others(text)):
                verdict = "applied"
            elif refused or part.is_untouched(text):
                verdict = "unchanged"
            result |= dict.fromkeys(part.ids, verdict)
        if self._saw_others and not refused and "applied" in result.values():
            gone = (key for key, edit in self._by_id.items() if not edit.text)
            result |= {key: "diverged" for key in gone if result.get(key) == "unchanged"}
        return result

    def found(self, hunk_id: str, text: str) -> str:
        """Return what stands in `text` where the hunk should be, LF line ends."""
        place = self._inverses.get(hunk_id) or next(p for p in self._parts if hunk_id in p.ids)
        return to_lf(text[place.start : place.end])

    def inverses(self, hunk_ids: Collection[str], text: str) -> list[Hunk]:
        """Return what takes these hunks back, which show in the present text; with the same ids."""
        late = [hunk_id for hunk_id in hunk_ids if hunk_id not in self._inverses]
        by_lines = self._inverses_by_lines(late, text) if late else {}
        return [by_lines.get(key) or self._inverses[key] for key in hunk_ids]

    def _verify(self, part: Part, text: str) -> None:
        """Note that a part is done, and what takes each of its hunks back."""
        at = part.start
        for hunk_id in part.ids:
            edit = self._by_id[hunk_id]
            end = at + _raw_length(text[at : part.end], len(to_lf(edit.text)))
            old = self._before[edit.start : edit.end]
            self._inverses[hunk_id] = Hunk(hunk_id, at, end, text[at:end], old)
            at = end

    def _without_gone(
        self, parts: Sequence[Part], others: Sequence[Change], text: str
    ) -> list[Part]:
        """Return all but the deletions that are done, though no place could be followed there."""
        swallowed = [part for part in parts if part.swallowed and not part.new]
        lines = set(split_lines(to_lf(text))) if swallowed else set[str]()
        gone = [one for one in swallowed if _is_gone(one, lines) and not one.was_moved(others)]
        if gone:
            ids = [hunk_id for part in gone for hunk_id in part.ids]
            self._inverses |= self._inverses_by_lines(ids, text)
        return [part for part in parts if part not in gone]

    def _inverses_by_lines(self, late: Collection[str], text: str) -> dict[str, Hunk]:
        """Return the same where no place could be followed: `text` against what it should be."""
        wanted = set(late)
        done = {key: self._by_id[key] for key in (*self._inverses, *late)}
        ordered = sorted(done.items(), key=lambda item: (item[1].start, item[1].end))
        expected = apply_edits(self._before, [edit for _, edit in ordered])
        hunks: list[Hunk] = []
        growth = 0
        for hunk_id, edit in ordered:
            at, old = edit.start + growth, self._before[edit.start : edit.end]
            if hunk_id in wanted:
                hunks.append(Hunk(hunk_id, at, at + len(edit.text), edit.text, old))
            growth += len(edit.text) - len(old)
        if expected != text:
            hunks = follow_all(hunks, [Edit(0, len(expected), text)], expected, text)
        return {hunk.id: hunk for hunk in hunks}

    def _shown_elsewhere(self, text: str, *, refused: bool) -> set[tuple[str, ...]]:
        """Return the parts that are done, though not where their place was followed to.

        A change may be too large to follow a place through, such as all of a text taken and put
        back. An insertion leaves nothing in its old place to look at, and reported together with
        the user's keys it may seem to lie next to it; it must not be sent again.
        """
        shown: set[tuple[str, ...]] = set()
        swallowed = {part.ids for part in self._parts if part.swallowed}
        if swallowed:
            shown |= swallowed & self._right_by_lines(text)
        if not self._saw_others or refused:
            return shown
        known = [(to_lf(one.old_text), to_lf(one.new_text)) for one in self._inverses.values()]
        for part in self._parts:
            if part.added and part.end - part.start == len(part.old):
                wanted = to_lf(part.added)
                gained = to_lf(text).count(wanted) - to_lf(self._before).count(wanted)
                if gained > sum(done.count(wanted) - gone.count(wanted) for done, gone in known):
                    shown.add(part.ids)
        return shown

    def _is_elsewhere(self, text: str) -> bool:
        """Return whether just what was sent came, and as many lines went, but in other places.

        An editor that does not look at versions may do this to a text that we do not know yet.
        """
        edits = sorted(self._by_id.values(), key=lambda edit: (edit.start, edit.end))
        if self._inverses or to_lf(text) == to_lf(apply_edits(self._before, edits)):
            return False
        old, new = split_lines(self._before), split_lines(text)
        at = list(accumulate(map(len, old), initial=0))
        runs = diff_lines(old, new)
        came = [Edit(at[a0], at[a1], "".join(new[b0:b1])) for a0, a1, b0, b1 in runs]
        return bool(came) and _done_by(self._before, came) == _done_by(self._before, edits)

    def _right_by_lines(self, text: str) -> set[tuple[str, ...]]:
        """Return the parts that `text`, compared as a whole with what it should be, has right."""
        edits = sorted(self._by_id.values(), key=lambda edit: (edit.start, edit.end))
        expected = split_lines(to_lf(apply_edits(self._before, edits)))
        now = split_lines(to_lf(text))
        runs = diff_lines(expected, now)
        right: set[tuple[str, ...]] = set()
        line = at = 0
        for part in parts_of(self._before, self._by_id):
            line += to_lf(self._before[at : part.start]).count("\n")
            at = part.end
            end = line + len(split_lines(to_lf(part.new)))
            following = bisect_left(runs, line, key=lambda run: run[1])
            if following < len(runs) and runs[following][1] == line:
                following += _only_end_differs(expected, now, runs[following])
            if following == len(runs) or runs[following][0] > end:
                right.add(part.ids)
            line += to_lf(part.new).count("\n")
        return right


def _done_by(text: str, edits: Sequence[Edit]) -> list[tuple[str, int]]:
    """Return what each edit puts, and how many lines it takes, wherever it is."""
    small = minimal_edits(text, edits)
    return [(to_lf(one.text), to_lf(text[one.start : one.end]).count("\n")) for one in small]


def _only_end_differs(old: Sequence[str], new: Sequence[str], run: Run) -> bool:
    """Return whether a run is one line that has lost its end, or got one."""
    a0, a1, b0, b1 = run
    return a1 - a0 == b1 - b0 == 1 and old[a0].rstrip("\n") == new[b0].rstrip("\n")


def _is_gone(part: Part, lines: Container[str]) -> bool:
    """Return whether a text has none of the lines that a part was to take."""
    old = [line for line in split_lines(to_lf(part.old)) if line.strip()]
    return bool(old) and not any(line in lines for line in old)


def _moved(part: Part, shifts: Shifts, before: str, others: Sequence[Change]) -> Part:
    """Return a part after changes; what came up in its place or beside it belongs to it."""
    start, end = shifts.move(part.start, part.end)
    touching = (shifts.changes[at] for at in shifts.touching(part.start, part.end))
    swallowed = part.swallowed or any(
        change.start <= part.start
        and change.end >= part.end
        and change.end - change.start > part.end - part.start
        for change in touching
    )
    beside = part.beside or (bool(part.added) and _came_beside(part.adds_at, before, others))
    return replace(part, start=start, end=end, swallowed=swallowed, beside=beside)


def _came_beside(at: int, before: str, others: Sequence[Change]) -> bool:
    """Return whether lines came up in a place between lines, or in the line right above it."""
    return any(
        "\n" in change.text
        and change.start <= at
        and at <= (before.find("\n", change.end) + 1 or len(before))
        for change in others
    )


def _raw_length(raw: str, lf_length: int) -> int:
    """Return how much of `raw` makes `lf_length` characters with LF line ends."""
    if "\r" not in raw:
        return min(lf_length, len(raw))
    at = 0
    for _ in range(lf_length):
        at += 2 if raw.startswith("\r\n", at) else 1
    return min(at, len(raw))
