"""The pending hunks of one session over the editor's text: what its model reads and edits."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from kode_sidecar.domain.hunk import Hunk, follow_all, overlay_text
from kode_sidecar.text.text_edit import Change, Edit, apply_edits, to_lf
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.workspace import TextView, default_view


@dataclass
class _File:
    """`text` is the one that the hunks' offsets refer to."""

    text: str
    hunks: dict[str, Hunk] = field(default_factory=dict[str, Hunk])


@dataclass(frozen=True)
class _SentText:
    """What an editor should hold of a file it does not sync: `text`, while the disk has `disk`."""

    disk: str
    text: str


class Overlay:
    """Hunks by document, each in a turn; a branch of the conversation sees those of its turns.

    Beside them it tracks hunks that no branch sees: what would take an applied one back, under the
    same id, and repairs that are offered to the user alone.

    Feed it every change of the open documents (`follow`, `reread`) so that spans stay exact.
    What it missed, such as a file changed on disk, it finds by comparing lines.
    """

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._held: dict[str, _File] = {}
        self._turns: dict[str, str] = {}
        self._sent: dict[str, _SentText] = {}
        self._branch: frozenset[str] = frozenset()

    def enter_branch(self, turn_ids: Collection[str]) -> None:
        """See the hunks of these turns, and no others, from now on."""
        self._branch = frozenset(turn_ids)

    def view(self, document: Document) -> TextView:
        """The text the model sees, with its own pending edits in it; the note says so."""
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
        """The text of `view`, LF line ends."""
        return self.view(document).text_lf

    def current(self, document: Document) -> Document:
        """The document as the editor holds it, as far as anybody knows.

        An edit that was sent for a file that is not open is not on disk before it is saved.
        """
        sent = self._sent.get(document.key)
        if sent is None:
            return document
        if document.is_open or document.text != sent.disk:
            del self._sent[document.key]
            return document
        return Document(
            document.uri,
            sent.text,
            path=document.path,
            encoding=document.encoding,
            bom=document.bom,
        )

    def pending(self, document: Document) -> list[Hunk]:
        """The branch's hunks that can be applied, in the order of the text."""
        return [hunk for hunk in self.hunks(document) if not hunk.touched]

    def hunks(self, document: Document) -> list[Hunk]:
        """The branch's hunks, touched ones too, in the order of the text as it is now."""
        file = self._synced(document)
        mine = (hunk for hunk in file.hunks.values() if self._is_mine(hunk.id))
        return sorted(mine, key=lambda hunk: (hunk.start, hunk.end))

    def find(self, document: Document, hunk_id: str) -> Hunk | None:
        """A hunk of any branch or of none where it stands now; None if unknown."""
        return self._synced(document).hunks.get(hunk_id)

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

    def text_before(self, key: str) -> str | None:
        """The text that the spans of a document refer to; None where nobody has any."""
        file = self._files.get(key)
        return None if file is None else file.text

    def follow(self, key: str, changes: Sequence[Change]) -> None:
        """The document's text changed: `changes` in turn, each in the text before it."""
        file = self._files.get(key)
        if file is None:
            return
        for change in changes:
            after = apply_edits(file.text, (change,))
            moved = follow_all(list(file.hunks.values()), change, file.text, after)
            file.hunks = {hunk.id: hunk for hunk in moved}
            file.text = after

    def reread(self, document: Document) -> None:
        """The document has a text of unknown origin: find the hunks' places in it by lines."""
        if document.key in self._files:
            self._synced(document)

    def assume_applied(self, document: Document, edits: Sequence[Edit]) -> None:
        """`edits` were sent for a file that is not open: from now on count them as done."""
        current = self.current(document)
        text = apply_edits(current.text, edits)
        self._sent[document.key] = _SentText(document.text, text)
        self.follow(document.key, edits[::-1])

    def _is_mine(self, hunk_id: str) -> bool:
        return self._turns.get(hunk_id) in self._branch

    def _synced(self, document: Document) -> _File:
        """The document's file, its spans brought to the document's present text."""
        text = self.current(document).text
        file = self._files.get(document.key)
        if file is None:
            return _File(text)
        if file.text != text:
            self.follow(document.key, [Edit(0, len(file.text), text)])
        return file
