"""Makes hunks pending and tells the editor of them: fresh ones, and those of earlier processes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from kode_sidecar.domain.change_set import (
    FileName,
    HunkFlag,
    ProposedHunk,
    Range,
    TextBase,
    by_file,
)
from kode_sidecar.domain.hunk import Hunk, Shifts, compose
from kode_sidecar.edits.services import EditServices
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import EventHistory
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.shown_text import invisible_characters
from kode_sidecar.text.text_edit import between_lines, to_lf
from kode_sidecar.text.text_lines import PositionEncoding
from kode_sidecar.text.uris import path_to_uri
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.file_changes import FileChange
from kode_sidecar.workspace.paths import Location

Heirs = Mapping[str, str | None]
"""Hunks that were taken over, each with the one that did, or None."""

_GONE = "the file is not there any more."
_CHANGED = "the text there changed while no sidecar looked after it."


class Announcer:
    """Knows how a hunk comes into the overlay, into the ledger and onto the wire.

    Each method is one step without an await.
    """

    def __init__(self, services: EditServices) -> None:
        self._services = services
        self._workspace = services.workspace
        self._overlay = services.overlay
        self._changes = services.changes
        self._ledger = services.ledger
        self.new_id = services.new_id

    def text(
        self, document: Document, after: str, turn_id: str, *, sensitive: bool
    ) -> list[ProposedHunk]:
        """Propose what makes `after` of what the model sees; touched hunks are superseded."""
        current = self._overlay.current(document)
        made = compose(current.text, current.eol, self._overlay.pending(document), after)
        spans = [replace(draft, id=self.new_id("hunk")) for draft in made.drafts]
        heirs: dict[str, str | None] = dict.fromkeys(made.withdrawn)
        for span in spans:
            heirs |= dict.fromkeys(span.replaces, span.id)
        edits = Shifts([span.edit for span in spans])
        for old in self._overlay.hunks(document):
            met = edits.touching(old.start, old.end) if old.touched else range(0)
            if met:
                heirs[old.id] = spans[met[-1]].id
        self._overlay.remove(document.key, heirs)
        self._overlay.add(document, spans, turn_id)
        file = FileName(document.uri, self._workspace.display_path(document.key))
        base = text_base(current)
        hunks: list[ProposedHunk] = []
        for span in spans:
            flags, hidden = _flags(span.new_text, sensitive=sensitive)
            gaps = self._services.freshness.gaps(current, span.start, span.end)
            hunks.append(
                ProposedHunk(
                    id=span.id,
                    turn_id=turn_id,
                    file=file,
                    old_text=span.old_text,
                    new_text=span.new_text,
                    flags=(*gaps, *flags),
                    code_points=hidden,
                    range=range_of(current, span, self._workspace.position_encoding),
                    base=base,
                    was_open=document.is_open,
                )
            )
        self._ledger.announce(hunks)
        self._ledger.supersede(heirs)
        return hunks

    def file(
        self, change: FileChange, turn_id: str, heirs: Heirs, *, sensitive: bool
    ) -> ProposedHunk:
        """Propose to create, rename or delete a file; the hunk takes over `heirs`.

        A new name may hide something as well as a new text.
        """
        created = change.kind == "create"
        new_file = self._name_at(change.target) if change.target else None
        file = FileName(change.uri, change.place.display)
        name = (new_file or file).path if change.adds is not None else ""
        flags, hidden = _flags(name + (change.text if created else ""), sensitive=sensitive)
        deleted = change.kind == "delete"
        gaps = self._services.freshness.gaps_in_all(change.key) if deleted else ()
        hunk = ProposedHunk(
            id=change.id,
            turn_id=turn_id,
            file=file,
            old_text="" if created else change.text,
            new_text=change.text if created else "",
            kind=change.kind,
            new_file=new_file,
            flags=(*gaps, *flags),
            code_points=hidden,
            was_open=False,
        )
        self.forget(change.key, heirs)
        self._changes.add(change, turn_id)
        self._ledger.announce([hunk])
        self._ledger.supersede(heirs)
        return hunk

    def withdraw(self, key: str, heirs: Heirs) -> None:
        """Supersede hunks of a document of which nothing is left."""
        self.forget(key, heirs)
        self._ledger.supersede(heirs)

    def forget(self, key: str, hunk_ids: Heirs) -> None:
        """Count these hunks as pending no longer."""
        self._overlay.remove(key, hunk_ids)
        self._changes.remove(hunk_ids)

    def renamed(self, change: FileChange) -> None:
        """Take what is known of a file to its new name, once the editor has moved it."""
        if change.target is not None:
            new = self._name_at(change.target)
            self._overlay.move(change.key, new.key)
            self._ledger.rename(FileName(change.uri, change.place.display), new)

    def restore(self, history: EventHistory) -> None:
        """Take over the change sets of earlier processes; what waits is found in today's texts.

        A hunk whose base does not hold any more is stale. An edit in a file outside the folders
        that are open now waits on.
        """
        for change_set in history.change_sets.values():
            self._ledger.restore(change_set, history.decided_since_turn)
            waiting = [hunk for hunk in change_set.hunks.values() if hunk.state == "proposed"]
            for hunk in waiting:
                if hunk.kind != "modify":
                    self._find_file(hunk)
            edits = [hunk for hunk in waiting if hunk.kind == "modify"]
            for file, hunks in by_file(edits).items():
                self._find_edits(file, hunks, change_set.turn_id)

    def _find_edits(self, file: FileName, hunks: Sequence[ProposedHunk], turn_id: str) -> None:
        try:
            document = self._workspace.document(file.uri, purpose="edit")
        except KodeError as error:
            if error.code == "NotFound":
                self._ledger.go_stale({hunk.id: _GONE for hunk in hunks})
            return
        found = [place for hunk in hunks if (place := find_hunk(hunk, document)) is not None]
        found.sort(key=lambda place: (place.start, place.end))
        ends = accumulate((place.end for place in found), max, initial=0)
        apart = [place for place, end in zip(found, ends, strict=False) if place.start >= end]
        self._overlay.add(document, apart, turn_id)
        kept = {place.id for place in apart}
        self._ledger.go_stale({hunk.id: _CHANGED for hunk in hunks if hunk.id not in kept})

    def _find_file(self, hunk: ProposedHunk) -> None:
        """Find a file to create, move or delete: what it begins with must be as it was."""
        try:
            change = self._file_change(hunk)
        except KodeError as error:
            self._ledger.go_stale({hunk.id: error.message})
            return
        if change is None:
            self._ledger.go_stale({hunk.id: _CHANGED})
        else:
            self._changes.add(change, hunk.turn_id)

    def _file_change(self, hunk: ProposedHunk) -> FileChange | None:
        """Return None where it does not fit any more. Raises KodeError for an unreadable file."""
        place = self._workspace.locate(hunk.file.uri)
        if hunk.kind == "create":
            if place.real.exists():
                return None
            return FileChange(hunk.id, "create", hunk.file.uri, place, text=to_lf(hunk.new_text))
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

    def _name_at(self, place: Location) -> FileName:
        return FileName(path_to_uri(place.path), place.display)


def find_hunk(hunk: ProposedHunk, document: Document) -> Hunk | None:
    """Return where a hunk of an earlier process stands in today's text.

    It holds as far as its base does: the text it was made for is still the same, or the lines it
    replaces are still there, once. None where that is not so.
    """
    text, old = document.text, hunk.old_text
    places: Sequence[int] = ()
    if hunk.base is not None and hunk.range is not None and hunk.base.sha256 == document.rev:
        starts = list(accumulate(map(len, split_lines(text)), initial=0))
        line = hunk.range.start.line
        places = [at for at in starts[line : line + 1] if text.startswith(old, at)]
    elif old:
        places = _lines_at(text, old)
    found = [at for at in places if between_lines(text, at + len(old))]
    if len(found) != 1:
        return None
    return Hunk(hunk.id, found[0], found[0] + len(old), old, hunk.new_text)


def _lines_at(text: str, old: str) -> list[int]:
    """Return where `old` begins a line of `text`."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        if between_lines(text, at):
            found.append(at)
        at = text.find(old, at + 1)
    return found


def range_of(document: Document, hunk: Hunk, encoding: PositionEncoding) -> Range:
    """Return a hunk's place as the editor counts."""
    return Range(
        document.position_at(hunk.start, encoding), document.position_at(hunk.end, encoding)
    )


def text_base(document: Document) -> TextBase:
    """Return how the text that hunks are about is bytes."""
    return TextBase(
        uri=document.uri,
        sha256=document.rev,
        encoding=document.encoding,
        eol=document.eol,
        bom=document.bom,
        version=document.version,
    )


def _flags(text: str, *, sensitive: bool) -> tuple[tuple[HunkFlag, ...], tuple[str, ...]]:
    """Return what a user should look at (W11, W13, C13), and the hidden characters."""
    hidden = invisible_characters(text)
    flags: list[HunkFlag] = ["sensitive"] if sensitive else []
    if hidden:
        flags.append("invisibleCharacters")
    return tuple(flags), hidden
