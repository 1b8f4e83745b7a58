"""Finds which of the changes that an editor reports are the edits it was sent. Pure.

It may report them in any order and size, and the user's keys with them: the places of what was sent
are compared with the changes near them, as a whole, one by one, and line by line.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Change, Edit, apply_edits, refine, to_lf, whole_lines

MAX_BESIDE = 50
"""So many insertions are looked for in one change that does other things, too."""
_ENDS = ("\n", "\r")


@dataclass(frozen=True, eq=False)
class Part:
    """The place of hunks that adjoin, so that their edits look alike.

    `[start, end)` of the text held `old` and will hold `new`. `swallowed`: a change took more than
    the place, so that nothing of it could be followed. `beside`: lines came up right beside the
    place of an insertion, which may be ours, done wrongly.
    """

    ids: tuple[str, ...]
    start: int
    end: int
    old: str
    new: str
    swallowed: bool = False
    beside: bool = False

    @property
    def edit(self) -> Edit:
        return Edit(self.start, self.end, self.new)

    @property
    def added(self) -> str:
        """The lines that it merely adds, above its old ones or below; empty where it does more."""
        if self.new.startswith(self.old):
            return self.new[len(self.old) :]
        return self.new.removesuffix(self.old) if self.new.endswith(self.old) else ""

    def stands_beside_others(self, text: str) -> bool:
        """Return whether what it should become is there, with lines that came up beside it."""
        held = split_lines(to_lf(text[self.start : self.end]))
        old, new = split_lines(to_lf(self.old)), split_lines(to_lf(self.new))
        size = len(new)
        if not self.new.endswith("\n") or new in (old[:size], old[-size:]):
            return False
        if new not in (held[:size], held[-size:]):
            return False
        others = held[size:] if held[:size] == new else held[:-size]
        # Lines that were to go, and stand beside it: it hit others, or did half of what it should.
        return set(others).isdisjoint(old)

    def is_untouched(self, text: str) -> bool:
        """Return whether its old lines still stand there, maybe with others of the user's beside.

        An insertion with lines beside it is not taken for undone: sent again it would stand twice.
        """
        held, old, new = to_lf(text[self.start : self.end]), to_lf(self.old), to_lf(self.new)
        if held == old or self.added:
            return held == old and not self.beside
        if not old.endswith("\n") or (new and new in held):
            return False
        return held.startswith(old) or held.endswith(f"\n{old}")

    def was_moved(self, changes: Iterable[Change]) -> bool:
        """Return whether changes put its lines elsewhere, such as joined to the next one."""
        lines = to_lf(self.old).removesuffix("\n")
        return any(lines in to_lf(change.text) for change in changes)

    @property
    def adds_at(self) -> int:
        """Where these lines come."""
        return self.end if self.new.startswith(self.old) else self.start


def parts_of(text: str, edits: Mapping[str, Edit]) -> list[Part]:
    """Return one part per edit, ascending; edits that adjoin are one part."""
    parts: list[Part] = []
    for hunk_id, edit in sorted(edits.items(), key=lambda item: (item[1].start, item[1].end)):
        old = text[edit.start : edit.end]
        if parts and parts[-1].end == edit.start:
            last = parts.pop()
            ids, start = (*last.ids, hunk_id), last.start
            parts.append(Part(ids, start, edit.end, last.old + old, last.new + edit.text))
        else:
            parts.append(Part((hunk_id,), edit.start, edit.end, old, edit.text))
    return parts


Found = list[tuple[Change, Part | None]]
"""Changes in the order of the text, each with the part that it does."""


def recognised(before: str, parts: Sequence[Part], changes: Sequence[Change]) -> Found:
    """Return `changes`, those that do parts replaced by the edits that were sent."""
    if _same(before, parts, changes):
        return [(part.edit, part) for part in parts]
    found: Found = []
    for near_parts, near in _neighbours(before, parts, changes):
        if not near_parts or not near:
            found += ((change, None) for change in near)
        elif _same(before, near_parts, near):
            found += ((part.edit, part) for part in near_parts)
        else:
            found += _recognised_by_lines(before, near_parts, near)
    return found


def _recognised_by_lines(before: str, parts: Sequence[Part], changes: Sequence[Change]) -> Found:
    """Return the same for neighbours that do not agree as a whole: one by one, line by line."""
    found: list[tuple[int, Change, Part | None]] = []
    left = list(parts)
    others: list[tuple[int, Change]] = []
    for at, change in enumerate(changes):
        part = _same_alone(before, left, changes, at)
        if part is not None:
            left.remove(part)
            found.append((at, part.edit, part))
        else:
            others.append((at, change))
    rest: list[tuple[int, Change]] = []
    for at, change in _one_per_line(before, others):
        lines: Sequence[Change] = [change]
        several = "\n" in change.text or "\n" in before[change.start : change.end]
        if several and not _reaches(whole_lines(before, change), at, found):
            lines = refine(before, change)
        rest += ((at, line) for line in lines)
    index = 0
    for near_parts, near in _neighbours(before, left, [change for _, change in rest]):
        if near and near_parts and _same(before, near_parts, near):
            found += ((rest[index][0], part.edit, part) for part in near_parts)
        elif len(near) == 1 and len(near_parts) <= MAX_BESIDE:
            both = _with_lines_beside(before, near_parts, near[0])
            found += ((rest[index][0], change, part) for change, part in both)
        else:
            found += ((at, change, None) for at, change in rest[index : index + len(near)])
        index += len(near)
    found.sort(key=lambda one: (one[1].start, one[0]))
    return [(change, part) for _, change, part in found]


def _reaches(lines: Edit, at: int, found: Sequence[tuple[int, Change, Part | None]]) -> bool:
    """Return whether the lines of a change, the `at`-th, reach into what is done beside it."""
    below = bisect_right(found, at, key=lambda one: one[0])
    return (below > 0 and found[below - 1][1].end > lines.start) or (
        below < len(found) and found[below][1].start < lines.end
    )


def _with_lines_beside(before: str, parts: Sequence[Part], change: Change) -> Found:
    """Return what of a change of lines are insertions at its ends, and what is left of it."""
    above: list[Part] = []
    below: list[Part] = []
    todo = list(parts)
    while todo and not _same(before, todo, [change]):
        if left := _without_first(before, todo[0], change):
            above.append(todo.pop(0))
        elif left := _without_last(before, todo[-1], change):
            below.append(todo.pop())
        else:
            break
        change = left
    between = _done(todo) if _same(before, todo, [change]) else [(change, None)]
    return [*_done(above), *between, *_done(reversed(below))]


def _done(parts: Iterable[Part]) -> Found:
    return [(part.edit, part) for part in parts]


def _without_first(before: str, part: Part, change: Change) -> Edit | None:
    """Return what is left of a change whose first lines are those of an insertion."""
    lines = before[change.start : part.start] + part.new
    left = Edit(part.start, change.end, change.text[len(lines) :])
    fits = _may_hold(change, part) and change.text.startswith(lines)
    return left if fits and lines.endswith(_ENDS) and left.text else None


def _without_last(before: str, part: Part, change: Change) -> Edit | None:
    """Return what is left of a change whose last lines are those of an insertion."""
    lines = part.new + before[part.start : change.end]
    left = Edit(change.start, part.start, change.text[: len(change.text) - len(lines)])
    fits = _may_hold(change, part) and change.text.endswith(lines)
    return left if fits and left.text.endswith(_ENDS) else None


def _may_hold(change: Change, part: Part) -> bool:
    inside = change.start <= part.start <= change.end
    return inside and not part.old and bool(part.new.strip())


def _one_per_line(before: str, changes: Sequence[tuple[int, Change]]) -> list[tuple[int, Change]]:
    """Join neighbours that share a line: as whole lines they would overlap."""
    result: list[tuple[int, Change]] = []
    reach = -1
    for at, change in changes:
        lines = whole_lines(before, change)
        if lines.start < reach and result[-1][0] == at - 1:
            last = result.pop()[1]
            text = last.text + before[last.end : change.start] + change.text
            change = Edit(last.start, change.end, text)
            lines = whole_lines(before, change)
        result.append((at, change))
        reach = max(reach, lines.end)
    return result


def _same_alone(
    before: str, parts: Sequence[Part], changes: Sequence[Change], at: int
) -> Part | None:
    """Return the part that one change does all by itself, with no other change between them."""
    change = changes[at]
    nearest = bisect_right(parts, change.start, key=lambda part: part.start)
    for part in parts[max(nearest - 1, 0) : nearest + 1]:
        start, end = min(change.start, part.start), max(change.end, part.end)
        free = (at == 0 or changes[at - 1].end <= start) and (
            at + 1 == len(changes) or changes[at + 1].start >= end
        )
        if free and len(change.text) <= len(part.new) and _same(before, [part], [change]):
            return part
    return None


def _same(before: str, parts: Sequence[Part], changes: Sequence[Change]) -> bool:
    """Return whether the changes lead to the same text as the edits of the parts, all undone."""
    growth = sum(len(change.text) - (change.end - change.start) for change in changes)
    if not parts or not changes or growth != sum(len(p.new) - len(p.old) for p in parts):
        return False
    if any(before[part.start : part.end] != part.old for part in parts):
        return False
    start = min(changes[0].start, parts[0].start)
    end = max(changes[-1].end, parts[-1].end)
    edits = [part.edit for part in parts]
    return _part_of(before, start, end, edits) == _part_of(before, start, end, changes)


def _part_of(text: str, start: int, end: int, changes: Sequence[Change]) -> str:
    """Return `text[start:end]` with changes in it done."""
    moved = (Edit(one.start - start, one.end - start, one.text) for one in changes)
    return apply_edits(text[start:end], moved)


def _neighbours(
    text: str, parts: Sequence[Part], changes: Sequence[Change]
) -> Iterator[tuple[list[Part], list[Change]]]:
    """Group the parts and changes that share a line, or whose lines adjoin, in their order."""
    lines = (whole_lines(text, change) for change in changes)
    items = [(line.start, line.end, 1, at) for at, line in enumerate(lines)]
    items += ((part.start, part.end, 0, at) for at, part in enumerate(parts))
    items.sort()
    at = 0
    while at < len(items):
        reach = items[at][1]
        first = at
        while at < len(items) and items[at][0] <= reach:
            reach = max(reach, items[at][1])
            at += 1
        # Insertions in one place stay in the order in which they were reported.
        group = sorted(items[first:at], key=lambda item: item[3])
        yield (
            [parts[one[3]] for one in group if not one[2]],
            [changes[one[3]] for one in group if one[2]],
        )
