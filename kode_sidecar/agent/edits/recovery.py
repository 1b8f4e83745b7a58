"""Finds hunks of earlier processes in the texts of today: where they wait, and which are done."""

import os
from collections.abc import Iterable, Sequence
from itertools import accumulate

from kode_sidecar.agent.edits.proof import Proof, lines_at, lines_of_old, overlap, rank
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.event_log import EventHistory
from kode_sidecar.core.domain.change_set import FileName, ProposedHunk, by_file
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.domain.hunk_state import UNSETTLED
from kode_sidecar.core.text.text_edit import between_lines, to_lf, with_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.file_changes import FileChange

_GONE = "the file is not there any more."
_CHANGED = "the text there changed while no sidecar looked after it."

Placed = tuple[ProposedHunk, Hunk]
"""A hunk that is done, and what takes it back."""


class Recovery:
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
            self._ledger.take_over(change_set, history.decided_since_turn)
            hunks = list(change_set.hunks.values())
            for hunk in hunks:
                if hunk.kind != "modify" and hunk.state == "proposed":
                    self._find_file(hunk)
            edits = [hunk for hunk in hunks if hunk.kind == "modify"]
            # An undo that a full disk refused may be all that the journal has of it.
            open_ones = [hunk for hunk in edits if hunk.state in UNSETTLED | {"proposed", "undone"}]
            for file, group in by_file(open_ones).items():
                self._find_edits(file, group, change_set.turn_id)

    def find_done(self, document: Document, hunks: Iterable[ProposedHunk]) -> dict[str, str | None]:
        """Return those of these hunks that the document shows; follow their inverses.

        By hunk id, with the user's own text that stands there, None for the hunk's.
        """
        wanted = sorted(hunks, key=rank)
        if not wanted:
            return {}
        done = self.placed(document)
        puts: dict[str, str | None] = {}
        held = self._overlay.current(document)
        proof = Proof(held, self._ledger.of_file(document.key))
        for hunk in (sent for one in wanted for sent in one.as_sent()):
            span = self._overlay.find(document, hunk.id)
            waits = span is not None and not span.touched
            place = None if hunk.id in puts else proof.place_of(hunk, prove=waits)
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
            self._ledger.restore(back)
        if done:
            self._ledger.apply_late(done)
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
            self._ledger.apply_late({hunk.id: hunk.replacement})
        elif change is None:
            self._ledger.go_stale({hunk.id: _CHANGED})
        else:
            self._changes.add(change, hunk.turn_id)

    def _file_change(self, hunk: ProposedHunk) -> FileChange | None:
        """Return None where it does not fit any more. Raises KodeError for an unreadable file."""
        place = self._workspace.locate(hunk.file.uri)
        if hunk.kind == "create":
            if os.path.exists(place.real):
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
        if os.path.exists(target.real):
            return None
        return FileChange(hunk.id, "rename", hunk.file.uri, place, target)

    def _file_done(self, hunk: ProposedHunk) -> FileChange | None:
        """Return the change of a file that shows: it is there, as it should be, or gone.

        Raises KodeError for a place out of bounds.
        """
        place = self._workspace.locate(hunk.file.uri)
        there = os.path.exists(place.real)
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
        if target is None or not os.path.exists(target.real):
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
        places = lines_at(text, old)
    if len(places) != 1:
        return None
    return Hunk(hunk.id, places[0], places[0] + len(old), old, hunk.new_text)


def is_taken(place: tuple[int, int], hunk: ProposedHunk, done: Iterable[Placed]) -> bool:
    """Return whether another hunk put what stands in a place, or took away what stood there."""
    for other, span in done:
        there = (span.start, span.end)
        if overlap(place, there) or (place == there and _took_the_same(hunk, other)):
            return True
    return False


def _took_the_same(hunk: ProposedHunk, other: ProposedHunk) -> bool:
    """Return whether two hunks, gone in one place, are about the same lines of one text."""
    if not hunk.old_text:
        return False
    if hunk.base and other.base and hunk.base.sha256 == other.base.sha256:
        return overlap(lines_of_old(hunk), lines_of_old(other))
    return to_lf(hunk.old_text) == to_lf(other.old_text)


def _is_at(text: str, part: str, at: int) -> bool:
    return text.startswith(part, at) and between_lines(text, at + len(part))
