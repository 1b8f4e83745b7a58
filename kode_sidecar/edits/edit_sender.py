"""Sends edits of one document to the editor and finds out what became of them."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kode_sidecar.domain.change_set import Range
from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.edits.file_watch import FileWatch
from kode_sidecar.edits.verification import SentEdit
from kode_sidecar.event_log.editor_port import ApplyAnswer, DocumentEdit, EditorPort, TextEdit
from kode_sidecar.kernel import TimeLimit
from kode_sidecar.kernel.contracts import Alarm, NewId
from kode_sidecar.text.text_edit import Edit, apply_edits, minimal_edits, to_lf, with_eol
from kode_sidecar.workspace.documents import Document, DocumentChange
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace

ATTEMPTS = 2
"""An edit that left no trace is rebased and sent once more."""
ANSWER_SECONDS = 60.0
"""How long an editor may think about an edit (some ask their user) before others get their turn."""


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

    `repairs` are ids of tracked hunks that would then make of it what was meant. `unconfirmed`:
    sent for a file that the editor does not sync, so nobody can tell.
    """

    state: Literal["applied", "unconfirmed", "conflict", "diverged", "stale"]
    found: str = ""
    repairs: Sequence[str] = ()

    @property
    def is_applied(self) -> bool:
        """Whether it counts as done."""
        return self.state in ("applied", "unconfirmed")


@dataclass
class _Flight:
    """One edit on its way. `lost`: its document was closed or went out of step.

    `answered`: it was, or it needed no answer.
    """

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    document: Document | None = None
    text: str = ""
    sent: SentEdit | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict[str, Edit])
    answer: ApplyAnswer | None = None
    lost: bool = False
    answered: bool = False


class EditSender:
    """Keeps the overlay in step with the open documents, and sends its hunks.

    At most one edit per document may be on its way: the caller holds that document's lock.
    `settle_seconds` is how long after a yes an editor may take to report the new text; after a no
    it is much less. `answer_seconds` is how long it may take to answer at all.
    """

    def __init__(
        self,
        workspace: Workspace,
        overlay: Overlay,
        find_document: Callable[[str], Document | None],
        editor: EditorPort,
        watch: FileWatch,
        new_id: NewId,
        settle_seconds: float,
        answer_seconds: float,
        alarm: Alarm,
    ) -> None:
        self._workspace = workspace
        self._overlay = overlay
        self.find_document = find_document
        self._editor = editor
        self._watch = watch
        self._new_id = new_id
        self._settle_seconds = settle_seconds
        self._answer_seconds = answer_seconds
        self._alarm = alarm
        self._flights: dict[str, _Flight] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unsubscribe = workspace.documents.subscribe(self._changed)

    def close(self) -> None:
        """Stop listening and give up what is on its way."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()

    async def send(self, order: Order) -> dict[str, Outcome]:
        """Apply the order's hunks and say what became of each one."""
        outcomes: dict[str, Outcome] = {}
        flight = _Flight()
        for _ in range(ATTEMPTS):
            flight = await self._fly(order, outcomes)
            if len(outcomes) == len(order.texts) or not flight.answered:
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
            await self._first_of(self._answer_seconds, transmission, settled)
            if transmission.done():
                transmission.result()
            if flight.document is not None and self._live(flight.document.key):
                await self._first_of(self._patience(flight), settled)
        finally:
            settled.cancel()
            if flight.document is not None:
                self._flights.pop(flight.document.key, None)
                self._watch.landed(flight.document.key)
        self._judge(flight, outcomes)
        self._tell_watch(flight, outcomes)
        flight.answered = transmission.done() or flight.settled.is_set()
        return flight

    async def _first_of(self, seconds: float, *tasks: asyncio.Task[Any]) -> None:
        """Until one of them is done, and not for long."""
        with suppress(TimeoutError):
            async with TimeLimit(self._alarm, f"edit, {seconds:g} s", seconds):
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _tell_watch(self, flight: _Flight, outcomes: Mapping[str, Outcome]) -> None:
        """What was done of a flight is no change by others."""
        if flight.document is None:
            return
        done = [
            edit
            for key, edit in flight.edits.items()
            if key in outcomes and outcomes[key].is_applied
        ]
        done.sort(key=lambda edit: (edit.start, edit.end))
        self._watch.applied(flight.document.key, flight.text, apply_edits(flight.text, done))

    def _patience(self, flight: _Flight) -> float:
        """How long the text may take to show, in seconds; nobody reports much after a no."""
        if flight.answer is None:
            return 0.0
        return self._settle_seconds if flight.answer.applied else self._settle_seconds / 8

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
        flight.document, flight.edits, flight.text = document, edits, current.text
        self._watch.sending(document.key)
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
        """The hunks where they stand now. One that the user touched is a conflict.

        So is one that overlaps another of them, as a repair and a later proposal may.
        """
        edits: dict[str, Edit] = {}
        for hunk_id, text in todo.items():
            hunk = self._overlay.find(document, hunk_id)
            taken = hunk is not None and any(
                edit.start < hunk.end and hunk.start < edit.end for edit in edits.values()
            )
            if hunk is None or hunk.touched or taken:
                outcomes[hunk_id] = Outcome("conflict")
                continue
            new = hunk.new_text if text is None else with_eol(text, current.eol)
            if to_lf(new) == to_lf(hunk.old_text):
                same = replace(hunk, new_text=hunk.old_text)
                self._overlay.track(document, [same])
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
            refused = flight.answer is not None and not flight.answer.applied
            verdicts = sent.verdicts(text, refused=refused)
            for hunk_id, verdict in verdicts.items():
                if verdict == "applied":
                    outcomes[hunk_id] = Outcome("applied")
                elif verdict == "diverged":
                    repairs = self._track_repairs(live, sent.repairs(hunk_id, text))
                    outcomes[hunk_id] = Outcome("diverged", sent.found(hunk_id, text), repairs)
            late = [
                key
                for key, verdict in verdicts.items()
                if verdict == "applied" and key not in sent.verified
            ]
            self._overlay.track(live, sent.inverses(late, text))
            return
        outcomes |= dict.fromkeys(sent.verified, Outcome("applied"))
        rest = [hunk_id for hunk_id in flight.edits if hunk_id not in sent.verified]
        if flight.lost:
            outcomes |= dict.fromkeys(rest, Outcome("stale"))
        elif flight.answer is not None and flight.answer.applied:
            self._overlay.remove(document.key, rest)
            self._overlay.assume_applied(document, list(flight.edits.values()))
            now = self._overlay.current(document).text
            self._overlay.track(document, sent.inverses(rest, now))
            outcomes |= dict.fromkeys(rest, Outcome("unconfirmed"))
        else:
            outcomes |= dict.fromkeys(rest, Outcome("conflict"))

    def _track_repairs(self, document: Document, edits: Sequence[Edit]) -> list[str]:
        hunks = [
            Hunk(self._new_id("hunk"), e.start, e.end, document.text[e.start : e.end], e.text)
            for e in edits
        ]
        self._overlay.track(document, hunks)
        return [hunk.id for hunk in hunks]

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
        if flight is None or flight.sent is None:
            self._overlay.follow(key, (step,))
            self._overlay.reread(change.document)
            return
        known = set(flight.sent.verified)
        steps = flight.sent.follow(before, step)
        fresh = flight.sent.verified - known
        self._overlay.remove(key, fresh)
        self._overlay.follow(key, steps)
        self._overlay.reread(change.document)
        self._overlay.track(change.document, flight.sent.inverses(fresh, after))
        if flight.sent.is_settled:
            flight.settled.set()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
