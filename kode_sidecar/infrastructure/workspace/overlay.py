"""The pending hunks of one session over the editor's text: what its model reads and edits."""

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
"""Changes of a document that are kept before its hunks are moved past them."""


@dataclass
class _File:
    """`text` is the one that the hunks' offsets refer to; `log` is what happened to it since.

    `adrift`: the text is another one, of unknown origin, so that the log cannot go on.
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
        """Move the hunks past all that is in the log."""
        if len(self.log):
            self.follow(self.log.edits, apply_edits(self.text, self.log.edits))
            self.log.clear()

    def become(self, text: str) -> None:
        """Move the hunks to a text, whatever happened to the one before."""
        self.settle()
        self.adrift = False
        if self.text != text:
            self.follow([Edit(0, len(self.text), text)], text)
        self.text = text  # the same string, so that the next comparison costs nothing


@dataclass(frozen=True)
class _SentText:
    """What an editor should hold of a file it does not sync, while the disk has `disk`.

    `steps` are what was sent, oldest first: edits as hunks, and the revision of the text they are
    edits of; not that text, for a file may be edited many times before it is saved.
    """

    disk: str
    document: Document
    steps: tuple[tuple[str, Sequence[Hunk]], ...] = ()

    @property
    def hunks(self) -> Sequence[Hunk]:
        """What was sent, in places of the disk's text."""
        found: list[Hunk] = []
        for _, edits in self.steps:
            found += [_on_disk(edit, found) for edit in edits]
            found.sort(key=lambda hunk: (hunk.start, hunk.end))
        return found

    def saved_as(self, text: str) -> "_SentText | None":
        """Return what is still not saved once the disk has the text between two of the steps."""
        rev, befores = text_rev(text), [before for before, _ in self.steps]
        if text == self.document.text or rev not in befores:
            return None
        return _SentText(text, self.document, self.steps[befores.index(rev) :])

    def is_in(self, text: str) -> bool:
        """Return whether a text that is seen at last has what was sent, or rather has not."""
        if text in (self.disk, self.document.text):
            return text != self.disk
        seen = split_lines(to_lf(text))
        return _distance(self.document.lf_text, seen) < _distance(to_lf(self.disk), seen)


def _on_disk(edit: Hunk, sent: Sequence[Hunk]) -> Hunk:
    """Return an edit of the text that `sent` made, in its place in the disk's text."""
    growth = 0
    for hunk in sent:
        if hunk.start + growth + len(hunk.new_text) <= edit.start:
            growth += len(hunk.new_text) - (hunk.end - hunk.start)
    return replace(edit, start=edit.start - growth, end=edit.end - growth)


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

    Beside them it tracks hunks that no branch sees: what would take an applied one back, under the
    same id, and what was not applied and may be tried again.

    Feed it every change of the open documents (`changed`, `replaced`) so that spans stay exact.
    That costs next to nothing: the hunks are moved when somebody asks for them. What it missed,
    such as a file changed on disk, it finds by comparing lines.
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
        """See the hunks of these turns, and no others, from now on."""
        self._branch = frozenset(turn_ids)

    def view(self, document: Document) -> TextView:
        """Return the text the model sees, with its own pending edits in it; the note says so."""
        pending = self.pending(document)
        current = self.current(document)
        note = default_view(document).note
        if current is not document:
            note += ", with your edits that were sent to the editor but are not saved"
        if not pending:
            return TextView(current.lf_text, note)
        note += f", with your pending edits ({len(pending)} not yet applied)"
        return TextView(to_lf(overlay_text(current.text, pending)), note)

    def text_of(self, document: Document) -> str:
        """Return the text of `view`, LF line ends."""
        return self.view(document).text_lf

    def current(self, document: Document) -> Document:
        """Return the document as the editor holds it, as far as anybody knows.

        An edit that was sent for a file that is not open is not on disk before it is saved.
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
        """Return whether what was sent for a file that was not open turned out not to be there.

        The hunk is followed as one that can be applied again then.
        """
        self._synced(document)
        return hunk_id in self._discarded

    def pending(self, document: Document) -> list[Hunk]:
        """Return the branch's hunks that can be applied, in the order of the text."""
        return [hunk for hunk in self.hunks(document) if not hunk.touched]

    def hunks(self, document: Document) -> list[Hunk]:
        """Return the branch's hunks, touched ones too, in the order of the text as it is now."""
        file = self._synced(document)
        mine = (hunk for hunk in file.hunks.values() if self._is_mine(hunk.id))
        return sorted(mine, key=lambda hunk: (hunk.start, hunk.end))

    def find(self, document: Document, hunk_id: str) -> Hunk | None:
        """Return a hunk of any branch or of none where it stands now; None if unknown."""
        return self._synced(document).hunks.get(hunk_id)

    def find_all(self, document: Document, hunk_ids: Collection[str]) -> list[Hunk]:
        """Return those of these hunks that are known, in the order of the text.

        Of several in one place, such as insertions that were taken back, the first stood above.
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
        """Follow these hunks, which no branch sees; one of that id is replaced."""
        file = self._synced(document)
        self._files[document.key] = file
        self._put(file, hunks)

    def _put(self, file: _File, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            file.hunks[hunk.id] = hunk
            self._turns.pop(hunk.id, None)

    def remove(self, key: str, hunk_ids: Iterable[str]) -> None:
        """Forget these hunks, whatever became of them."""
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
        """No branch sees these hunks any more; they are followed on."""
        for hunk_id in hunk_ids:
            self._turns.pop(hunk_id, None)

    def hold(self, key: str) -> None:
        """A file that is gone is about to come back: its hunks wait for its whole text.

        An editor that opens it empty and then fills it in has deleted nothing of them.
        """
        if key in self._files:
            self._held[key] = self._files.pop(key)

    def release(self, key: str) -> None:
        """What was held is found again in the text of now."""
        if key in self._held:
            self._files[key] = self._held.pop(key)

    def move(self, key: str, new_key: str) -> None:
        """The editor renamed the document; what is known of it goes with it."""
        for known in (self._files, self._sent):
            if key in known:
                known[new_key] = known.pop(key)  # type: ignore[assignment]

    def changed_keys(self) -> list[str]:
        """Documents with hunks of this branch, or with an edit that is sent and not saved."""
        keys = dict.fromkeys(self._sent)
        for key, file in self._files.items():
            if any(map(self._is_mine, file.hunks)):
                keys[key] = None
        return list(keys)

    def changed(self, key: str, changes: Iterable[Change]) -> None:
        """The document's text changed: `changes` one after the other."""
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
        """The document has a text of unknown origin, or none at all for now."""
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
        """`edits` of `text`, by hunk id, were sent for a file that is not open: count them as done.

        `inverses` take them back, in places of the text they leave; they are tracked. Where nothing
        is known to be unsaved any more, somebody has seen `text` on the disk meanwhile.
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
        """Return the document's file, its spans brought to the document's present text."""
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
