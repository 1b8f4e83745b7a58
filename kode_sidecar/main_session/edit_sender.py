"""Sends edits of one document to the editor and finds out what became of them."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kode_sidecar.domain.change_set import Range
from kode_sidecar.domain.text_edit import Change, Edit, minimal_edits, to_lf, with_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.main_session.contracts import ApplyAnswer, DocumentEdit, EditorPort, TextEdit
from kode_sidecar.main_session.verification import SentEdit
from kode_sidecar.workspace.documents import Document, DocumentChange
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace

ATTEMPTS = 2
"""An edit that left no trace is rebased and sent once more."""


class EditLocks:
    """One lock per document, shared by all sessions of an editor."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, key: str) -> asyncio.Lock:
        """The lock of the document with that canonical key."""
        return self._locks.setdefault(key, asyncio.Lock())


@dataclass(frozen=True)
class Order:
    """Accepted hunks of one document.

    `texts` gives by hunk id what to put there, None for the hunk's own new text. `synced` names
    the hunks proposed while the editor synced the document, which it must still do then.
    """

    uri: str
    label: str
    texts: Mapping[str, str | None]
    synced: Collection[str] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of one hunk. `found` is what stands there instead (LF), if it diverged.

    `unconfirmed`: sent for a file that the editor does not sync, so nobody can tell.
    """

    state: Literal["applied", "unconfirmed", "conflict", "diverged", "stale"]
    found: str = ""


@dataclass
class _Flight:
    """One edit on its way. `lost`: its document was closed or went out of step."""

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    document: Document | None = None
    sent: SentEdit | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict[str, Edit])
    answer: ApplyAnswer | None = None
    lost: bool = False


class EditSender:
    """Keeps the overlay in step with the open documents, and sends its hunks.

    At most one edit per document may be on its way: the caller holds that document's lock.
    `settle_seconds` is how long after its answer an editor may take to report the new text.
    """

    def __init__(
        self, workspace: Workspace, overlay: Overlay, editor: EditorPort, settle_seconds: float
    ) -> None:
        self._workspace = workspace
        self._overlay = overlay
        self._editor = editor
        self._settle_seconds = settle_seconds
        self._flights: dict[str, _Flight] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unsubscribe = workspace.documents.subscribe(self._changed)

    def close(self) -> None:
        """Stop listening and give up what is on its way."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()

    def find_document(self, uri: str) -> Document | None:
        """The document as it is now; None where it is gone, out of step or out of bounds."""
        document = self._workspace.documents.get(uri)
        if document is not None:
            return document if document.synced else None
        try:
            return self._workspace.document(uri, purpose="edit")
        except KodeError:
            return None

    async def send(self, order: Order) -> dict[str, Outcome]:
        """Apply the order's hunks and say what became of each one."""
        outcomes: dict[str, Outcome] = {}
        flight = _Flight()
        for _ in range(ATTEMPTS):
            flight = await self._fly(order, outcomes)
            if len(outcomes) == len(order.texts):
                break
        missing = [hunk_id for hunk_id in order.texts if hunk_id not in outcomes]
        outcomes |= dict.fromkeys(missing, Outcome("conflict"))
        self._explain(order.label, flight, outcomes)
        return outcomes

    async def _fly(self, order: Order, outcomes: dict[str, Outcome]) -> _Flight:
        """One attempt. It ends when the text shows all of it, or some time after the answer."""
        flight = _Flight()
        transmission = self._spawn(self._transmit(flight, order, outcomes))
        settled = self._spawn(flight.settled.wait())
        try:
            await asyncio.wait({transmission, settled}, return_when=asyncio.FIRST_COMPLETED)
            if transmission.done():
                transmission.result()
            if flight.document is not None and self._live(flight.document.key):
                await asyncio.wait({settled}, timeout=self._settle_seconds)
        finally:
            settled.cancel()
            if flight.document is not None:
                self._flights.pop(flight.document.key, None)
        self._judge(flight, outcomes)
        return flight

    async def _transmit(self, flight: _Flight, order: Order, outcomes: dict[str, Outcome]) -> None:
        """Build the edit on the text of this moment and send it, with no await in between (O7)."""
        todo = {key: text for key, text in order.texts.items() if key not in outcomes}
        document = self.find_document(order.uri)
        if document is None or not document.is_open:
            gone = [key for key in todo if document is None or key in order.synced]
            outcomes |= dict.fromkeys(gone, Outcome("stale"))
            todo = {key: text for key, text in todo.items() if key not in gone}
        if document is None:
            return
        current = self._overlay.current(document)
        edits = self._edits(document, current, todo, outcomes)
        if not edits:
            return
        flight.document, flight.edits = document, edits
        flight.sent = SentEdit(current.text, edits)
        self._flights[document.key] = flight
        flight.answer = await self._editor.apply_edit(self._wire(order.label, current, edits))

    def _edits(
        self,
        document: Document,
        current: Document,
        todo: Mapping[str, str | None],
        outcomes: dict[str, Outcome],
    ) -> dict[str, Edit]:
        """The hunks where they stand now. One that the user touched is a conflict."""
        edits: dict[str, Edit] = {}
        for hunk_id, text in todo.items():
            hunk = self._overlay.find(document, hunk_id)
            if hunk is None or hunk.touched:
                outcomes[hunk_id] = Outcome("conflict")
                continue
            new = hunk.new_text if text is None else with_eol(text, current.eol)
            if to_lf(new) == to_lf(hunk.old_text):
                self._overlay.remove(document.key, [hunk_id])
                outcomes[hunk_id] = Outcome("applied")
                continue
            edits[hunk_id] = Edit(hunk.start, hunk.end, new)
        return edits

    def _wire(self, label: str, current: Document, edits: Mapping[str, Edit]) -> DocumentEdit:
        encoding = self._workspace.position_encoding
        ordered = sorted(edits.values(), key=lambda edit: (edit.start, edit.end))
        small = minimal_edits(current.text, ordered)
        return DocumentEdit(
            label=label,
            uri=current.uri,
            version=current.version if current.is_open else None,
            edits=[
                TextEdit(
                    Range(
                        current.position_at(edit.start, encoding),
                        current.position_at(edit.end, encoding),
                    ),
                    edit.text,
                )
                for edit in small
            ],
        )

    def _judge(self, flight: _Flight, outcomes: dict[str, Outcome]) -> None:
        """What became of the hunks of a flight; those that left no trace get no outcome."""
        document, sent = flight.document, flight.sent
        if document is None or sent is None:
            return
        live = self._live(document.key)
        if live is not None:
            text = live.text
            for hunk_id, verdict in sent.verdicts(text).items():
                if verdict == "applied":
                    outcomes[hunk_id] = Outcome("applied")
                elif verdict == "diverged":
                    outcomes[hunk_id] = Outcome("diverged", sent.found(hunk_id, text))
            return
        outcomes |= dict.fromkeys(sent.verified, Outcome("applied"))
        rest = [hunk_id for hunk_id in flight.edits if hunk_id not in sent.verified]
        if flight.lost:
            outcomes |= dict.fromkeys(rest, Outcome("stale"))
        elif flight.answer is not None and flight.answer.applied:
            self._overlay.remove(document.key, rest)
            self._overlay.assume_applied(document, list(flight.edits.values()))
            outcomes |= dict.fromkeys(rest, Outcome("unconfirmed"))
        else:
            outcomes |= dict.fromkeys(rest, Outcome("conflict"))

    def _explain(self, label: str, flight: _Flight, outcomes: Mapping[str, Outcome]) -> None:
        """Tell why an edit that was sent is not there: the cause mostly lies in the editor."""
        states = {outcomes[hunk_id].state for hunk_id in flight.edits}
        if "diverged" in states:
            why = "the text that didChange then tells is not what the edit makes"
        elif "conflict" not in states:
            return
        elif flight.answer is not None and flight.answer.applied:
            why = "the editor answered that it is applied, but no didChange shows it"
        else:
            reason = flight.answer.reason if flight.answer is not None else None
            why = f"the editor did not apply it: {reason or 'it gave no reason'}"
        self._editor.warn(f"workspace/applyEdit `{label}`: {why}")

    def _live(self, key: str) -> Document | None:
        """The document, if the editor syncs it."""
        document = self._workspace.documents.get(key)
        return document if document is not None and document.synced else None

    def _changed(self, change: DocumentChange) -> None:
        """Follow a change of a document, as our own where it is."""
        key, after = change.document.key, change.document.text
        flight = self._flights.get(key)
        if change.kind in ("closed", "unsynced"):
            if flight is not None:
                flight.lost = True
                flight.settled.set()
            return
        before = self._overlay.text_before(key)
        if before is None or before == after:
            return
        step = change.entries[0] if change.entries else Edit(0, len(before), after)
        steps: Sequence[Change] = (step,)
        if flight is not None and flight.sent is not None:
            steps = flight.sent.follow(before, step)
            self._overlay.remove(key, flight.sent.verified)
            if flight.sent.is_settled:
                flight.settled.set()
        self._overlay.follow(key, steps)
        self._overlay.reread(change.document)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
