"""Makes hunks pending and announces them to the editor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.core.domain.change_set import (
    FileName,
    HunkFlag,
    ProposedHunk,
    Range,
    TextBase,
)
from kode_sidecar.core.domain.hunk import Composition, Hunk, Shifts, compose
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.text.line_merge import merge_lines
from kode_sidecar.core.text.shown_text import invisible_characters
from kode_sidecar.core.text.text_edit import Edit, apply_edits, repeats_beside
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.file_changes import FileChange
from kode_sidecar.infrastructure.workspace.paths import Location

Replacements = Mapping[str, str | None]
"""Hunks that were taken over, each with the one that did, or None."""

MAX_MERGED_CHARS = 100_000
"""What is larger than this is not merged for the user."""


@dataclass(frozen=True)
class _Source:
    """What hunks of one proposal have in common."""

    turn_id: str
    file: FileName
    base: TextBase
    block_id: str
    flags: tuple[HunkFlag, ...]
    unedited: "UneditedText"


@dataclass(frozen=True)
class Basis:
    """The editor's text of a document with the hunks that are pending in it."""

    text: str
    eol: str
    pending: Sequence[Hunk]

    def composed(self, after: str, *, by_lines: bool = True) -> Composition:
        """Return the hunks that make `after` (LF) of the text with its pending edits. Pure."""
        return compose(self.text, self.eol, self.pending, after, by_lines=by_lines)


class UneditedText:
    """A document's text without the hunks that are applied in it, so that what is new is a user's.

    Lines that another hunk took away or brought are no repetition by the user. It is made when it
    is asked for first, on the text of that moment: most edits never ask.
    """

    def __init__(self, services: EditServices, document: Document) -> None:
        self._services = services
        self._document = document

    @cached_property
    def _applied(self) -> Sequence[Hunk]:
        """What takes the applied hunks back, in the order of the text."""
        ledger, overlay = self._services.ledger, self._services.overlay
        done = [hunk.id for hunk in ledger.of_file(self._document.key) if hunk.is_done]
        applied: list[Hunk] = []
        for span in overlay.find_all(self._document, done):
            if not span.touched and (not applied or applied[-1].end <= span.start):
                applied.append(span)
        return applied

    @cached_property
    def _text(self) -> str:
        current = self._services.overlay.current(self._document)
        return apply_edits(current.text, [span.edit for span in self._applied])

    def repeats(self, span: Hunk, lines: str) -> int:
        """Return how often `lines` stand right beside a place, which may be that of a hunk."""
        above = takewhile(lambda one: one.id != span.id and one.end <= span.start, self._applied)
        start = span.start + sum(len(one.new_text) - (one.end - one.start) for one in above)
        return repeats_beside(self._text, start, start + len(lines), lines)


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

    def basis(self, document: Document) -> Basis:
        """Return what new hunks of a document are made from."""
        current = self._overlay.current(document)
        return Basis(current.text, current.eol, self._overlay.pending(document))

    def holds(self, document: Document, basis: Basis) -> bool:
        """Return whether a document and its hunks are still what `basis` says."""
        opened = self._workspace.documents.get(document.key)
        if opened is not (document if document.is_open else None):
            return False
        same = self._overlay.current(document).text is basis.text
        return same and self._overlay.pending(document) == basis.pending

    def text(
        self, document: Document, made: Composition, call: ToolCall, *, sensitive: bool
    ) -> list[ProposedHunk]:
        """Propose what was composed from the basis of now; touched hunks are superseded."""
        current = self._overlay.current(document)
        spans = [replace(draft, id=self.new_id("hunk")) for draft in made.drafts]
        replacements: dict[str, str | None] = dict.fromkeys(made.withdrawn)
        for span in spans:
            replacements |= dict.fromkeys(span.replaces, span.id)
        edits = Shifts([span.edit for span in spans])
        for old in self._overlay.hunks(document):
            met = edits.touching(old.start, old.end) if old.touched else range(0)
            if met:
                replacements[old.id] = spans[met[-1]].id
        self._overlay.remove(document.key, replacements)
        self._overlay.add(document, spans, call.turn_id)
        file = FileName(document.uri, self._workspace.display_path(document.key))
        source = self._source(document, file, call, sensitive=sensitive)
        hunks = [self._proposed(current, span, source) for span in spans]
        self._ledger.announce(hunks)
        self._ledger.supersede(replacements)
        return hunks

    def _file_flags(self, uri: str, *, sensitive: bool) -> tuple[HunkFlag, ...]:
        """Return what a user should look at because of the file (W11, W13)."""
        if sensitive:
            return ("sensitive",)
        return ("runsInBuild",) if self._workspace.runs_in_build(uri) else ()

    def _source(
        self, document: Document, file: FileName, of: ToolCall | ProposedHunk, *, sensitive: bool
    ) -> _Source:
        return _Source(
            turn_id=of.turn_id,
            file=file,
            base=text_base(self._overlay.current(document)),
            block_id=of.block_id,
            flags=self._file_flags(file.uri, sensitive=sensitive),
            unedited=UneditedText(self._services, document),
        )

    def _proposed(self, current: Document, span: Hunk, source: _Source) -> ProposedHunk:
        flags, hidden = _with_hidden(source.flags, span.new_text)
        gaps = self._services.freshness.gaps(current, span.start, span.end)
        return ProposedHunk(
            id=span.id,
            turn_id=source.turn_id,
            file=source.file,
            old_text=span.old_text,
            new_text=span.new_text,
            flags=(*gaps, *flags),
            code_points=hidden,
            block_id=source.block_id,
            range=range_of(current, span, self._workspace.position_encoding),
            base=source.base,
            repeats=source.unedited.repeats(span, span.old_text),
        )

    def file(
        self, change: FileChange, call: ToolCall, replacements: Replacements, *, sensitive: bool
    ) -> ProposedHunk:
        """Propose to create, rename or delete a file; the hunk takes over `replacements`.

        A new name may hide something as well as a new text.
        """
        created = change.kind == "create"
        new_file = _name_at(change.target) if change.target else None
        file = FileName(change.uri, change.place.display)
        name = (new_file or file).path if change.adds is not None else ""
        shown = name + (change.text if created else "")
        file_flags = self._file_flags((new_file or file).uri, sensitive=sensitive)
        flags, hidden = _with_hidden(file_flags, shown)
        deleted = change.kind == "delete"
        gaps = self._services.freshness.gaps_in_all(change.key) if deleted else ()
        hunk = ProposedHunk(
            id=change.id,
            turn_id=call.turn_id,
            file=file,
            old_text="" if created else change.text,
            new_text=change.text if created else "",
            kind=change.kind,
            new_file=new_file,
            flags=(*gaps, *flags),
            code_points=hidden,
            block_id=call.block_id,
        )
        self.forget(change.key, replacements)
        self._changes.add(change, call.turn_id)
        self._ledger.announce([hunk])
        self._ledger.supersede(replacements)
        return hunk

    def withdraw(self, key: str, replacements: Replacements) -> None:
        """Supersede hunks of a document of which nothing is left."""
        self.forget(key, replacements)
        self._ledger.supersede(replacements)

    def forget(self, key: str, hunk_ids: Replacements) -> None:
        """Count these hunks as pending no longer."""
        self._overlay.remove(key, hunk_ids)
        self._changes.remove(hunk_ids)

    def renamed(self, change: FileChange) -> None:
        """Take what is known of a file to its new name, once the editor has moved it."""
        if change.target is not None:
            new = _name_at(change.target)
            self._overlay.move(change.key, new.key)
            self._ledger.rename(FileName(change.uri, change.place.display), new)

    def withhold(self, hunk_ids: Sequence[str]) -> None:
        """Show these hunks to the model no longer; they are followed, and may be tried again."""
        self._overlay.detach(hunk_ids)
        self._changes.detach(hunk_ids)

    def merge(self, document: Document, hunk: ProposedHunk) -> ProposedHunk | None:
        """Offer what is left of a hunk in conflict, merged by lines with the text there.

        It is a hunk like any other, and takes the place of an earlier offer. None where nothing
        would be left, or where others of the session's hunks stand.
        """
        current = self._overlay.current(document)
        span = self._overlay.find(document, hunk.id)
        if span is None or span.end - span.start > MAX_MERGED_CHARS or document.is_notebook:
            return None  # the merged lines of a notebook may be no JSON
        there = current.text[span.start : span.end]
        merged = merge_lines(hunk.old_text, there, hunk.new_text)
        others = (one for one in self._overlay.pending(document) if one.id != hunk.id)
        if not merged.done or any(o.start <= span.end and span.start <= o.end for o in others):
            return None
        offer = Hunk(self.new_id("hunk"), span.start, span.end, there, merged.text)
        self._overlay.add(document, [offer], hunk.turn_id)
        what = f"{merged.left_out} of its changes meet yours and are left out; " * (
            merged.left_out > 0
        )
        source = self._source(document, hunk.file, hunk, sensitive="sensitive" in hunk.flags)
        offered = self._proposed(current, offer, source)
        offered.merge_of = hunk.id
        offered.reason = f"{what}the rest is merged with the text there."
        return offered


def _name_at(place: Location) -> FileName:
    return FileName(place.uri, place.display)


def _with_hidden(
    flags: tuple[HunkFlag, ...], text: str
) -> tuple[tuple[HunkFlag, ...], tuple[str, ...]]:
    """Return the flags of a text (C13), and its hidden characters."""
    hidden = invisible_characters(text)
    return ((*flags, "invisibleCharacters") if hidden else flags), hidden


def range_of(document: Document, hunk: Hunk | Edit, encoding: PositionEncoding) -> Range:
    """Return the place of a hunk, or of an edit, as the editor counts."""
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
