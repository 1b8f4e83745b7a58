"""Finds hunks of earlier processes in the texts of today: where they wait, and which are done."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from kode_sidecar.domain.change_set import (
    UNSETTLED,
    FileName,
    HunkState,
    ProposedHunk,
    TextBase,
    by_file,
)
from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.edits.services import EditServices
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import EventHistory
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.text_edit import between_lines, to_lf, with_eol
from kode_sidecar.workspace.document import Document, text_rev
from kode_sidecar.workspace.file_changes import FileChange

_GONE = "the file is not there any more."
_CHANGED = "the text there changed while no sidecar looked after it."


_TELLING = 12
"""So many characters hardly stand in a text by chance."""

_PREFERENCES: Sequence[Callable[[ProposedHunk], bool]] = (
    lambda _: True,
    lambda one: one.is_done,
    lambda one: len(one.new_text) > len(one.old_text),
)
"""Whether a hunk counts as applied where the text shows both its sides: one that is empty always
shows."""

_RANKS: Mapping[HunkState, int] = {"proposed": 1, "undone": 2, "rejected": 3}
"""How unlikely it is that a hunk of that state stands in the text; 0 for any other."""

Walks = dict[tuple[tuple[str, str | None], ...], dict[str, tuple[int, int]] | None]
"""What was found in one text, by the hunks of one base that may be applied beside each other."""

Placed = tuple[ProposedHunk, Hunk]
"""A hunk that is done, and what takes it back."""


class Restoring:
    """Takes over the change sets of a session that is opened again.

    A process may have been killed while an edit was on its way: what waits in the journal may stand
    in the text. So the text is asked, here and whenever the document is seen anew.
    """

    def __init__(self, services: EditServices) -> None:
        self._workspace = services.workspace
        self._overlay = services.overlay
        self._changes = services.changes
        self._ledger = services.ledger

    def restore(self, history: EventHistory) -> None:
        """Take over the change sets of earlier processes.

        A hunk whose base does not hold any more is stale. An edit in a file outside the folders
        that are open now waits on.
        """
        for change_set in history.change_sets.values():
            self._ledger.restore(change_set, history.decided_since_turn)
            hunks = list(change_set.hunks.values())
            for hunk in hunks:
                if hunk.kind != "modify" and hunk.state == "proposed":
                    self._find_file(hunk)
            edits = [hunk for hunk in hunks if hunk.kind == "modify"]
            # An undo that a full disk refused may be all that the journal tells of it.
            open_ones = [hunk for hunk in edits if hunk.state in UNSETTLED | {"proposed", "undone"}]
            for file, group in by_file(open_ones).items():
                self._find_edits(file, group, change_set.turn_id)

    def find_done(self, document: Document, hunks: Iterable[ProposedHunk]) -> dict[str, str | None]:
        """Return those of these hunks that the document shows; follow their inverses.

        By hunk id, with the user's own text that stands there, None for the hunk's.
        """
        wanted = sorted(hunks, key=_rank)
        if not wanted:
            return {}
        everything = self._ledger.of_file(document.key)
        done = self.placed(document)
        puts: dict[str, str | None] = {}
        held = self._overlay.current(document)
        walks: Walks = {}
        for hunk in (sent for one in wanted for sent in one.as_sent()):
            span = self._overlay.find(document, hunk.id)
            waits = span is not None and not span.touched
            place = None
            if hunk.id not in puts:
                place = _place_of_new(hunk, held, everything, walks, prove=waits)
            # Of two hunks with one text, or of the same lines, the likelier one is done.
            if place is not None and not is_taken(place, hunk, done):
                text, old = held.text[slice(*place)], with_eol(hunk.old_text, held.eol)
                done.append((hunk, Hunk(hunk.id, *place, text, old)))
                puts[hunk.id] = hunk.replacement
        self._overlay.track(document, [span for hunk, span in done if hunk.id in puts])
        return puts

    def placed(self, document: Document) -> list[Placed]:
        """Return the hunks of a document that are known to be done, where that can be seen."""
        known = self._ledger.of_file(document.key)
        done = {one.id: one for one in known if one.is_done}
        return [(done[span.id], span) for span in self._overlay.find_all(document, done)]

    def find_again(self, document: Document, hunk: ProposedHunk) -> None:
        """Follow a hunk that was not applied, where its old text stands; it may be tried again."""
        place = find_hunk(hunk, self._overlay.current(document))
        if place is not None:
            self._overlay.track(document, [place])

    def find_file_done(self, hunk: ProposedHunk) -> None:
        """Know how to take back a file that an earlier process had created, moved or deleted."""
        try:
            change = self._file_done(hunk)
        except KodeError:
            return
        if change is not None:
            self._changes.finish(change)

    def _find_edits(self, file: FileName, hunks: Sequence[ProposedHunk], turn_id: str) -> None:
        waiting = [hunk for hunk in hunks if hunk.state == "proposed"]
        try:
            document = self._workspace.document(file.uri, purpose="edit")
        except KodeError as error:
            if error.code == "NotFound" and waiting:
                self._ledger.go_stale({hunk.id: _GONE for hunk in waiting})
            return
        done = self.find_done(document, hunks)
        back = [hunk for hunk in hunks if hunk.id in done and hunk.state == "undone"]
        if back:
            self._ledger.put_back(back)
        if done:
            self._ledger.land_late(done)
        waiting = [hunk for hunk in waiting if hunk.state == "proposed"]
        held = self._overlay.current(document)
        found = [place for hunk in waiting if (place := find_hunk(hunk, held)) is not None]
        found.sort(key=lambda place: (place.start, place.end))
        ends = accumulate((place.end for place in found), max, initial=0)
        apart = [place for place, end in zip(found, ends, strict=False) if place.start >= end]
        self._overlay.add(document, apart, turn_id)
        kept = {place.id for place in apart}
        lost = {hunk.id: _CHANGED for hunk in waiting if hunk.id not in kept}
        if lost:
            self._ledger.go_stale(lost)

    def _find_file(self, hunk: ProposedHunk) -> None:
        """Find a file to create, move or delete: what it begins with must be as it was."""
        try:
            done = self._file_done(hunk)
            change = self._file_change(hunk) if done is None else None
        except KodeError as error:
            self._ledger.go_stale({hunk.id: error.message})
            return
        if done is not None:
            self._changes.finish(done)
            self._ledger.land_late({hunk.id: hunk.replacement})
        elif change is None:
            self._ledger.go_stale({hunk.id: _CHANGED})
        else:
            self._changes.add(change, hunk.turn_id)

    def _file_change(self, hunk: ProposedHunk) -> FileChange | None:
        """Return None where it does not fit any more. Raises KodeError for an unreadable file."""
        place = self._workspace.locate(hunk.file.uri)
        if hunk.kind == "create":
            if place.real.exists():
                return None
            return FileChange(hunk.id, "create", hunk.file.uri, place, text=hunk.new_text)
        text = self._workspace.document(hunk.file.uri, purpose="edit").text
        if hunk.kind == "delete":
            if to_lf(text) != to_lf(hunk.old_text):
                return None
            return FileChange(hunk.id, "delete", hunk.file.uri, place, text=text)
        if hunk.new_file is None:
            return None
        target = self._workspace.locate(hunk.new_file.uri)
        if target.real.exists():
            return None
        return FileChange(hunk.id, "rename", hunk.file.uri, place, target)

    def _file_done(self, hunk: ProposedHunk) -> FileChange | None:
        """Return the change of a file that shows: it is there, as it should be, or gone.

        Raises KodeError for a place out of bounds.
        """
        place = self._workspace.locate(hunk.file.uri)
        there = place.real.exists()
        if hunk.kind == "create":
            if not there:
                return None
            document = self._workspace.document(hunk.file.uri, purpose="edit")
            if document.lf_text != to_lf(hunk.new_text):
                return None
            return FileChange(hunk.id, "create", hunk.file.uri, place, text=hunk.new_text)
        if there:
            return None
        if hunk.kind == "delete":
            return FileChange(hunk.id, "delete", hunk.file.uri, place, text=hunk.old_text)
        target = self._workspace.locate(hunk.new_file.uri) if hunk.new_file else None
        if target is None or not target.real.exists():
            return None
        return FileChange(hunk.id, "rename", hunk.file.uri, place, target)


def find_hunk(hunk: ProposedHunk, document: Document) -> Hunk | None:
    """Return where a hunk of an earlier process stands in today's text.

    It holds as far as its base does: the text it was made for is still the same, or the lines it
    replaces are still there, once. None where that is not so.
    """
    text, old = document.text, hunk.old_text
    places: Sequence[int] = ()
    if hunk.base is not None and hunk.range is not None and hunk.base.sha256 == document.rev:
        places = document.line_starts[hunk.range.start.line :][:1] or (len(text),)
        places = [at for at in places if _is_at(text, old, at)]
    elif old:
        places = _lines_at(text, old)
    if len(places) != 1:
        return None
    return Hunk(hunk.id, places[0], places[0] + len(old), old, hunk.new_text)


def _place_of_new(
    hunk: ProposedHunk,
    document: Document,
    everything: Sequence[ProposedHunk],
    walks: Walks,
    *,
    prove: bool,
) -> tuple[int, int] | None:
    """Return where the text shows that a hunk was applied.

    Proof is that the text becomes the hunk's base again once all that stands there of the hunks of
    that base is taken back. Without it, unless it is to `prove`, the new lines must stand there
    once and the old ones not.
    """
    if hunk.base is None or hunk.range is None or hunk.base.sha256 == document.rev:
        return None
    mates = _apart(hunk, everything)
    key = tuple((one.id, one.replacement) for one in mates)
    if key not in walks:  # all hunks of one base mostly ask the same
        tries = (_lines_of_new(document, mates, hunk.base, one) for one in _PREFERENCES)
        walks[key] = next((lines for lines in tries if lines is not None), None)
    lines = walks[key]
    if lines is not None:
        starts = [*document.line_starts, len(document.text)]
        place = lines.get(hunk.id)
        return (starts[place[0]], starts[place[1]]) if place else None
    if prove:
        return None
    new = with_eol(hunk.put_text, document.eol)
    old = with_eol(hunk.old_text, document.eol)
    places = _lines_at(document.text, new) if len(new.strip()) >= _TELLING else []
    if len(places) != 1 or (old and _lines_at(document.text, old)):
        return None
    return places[0], places[0] + len(new)


def _apart(wanted: ProposedHunk, everything: Sequence[ProposedHunk]) -> list[ProposedHunk]:
    """Return a hunk and the others of its base that may be applied beside it, in their order.

    Of two that change the same lines only one can be; the likelier one is taken.
    """
    mates = [
        wanted if one.id == wanted.id else one
        for one in everything
        if _have_one_base(one, wanted) and one.state != "superseded"
    ]
    taken: list[tuple[int, int]] = []
    apart: set[str] = set()
    for one in sorted(mates, key=lambda one: -1 if one is wanted else _rank(one)):
        lines = _lines_of_old(one)
        at = bisect_left(taken, lines)
        if not any(_overlap(lines, other) for other in taken[max(at - 1, 0) : at + 1]):
            taken.insert(at, lines)
            apart.add(one.id)
    return [one for one in mates if one.id in apart]


def _rank(hunk: ProposedHunk) -> int:
    return _RANKS.get(hunk.state, 0)


def _have_one_base(one: ProposedHunk, other: ProposedHunk) -> bool:
    return bool(one.base and other.base and one.base.sha256 == other.base.sha256)


def _lines_of_old(hunk: ProposedHunk) -> tuple[int, int]:
    """Return the lines of its base that a hunk changes."""
    first = hunk.range.start.line if hunk.range is not None else 0
    return first, first + len(split_lines(to_lf(hunk.old_text)))


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def is_taken(place: tuple[int, int], hunk: ProposedHunk, done: Iterable[Placed]) -> bool:
    """Return whether another hunk put what stands in a place, or took away what stood there."""
    for other, span in done:
        there = (span.start, span.end)
        if _overlap(place, there) or (place == there and _took_the_same(hunk, other)):
            return True
    return False


def _took_the_same(hunk: ProposedHunk, other: ProposedHunk) -> bool:
    """Return whether two hunks, gone in one place, are about the same lines of one text."""
    if not hunk.old_text or hunk.id == other.id:
        return False
    if _have_one_base(hunk, other):
        return _overlap(_lines_of_old(hunk), _lines_of_old(other))
    return to_lf(hunk.old_text) == to_lf(other.old_text)


def _lines_of_new(
    document: Document,
    mates: Sequence[ProposedHunk],
    base: TextBase,
    prefers_new: Callable[[ProposedHunk], bool],
) -> dict[str, tuple[int, int]] | None:
    """Return the lines of the hunks that are applied, where that leads to the base."""
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


def _lines_at(text: str, part: str) -> list[int]:
    """Return where `part` stands in `text` as whole lines."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        if between_lines(text, at) and between_lines(text, at + len(part)):
            found.append(at)
        at = text.find(part, at + 1)
    return found


def _is_at(text: str, part: str, at: int) -> bool:
    return text.startswith(part, at) and between_lines(text, at + len(part))
