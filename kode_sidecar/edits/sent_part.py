"""The regions of a sent edit: followed through every change, each compared with what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.text_edit import Change, Edit, minimal_edits, shift, to_lf, whole_lines

TELLING_CHARS = 8
"""A text this long does not come up elsewhere by chance."""


@dataclass(eq=False)
class SentPart:
    """One whole-line edit that was sent, and the region of the text in which it shows.

    `[start, end)` held `old` (LF) before and will hold `new` (LF). `head` and `tail` are what of
    the region lies outside the edit: at the end of a file the editor is told of one line earlier.
    `first` is the edit in the text it was made for, `told` what the editor was asked to do for it.
    `swallowed`: a change took more than the region, so that nothing of it could be followed.
    `strays` undo changes that look as if the editor had done it in the wrong place, or again.
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
    told: Sequence[tuple[str, str]]
    strays: list[Hunk]
    swallowed: bool = False

    @property
    def edit(self) -> Edit:
        return Edit(self.start + self.head, self.end - self.tail, self.text)

    @property
    def head_lf(self) -> int:
        """The length of the head with LF line ends."""
        return len(self.new) - len(to_lf(self.text)) - self.tail

    @property
    def inserts(self) -> bool:
        """Whether it takes nothing away."""
        return self.start + self.head == self.end - self.tail

    def move(self, change: Change) -> None:
        around = change.start <= self.start and change.end >= self.end
        if around and change.end - change.start > self.end - self.start:
            self.swallowed = True
        self.start, self.end, _ = shift(self.start, self.end, change)

    def resembles(self, before: str, change: Change) -> bool:
        """Whether a change of `before` may be what was asked for, done in some other place."""
        return any(_resembles(before, change, gone, text) for gone, text in self.told)

    def overlaps(self, change: Change) -> bool:
        """Whether a change takes part of the region, or comes up in it."""
        if self.start == self.end:
            return change.start <= self.start <= change.end
        return change.start < self.end and change.end > self.start

    def adjoins(self, change: Change) -> bool:
        """Whether a change overlaps the region or lies right beside it."""
        return change.start <= self.end and change.end >= self.start

    def has_strayed(self, *, refused: bool) -> bool:
        """Whether it came up elsewhere; of a refused one only what cannot be chance counts."""
        return any(not refused or len(one.old_text) >= TELLING_CHARS for one in self.strays)

    def stands_in(self, text: str) -> bool:
        """Whether it is still as it was done; text of others may have come up right beside it."""
        held = self.held_in(text)
        beside = bool(self.new) and (held.startswith(self.new) or held.endswith(self.new))
        return not self.strays and (held == self.new or beside)

    def settle(self, moved_by: int) -> int:
        """It was done together with those before it; returns by how much those after it move."""
        grown = moved_by + len(self.text) - (self.edit.end - self.edit.start)
        self.start, self.end = self.start + moved_by, self.end + grown
        return grown

    def held_in(self, text: str) -> str:
        return to_lf(text[self.start : self.end])


def sent_parts(text: str, edits: Mapping[str, Edit]) -> list[SentPart]:
    """One part per edit, ascending; edits that adjoin are one part."""
    parts: list[SentPart] = []
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


def _part(text: str, ids: tuple[str, ...], run: Sequence[Edit]) -> SentPart:
    whole = Edit(run[0].start, run[-1].end, "".join(edit.text for edit in run))
    told = minimal_edits(text, [whole])
    start = min([whole.start, *(edit.start for edit in told)])
    end = max([whole.end, *(edit.end for edit in told)])
    head, tail = whole.start - start, end - whole.end
    region = text[start:end]
    new = region[:head] + whole.text + region[len(region) - tail :]
    asked = [(to_lf(text[edit.start : edit.end]), to_lf(edit.text)) for edit in told]
    return SentPart(
        ids, start, end, head, tail, whole.text, to_lf(region), to_lf(new), whole, asked, []
    )


def raw_length(raw: str, lf_length: int) -> int:
    """How much of `raw` makes `lf_length` characters with LF line ends."""
    if "\r" not in raw:
        return min(lf_length, len(raw))
    at = 0
    for _ in range(lf_length):
        at += 2 if raw.startswith("\r\n", at) else 1
    return min(at, len(raw))


def _resembles(before: str, change: Change, gone: str, text: str) -> bool:
    """Whether a change takes as much as `gone` and brings `text`, as far as can be told.

    Editors leave out what both sides share, so the changed lines are compared.
    """
    told_gone, told = to_lf(before[change.start : change.end]), to_lf(change.text)
    same_growth = len(told) - len(told_gone) == len(text) - len(gone)
    same_lines = len(split_lines(told_gone)) == len(split_lines(gone))
    if not text.strip():
        return bool(gone or text) and not told.strip() and (same_growth or same_lines)
    lines = whole_lines(before, Edit(change.start, change.end, change.text))
    wanted = text.strip("\n")
    return to_lf(lines.text).count(wanted) > to_lf(before[lines.start : lines.end]).count(wanted)
