"""Makes proposed hunks pending and tells the editor of them, in one step without an await."""

from collections.abc import Mapping, Sequence

from kode_sidecar.domain.change_set import Range, TextBase
from kode_sidecar.domain.hunk import Hunk, compose
from kode_sidecar.edits.hunk_ledger import HunkLedger
from kode_sidecar.edits.proposed_hunk import (
    FileName,
    ProposedHunk,
    new_file_hunk,
    new_hunk,
)
from kode_sidecar.kernel.contracts import NewId
from kode_sidecar.text.text_edit import shift
from kode_sidecar.text.uris import canonical_key, path_to_uri
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.file_changes import FileChange, FileChanges
from kode_sidecar.workspace.freshness import Freshness
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.paths import Location
from kode_sidecar.workspace.workspace import Workspace

Heirs = Mapping[str, str | None]
"""Hunks that were taken over, each with the one that did, or None."""


class Announcer:
    """Knows how a hunk comes into the overlay, into the ledger and onto the wire."""

    def __init__(
        self,
        workspace: Workspace,
        overlay: Overlay,
        changes: FileChanges,
        ledger: HunkLedger,
        freshness: Freshness,
        new_id: NewId,
    ) -> None:
        self._workspace = workspace
        self._overlay = overlay
        self._changes = changes
        self._ledger = ledger
        self._freshness = freshness
        self.new_id = new_id

    def text(
        self, document: Document, after: str, turn_id: str, *, sensitive: bool
    ) -> list[ProposedHunk]:
        """The hunks that make `after` of what the model sees; those they touch are superseded."""
        current = self._overlay.current(document)
        made = compose(current.text, current.eol, self._overlay.pending(document), after)
        spans = [
            Hunk(self.new_id("hunk"), draft.start, draft.end, draft.old_text, draft.new_text)
            for draft in made.drafts
        ]
        heirs: dict[str, str | None] = dict.fromkeys(made.withdrawn)
        lost = [old for old in self._overlay.hunks(document) if old.touched]
        for draft, span in zip(made.drafts, spans, strict=True):
            met = (old.id for old in lost if shift(old.start, old.end, span.edit)[2])
            heirs |= dict.fromkeys((*draft.replaces, *met), span.id)
        self._overlay.remove(document.key, heirs)
        self._overlay.add(document, spans, turn_id)
        hunks = self._announce(document, spans, turn_id, sensitive=sensitive)
        self._ledger.supersede(heirs)
        return hunks

    def repair(self, document: Document, broken: ProposedHunk, hunk_ids: Sequence[str]) -> None:
        """Offer the user tracked hunks that mend a diverged one, unless others wait there."""
        found = [self._overlay.find(document, hunk_id) for hunk_id in hunk_ids]
        spans = [span for span in found if span is not None and not span.touched]
        waiting = self._overlay.pending(document)
        if any(shift(one.start, one.end, span.edit)[2] for one in waiting for span in spans):
            self._overlay.remove(document.key, hunk_ids)
            return
        sensitive = "sensitive" in broken.flags
        self._announce(document, spans, broken.turn_id, sensitive=sensitive, repairs=broken.id)

    def file(
        self, change: FileChange, turn_id: str, heirs: Heirs, *, sensitive: bool
    ) -> ProposedHunk:
        """One hunk for a file as a whole; it takes over `heirs`."""
        new_file = self.name_at(change.target) if change.target else None
        name = self._name(change)
        gaps = self._freshness.gaps_in_all(change.key) if change.kind == "delete" else ()
        hunk = new_file_hunk(change, turn_id, name, new_file, sensitive=sensitive, gaps=gaps)
        self.forget(change.key, heirs)
        self._changes.add(change, turn_id)
        self._ledger.announce([hunk], [None])
        self._ledger.supersede(heirs)
        return hunk

    def withdraw(self, key: str, heirs: Heirs) -> None:
        """Hunks of a document of which nothing is left."""
        self.forget(key, heirs)
        self._ledger.supersede(heirs)

    def forget(self, key: str, hunk_ids: Heirs) -> None:
        """They are no longer pending."""
        self._overlay.remove(key, hunk_ids)
        self._changes.remove(hunk_ids)

    def renamed(self, change: FileChange) -> None:
        """The editor has done that; what is known of a moved file goes with it."""
        if change.target is not None:
            new = self.name_at(change.target)
            self._overlay.move(change.key, new.key)
            self._ledger.rename(self._name(change), new)

    def name_of(self, document: Document) -> FileName:
        """A document's names."""
        return FileName(document.uri, document.key, self._workspace.display_path(document.key))

    def name_at(self, place: Location) -> FileName:
        """The names of the file at a place."""
        uri = path_to_uri(place.path)
        return FileName(uri, canonical_key(uri), place.display)

    def range_of(self, document: Document, hunk: Hunk) -> Range:
        """A hunk's place as the editor counts."""
        encoding = self._workspace.position_encoding
        return Range(
            document.position_at(hunk.start, encoding), document.position_at(hunk.end, encoding)
        )

    def _name(self, change: FileChange) -> FileName:
        return FileName(change.uri, change.key, change.place.display)

    def _announce(
        self,
        document: Document,
        spans: Sequence[Hunk],
        turn_id: str,
        *,
        sensitive: bool,
        repairs: str | None = None,
    ) -> list[ProposedHunk]:
        current = self._overlay.current(document)
        file = self.name_of(document)
        hunks = [
            new_hunk(
                span,
                turn_id,
                file,
                sensitive=sensitive,
                gaps=self._freshness.gaps(current, span.start, span.end),
                is_open=document.is_open,
            )
            for span in spans
        ]
        for hunk in hunks:
            hunk.repairs = repairs
        ranges = [self.range_of(current, span) for span in spans]
        self._ledger.announce(hunks, ranges, text_base(current))
        return hunks


def text_base(document: Document) -> TextBase:
    """How the text that hunks are about is bytes."""
    return TextBase(
        uri=document.uri,
        sha256=document.rev,
        encoding=document.encoding,
        eol=document.eol,
        bom=document.bom,
        version=document.version,
    )
