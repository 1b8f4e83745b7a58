"""Lays one session's pending hunks over the editor's text: the text its model reads and edits."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kode_sidecar.core.domain.hunk import Hunk, follow_all, overlay_text
from kode_sidecar.core.text.change_log import ChangeLog
from kode_sidecar.core.text.line_diff import diff_lines, split_lines
from kode_sidecar.core.text.text_edit import (
    Change,
    Edit,
    apply_edits,
    common_prefix,
    common_suffix,
    to_lf,
)
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.workspace import TextView, default_view

MAX_LOGGED = 256
"""The number of changes logged for a document before its hunks are moved past them."""


@dataclass
class _File:
    """The hunks of one document. Their offsets refer to `text`; `log` has the changes since.

    `adrift`: the document has another text, of unknown origin, so the log cannot continue.
    """

    text: str
    hunks: dict[str, Hunk] = field(default_factory=dict[str, Hunk])
    log: ChangeLog = field(default_factory=ChangeLog)
    adrift: bool = False

    def follow(self, changes: Sequence[Change], after: str) -> None:
        """Move the hunks past changes of `text`, ascending and disjoint, that led to `after`."""
        moved = follow_all(list(self.hunks.values()), changes, self.text, after)
        self.hunks = {hunk.id: hunk for hunk in moved}
        self.text = after

    def settle(self) -> None:
        """Move the hunks past all changes in the log."""
        if len(self.log):
            self.follow(self.log.edits, apply_edits(self.text, self.log.edits))
            self.log.clear()

    def become(self, text: str) -> None:
        """Move the hunks to a new text, by comparison if the log does not lead to it."""
        self.settle()
        self.adrift = False
        if self.text != text:
            self.follow([Edit(0, len(self.text), text)], text)
        self.text = text  # the identical object, so that the next comparison costs nothing


@dataclass(frozen=True)
class _SentText:
    """The text an editor should hold of a file it does not sync, while the disk has `disk`.

    `steps` are the edits sent, oldest first: hunks, and the revision of the text they edit. The
    texts are not stored, since a file may be edited many times before it is saved.
    """

    disk: str
    document: Document
    steps: tuple[tuple[str, Sequence[Hunk]], ...] = ()

    @property
    def hunks(self) -> Sequence[Hunk]:
        """All edits sent, with offsets in the disk's text."""
        found: list[Hunk] = []
        for _, edits in self.steps:
            found += [_on_disk(edit, found) for edit in edits]
            found.sort(key=lambda hunk: (hunk.start, hunk.end))
        return found

    def saved_as(self, text: str) -> "_SentText | None":
        """Return what is still unsaved if the disk has the text before one of the steps."""
        rev, befores = text_rev(text), [before for before, _ in self.steps]
        if text == self.document.text or rev not in befores:
            return None
        return _SentText(text, self.document, self.steps[befores.index(rev) :])

    def is_in(self, text: str) -> bool:
        """Return whether the text now seen contains the sent edits, exactly or more likely so."""
        if text in (self.disk, self.document.text):
            return text != self.disk
        seen = split_lines(to_lf(text))
        return _distance(self.document.lf_text, seen) < _distance(to_lf(self.disk), seen)


def _on_disk(edit: Hunk, sent: Sequence[Hunk]) -> Hunk:
    """Return an edit of the text after `sent`, with offsets in the disk's text.

    One that begins or ends within text that was sent takes all that this stands for.
    """
    start, end, growth = edit.start, edit.end, 0
    for hunk in sent:
        begins = hunk.start + growth
        ends = begins + len(hunk.new_text)
        growth += len(hunk.new_text) - (hunk.end - hunk.start)
        if ends <= edit.start:
            start = edit.start - growth
        elif begins < edit.start:
            start = hunk.start
        if begins < edit.end:
            end = edit.end - growth if ends <= edit.end else hunk.end
    return replace(edit, start=start, end=max(start, end))


def _distance(text: str, lines: Sequence[str]) -> int:
    """Return how many characters differ."""
    own = split_lines(text)
    differ = 0
    for a0, a1, b0, b1 in diff_lines(own, lines):
        old, new = "".join(own[a0:a1]), "".join(lines[b0:b1])
        head = common_prefix(old, new)
        differ += max(len(old), len(new)) - head - common_suffix(old, new, head)
    return differ


class Overlay:
    """Hunks by document, each in a turn; a branch of the conversation sees those of its turns.

    It also tracks hunks that no branch sees: the inverse of an applied hunk, under the same id,
    and hunks that were not applied and may be retried.

    Feed it every change of the open documents (`changed`, `replaced`) so that spans stay exact.
    That is cheap, because hunks are moved only when asked for. Changes it missed, such as those
    of a file on disk, it finds by comparing lines.
    """

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._held: dict[str, _File] = {}
        self._turns: dict[str, str] = {}
        self._sent: dict[str, _SentText] = {}
        self._gone: dict[str, _SentText] = {}
        self._discarded: set[str] = set()
        self._branch: frozenset[str] = frozenset()

    def enter_branch(self, turn_ids: Collection[str]) -> None:
        """Show only the hunks of these turns from now on."""
        self._branch = frozenset(turn_ids)

    def view(self, document: Document) -> TextView:
        """Return the text the model sees, with its pending edits; the note mentions them."""
        pending = self.pending(document)
        current = self.current(document)
        note = default_view(document).note
        if current is not document:
            note += ", with your edits that were sent to the editor but are not saved"
        if pending:
            note += f", with your pending edits ({len(pending)} not yet applied)"
        return TextView(document.shown(self.text_of(document)), note)

    def text_of(self, document: Document) -> str:
        """Return the document's text with its pending edits, with LF line ends."""
        pending, current = self.pending(document), self.current(document)
        return to_lf(overlay_text(current.text, pending)) if pending else current.lf_text

    def current(self, document: Document) -> Document:
        """Return the document as the editor holds it, as far as we know.

        An edit sent for a closed file is not on disk until the editor saves it.
        """
        sent = self._sent.get(document.key)
        if sent is None:
            return document
        if document.is_open or document.text != sent.disk:
            rest = None if document.is_open else sent.saved_as(document.text)
            if rest is not None:
                self._sent[document.key] = rest
                return rest.document
            del self._sent[document.key]
            if not sent.is_in(document.text):
                self._gone[document.key] = sent
            return document
        return sent.document

    def was_discarded(self, document: Document, hunk_id: str) -> bool:
        """Return whether an edit sent for a closed file turned out to be missing from it.

        Its hunk is then tracked as one that can be applied again.
        """
        self._synced(document)
        return hunk_id in self._discarded

    def pending(self, document: Document) -> list[Hunk]:
        """Return the branch's hunks that can be applied, in the order of the text."""
        return [hunk for hunk in self.hunks(document) if not hunk.touched]

    def hunks(self, document: Document) -> list[Hunk]:
        """Return the branch's hunks, including touched ones, in the order of the present text."""
        file = self._synced(document)
        mine = (hunk for hunk in file.hunks.values() if self._is_mine(hunk.id))
        return sorted(mine, key=lambda hunk: (hunk.start, hunk.end))

    def find(self, document: Document, hunk_id: str) -> Hunk | None:
        """Return a hunk of any branch or of none at its present position; None if unknown."""
        return self._synced(document).hunks.get(hunk_id)

    def find_all(self, document: Document, hunk_ids: Collection[str]) -> list[Hunk]:
        """Return the known ones of these hunks, in the order of the text.

        Hunks at the same place, such as reverted insertions, keep the order of their texts.
        """
        hunks = self._synced(document).hunks.values()
        known = (hunk for hunk in hunks if hunk.id in hunk_ids)
        return sorted(known, key=lambda hunk: (hunk.start, hunk.end))

    def add(self, document: Document, hunks: Iterable[Hunk], turn_id: str) -> None:
        """Make hunks of the document's present text pending."""
        file = self._synced(document)
        self._files[document.key] = file
        for hunk in hunks:
            file.hunks[hunk.id] = hunk
            self._turns[hunk.id] = turn_id

    def track(self, document: Document, hunks: Iterable[Hunk]) -> None:
        """Track these hunks, which no branch sees, in place of those with the same ids."""
        file = self._synced(document)
        self._files[document.key] = file
        self._put(file, hunks)

    def _put(self, file: _File, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            file.hunks[hunk.id] = hunk
            self._turns.pop(hunk.id, None)

    def remove(self, key: str, hunk_ids: Iterable[str]) -> None:
        """Drop these hunks, whatever their status."""
        gone = list(hunk_ids)
        for hunk_id in gone:
            self._turns.pop(hunk_id, None)
        for known in (self._files, self._held):
            file = known.get(key)
            if file is None:
                continue
            for hunk_id in gone:
                file.hunks.pop(hunk_id, None)
            if not file.hunks:
                del known[key]

    def detach(self, hunk_ids: Iterable[str]) -> None:
        """Hide hunks from every branch but keep tracking their positions, so undo can find them."""
        for hunk_id in hunk_ids:
            self._turns.pop(hunk_id, None)

    def hold(self, key: str) -> None:
        """Set a deleted file's hunks aside until the file is restored with its whole text.

        An editor opens a restored file empty and then fills it; that must not touch the hunks.
        """
        if key in self._files:
            self._held[key] = self._files.pop(key)

    def release(self, key: str) -> None:
        """Restore the hunks that `hold` set aside; they are located in the present text."""
        if key in self._held:
            self._files[key] = self._held.pop(key)

    def move(self, key: str, new_key: str) -> None:
        """Move the hunks of a document that the editor renamed."""
        for known in (self._files, self._sent):
            if key in known:
                known[new_key] = known.pop(key)  # type: ignore[assignment]

    def changed_keys(self) -> list[str]:
        """Return documents with hunks of this branch, or with edits sent but not saved."""
        keys = dict.fromkeys(self._sent)
        for key, file in self._files.items():
            if any(map(self._is_mine, file.hunks)):
                keys[key] = None
        return list(keys)

    def changed(self, key: str, changes: Iterable[Change]) -> None:
        """Log consecutive `changes` of the document's text."""
        file = self._files.get(key)
        if file is None or file.adrift:
            return
        for change in changes:
            file.log.add(change)
        if len(file.log) > MAX_LOGGED:
            file.settle()

    def follow(self, key: str, before: str, steps: Sequence[Change]) -> None:
        """The document's text `before` changed: `steps` at once, ascending and disjoint."""
        file = self._files.get(key)
        if file is None or file.adrift:
            return
        file.settle()
        if file.text == before:
            file.follow(steps, apply_edits(before, steps))
        else:  # somebody has looked at the file on disk since
            file.adrift = True

    def replaced(self, key: str) -> None:
        """Note that the document has a text of unknown origin, or none for now."""
        file = self._files.get(key)
        if file is not None:
            file.settle()
            file.adrift = True

    def assume_applied(
        self,
        document: Document,
        text: str,
        edits: Mapping[str, Edit],
        inverses: Iterable[Hunk],
    ) -> None:
        """Count `edits` of `text`, by hunk id, as applied: they were sent for a closed file.

        `inverses` revert them, with offsets in the text after them; they are tracked. If the file
        has no unsaved edits yet, `text` is what the disk holds.
        """
        known = self._sent.get(document.key) or _SentText(text, document)
        after = apply_edits(text, edits.values())
        hunks = [
            Hunk(key, one.start, one.end, text[one.start : one.end], one.text)
            for key, one in edits.items()
        ]
        sent = Document(
            document.uri,
            after,
            path=document.path,
            encoding=document.encoding,
            bom=document.bom,
        )
        steps = (*known.steps, (text_rev(text), hunks))
        self._sent[document.key] = _SentText(known.disk, sent, steps)
        self._discarded -= edits.keys()
        file = self._files.setdefault(document.key, _File(text))
        file.become(text)
        file.follow(list(edits.values()), after)
        self._put(file, inverses)

    def _is_mine(self, hunk_id: str) -> bool:
        return self._turns.get(hunk_id) in self._branch

    def _synced(self, document: Document) -> _File:
        """Return the document's hunks, moved to the document's present text."""
        text = self.current(document).text
        file = self._files.get(document.key)
        if file is None:
            return _File(text)
        file.become(text)
        gone = self._gone.pop(document.key, None)
        if gone is not None:
            back = [Edit(0, len(gone.disk), text)] if text != gone.disk else []
            file.hunks |= {hunk.id: hunk for hunk in follow_all(gone.hunks, back, gone.disk, text)}
            self._discarded |= {hunk.id for hunk in gone.hunks}
        return file
