"""Sends text edits of one document to the editor and finds out what became of them."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from kode_sidecar.agent.edits.announcing import UneditedText, range_of
from kode_sidecar.agent.edits.flights import (
    LOST,
    UNANSWERED,
    UNSEEN,
    Flight,
    Followed,
    Late,
    Order,
    whole,
)
from kode_sidecar.agent.edits.hunk_status import inverse_of, stands
from kode_sidecar.agent.edits.hunks import EditResult
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.edits.verification import SentEdit
from kode_sidecar.agent.event_log.editor_port import DocumentEdit
from kode_sidecar.core.domain.change_set import ProposedHunk
from kode_sidecar.core.domain.hunk import Hunk, follow_all
from kode_sidecar.core.domain.hunk_state import HunkState
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.core.text.change_log import ChangeLog
from kode_sidecar.core.text.text_edit import Change, Edit, apply_edits, minimal_edits, to_lf
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.documents import DocumentChange

ATTEMPTS = 2
"""An edit that left no trace is rebased and sent once more."""
MAX_LATE = 3
"""Edits of one document that were given up and are still looked for in its text."""


class TextEdits:
    """Keeps the overlay in step with the open documents, and sends its hunks.

    At most one edit per document may be on its way: the caller holds that document's lock. An edit
    that was given up may still come: its text is looked for until the document is closed, and what
    it shows then is the last word.
    """

    def __init__(self, services: EditServices) -> None:
        self._services = services
        self._workspace = services.workspace
        self._overlay = services.overlay
        self._editor = services.editor
        self._watch = services.watch
        self._followed: dict[str, Followed] = {}
        self._unseen: defaultdict[str, set[Flight]] = defaultdict(set)
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self) -> None:
        """Give up what is on its way."""
        for task in self._tasks:
            task.cancel()

    async def send(
        self,
        uri: str,
        label: str,
        texts: Mapping[str, str | None],
        late: Late,
        *,
        undo: bool = False,
    ) -> dict[str, EditResult]:
        """Apply hunks of one document and return what became of each one.

        `texts` gives by hunk id what to put there, None for the hunk's own new text. `late` gets
        what the text shows of them after all, when they were given up. `undo`: they are taken
        back, or put back; where the user put something else, they are reported as diverged.
        """
        before: dict[str, HunkState] = {key: self._services.ledger[key].state for key in texts}
        order = Order(uri, label, texts, before, late, undo)
        results = order.results
        flights: list[Flight] = []
        while len(flights) < ATTEMPTS:
            flights.append(await self._fly(order))
            if not order.todo(self._services.ledger) or not flights[-1].answered:
                break
        order.over = True
        why = flights[-1].why_not(diverged=False)
        sent = flights[-1].edits
        lost = [key for key in texts if key not in results]
        results |= {k: EditResult("conflict", reason=why if k in sent else None) for k in lost}
        self._explain(label, flights[-1], results)
        return results

    def changed(self, change: DocumentChange) -> None:
        """Follow a change of a document, as our own where it is."""
        document = change.document
        followed = self._followed.get(document.key)
        match change.kind:
            case "closed" | "unsynced":
                self._overlay.replaced(document.key)
                if followed is not None:
                    self._lose(document.key, followed)
            case "opened":
                self._opened(document, followed)
            case "changed" if followed is None:
                self._overlay.changed(document.key, change.entries)
            case "changed" if followed is not None:
                for entry in change.entries:
                    followed.log.add(entry)
                if change.last:
                    self._follow(document, followed, followed.log.edits)
            case _:
                pass

    def _opened(self, document: Document, followed: Followed | None) -> None:
        """See what was done, before a key or the edit under way alters it."""
        unseen = self._unseen.pop(document.key, ())
        if unanswered := {one for one in unseen if one.answer is None}:  # it may still come
            self._unseen[document.key] = unanswered
        if followed is None:
            self._overlay.replaced(document.key)
            if unseen:
                self._overlay.hunks(document)
            return
        self._overlay.current(document)
        if followed.text != document.text:
            self._follow(document, followed, [Edit(0, len(followed.text), document.text)])

    def _follow(self, document: Document, followed: Followed, changes: Sequence[Change]) -> None:
        """See in the text of now which edits are done."""
        key, before, steps = document.key, followed.text, changes
        fresh: dict[Flight, list[str]] = {}
        for flight in followed.flights:
            if flight.sent is not None:
                known = set(flight.sent.verified)
                steps = flight.sent.follow(before, steps)
                fresh[flight] = [one for one in flight.sent.verified if one not in known]
        followed.text = document.text
        followed.log = ChangeLog()
        self._overlay.remove(key, [one for ids in fresh.values() for one in ids])
        self._overlay.follow(key, before, steps)
        for flight, ids in fresh.items():
            if flight.sent is None:
                continue
            results = dict.fromkeys(ids, EditResult("applied"))
            if ids:
                self._overlay.track(document, flight.sent.inverses(ids, document.text))
            if flight.late and flight.order.undo:
                results |= _diverged(flight.sent.overwritten(document.text))
            if flight.late and ids:
                self._watch.applied(key, before, document.text)
            if flight.late and results:
                flight.order.came(results)
            if results and flight.sent.is_settled:
                flight.settled.set()
                if flight.late:
                    self._drop(key, flight)

    async def _fly(self, order: Order) -> Flight:
        """Make one attempt. It ends when the text shows all of it, or a while after the answer."""
        flight = Flight(order)
        transmission = self._spawn(self._transmit(flight))
        settled = self._spawn(flight.settled.wait())
        try:
            await self._first_of(self._services.locks.answer_seconds, transmission, settled)
            if transmission.done():
                transmission.result()
            if flight.document is not None and self._live(flight.document.key):
                await self._first_of(flight.patience(self._services.settle_seconds), settled)
        finally:
            settled.cancel()
            if flight.document is not None:
                self._drop(flight.document.key, flight)
                self._services.in_flight.discard(flight.document.key)
        self._judge(flight, order.results)
        self._notify_watch(flight, order.results)
        flight.answered = transmission.done() or flight.settled.is_set()
        flight.late = not flight.answered
        if not flight.refused and not order.results.keys() >= flight.edits.keys():
            self._look_for(flight)
        return flight

    async def _first_of(self, seconds: float, *tasks: asyncio.Task[Any]) -> None:
        """Wait until one of them is done, and not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _transmit(self, flight: Flight) -> None:
        """Build the edit on the text of this moment and send it, with no await in between (O7)."""
        uri, results = flight.order.uri, flight.order.results
        document = await self._services.files.fetch(uri)
        todo = flight.order.todo(self._services.ledger)
        if document is not None and not document.is_open and self._unseen[document.key]:
            if not await self._services.files.opened(uri):
                results |= dict.fromkeys(todo, EditResult("conflict", reason=UNANSWERED))
                return
            document = self._services.files.find(uri)
            todo = flight.order.todo(self._services.ledger)
        if document is None:
            results |= dict.fromkeys(todo, EditResult("stale"))
            return
        current = self._overlay.current(document)
        edits = self._edits(document, current, todo, results)
        if current is not document and edits and not self._proven(document, current, edits):
            if not await self._services.files.opened(uri):
                results |= dict.fromkeys(edits, EditResult("conflict", reason=UNSEEN))
                return
            document = self._services.files.find(uri)
            if document is None:
                results |= dict.fromkeys(edits, EditResult("stale"))
                return
            current = document
            edits = self._edits(document, current, {key: todo[key] for key in edits}, results)
        if not edits:
            return
        flight.document, flight.edits, flight.text = document, edits, current.text
        flight.sent = SentEdit(current.text, edits)
        followed = self._followed.setdefault(document.key, Followed(current.text))
        followed.flights.append(flight)
        self._services.in_flight.add(document.key)
        self._unseen[document.key].add(flight)
        try:
            flight.answer = await self._editor.apply_edit(
                self._wire(flight.order.label, current, edits)
            )
        finally:
            given_up = (flight.lost or flight.late) and not flight.refused
            if not given_up or self._live(document.key):  # else an unseen buffer may have it
                self._unseen[document.key].discard(flight)
        if flight.late and flight.refused:
            self._drop(document.key, flight)

    def _proven(self, disk: Document, sent: Document, edits: Mapping[str, Edit]) -> bool:
        """Return whether edits are right on both texts that an editor may hold of a closed file.

        It was sent an edit that nobody has seen since: the buffer may have it, or was discarded.
        """
        spans = [Hunk(key, one.start, one.end, "", "") for key, one in edits.items()]
        olds = [replace(span, old_text=sent.text[span.start : span.end]) for span in spans]
        moved = follow_all(olds, [Edit(0, len(sent.text), disk.text)], sent.text, disk.text)
        encoding = self._workspace.position_encoding
        return not any(span.touched for span in moved) and all(
            disk.position_at(there.start, encoding) == sent.position_at(here.start, encoding)
            for there, here in zip(moved, spans, strict=True)
        )

    def _edits(
        self,
        document: Document,
        current: Document,
        todo: Mapping[str, str | None],
        results: dict[str, EditResult],
    ) -> dict[str, Edit]:
        """Return the hunks where they stand now. One that the user touched is a conflict."""
        edits: dict[str, Edit] = {}
        end, ledger = 0, self._services.ledger
        hunks = self._overlay.find_all(document, todo.keys())
        unedited = UneditedText(self._services, document)
        unknown = todo.keys() - {hunk.id for hunk in hunks}
        results |= {hunk_id: EditResult("conflict") for hunk_id in todo if hunk_id in unknown}
        for hunk in hunks:
            text = todo[hunk.id]
            new = hunk.new_text if text is None else whole(hunk, text, current.eol)
            if hunk.touched and text is None and stands(hunk, current.text):
                self._overlay.track(document, [inverse_of(hunk, current.text)])
                results[hunk.id] = EditResult("applied")
            elif hunk.touched or hunk.start < end or _is_back(ledger[hunk.id], hunk, unedited):
                results[hunk.id] = EditResult("conflict")
            elif to_lf(new) == to_lf(hunk.old_text):
                self._overlay.track(document, [replace(hunk, new_text=hunk.old_text)])
                results[hunk.id] = EditResult("applied")
            else:
                edits[hunk.id] = Edit(hunk.start, hunk.end, new)
                end = hunk.end
        return edits

    def _wire(self, label: str, current: Document, edits: Mapping[str, Edit]) -> DocumentEdit:
        encoding = self._workspace.position_encoding
        return DocumentEdit(
            label=label,
            uri=current.uri,
            version=current.version if current.is_open else None,
            edits=[
                EditorTextEdit(range=range_of(current, edit, encoding), new_text=edit.text)
                for edit in minimal_edits(current.text, list(edits.values()))
            ],
        )

    def _judge(self, flight: Flight, results: dict[str, EditResult]) -> None:
        """Note what became of the hunks of a flight; those that left no trace get no result."""
        document, sent = flight.document, flight.sent
        if document is None or sent is None:
            return
        live = self._live(document.key)
        if live is not None:
            verdicts = sent.verdicts(live.text, refused=flight.refused)
            fresh = {key: verdict for key, verdict in verdicts.items() if key not in results}
            for key, verdict in fresh.items():
                if verdict == "applied":
                    results[key] = EditResult("applied")
                elif verdict == "diverged":
                    results[key] = EditResult("diverged", sent.found(key, live.text))
                    if key in sent.verified:  # what is followed would take it back
                        self._overlay.remove(document.key, [key])
            late = [key for key in fresh if key in results and key not in sent.verified]
            late = [key for key in late if results[key].state == "applied"]
            self._overlay.track(live, sent.inverses(late, live.text))
            return
        results |= dict.fromkeys(sent.verified, EditResult("applied"))
        if flight.lost:
            self._look_on_disk(flight, document, sent, results)
        rest = [key for key in flight.edits if key not in results]
        if flight.lost and flight.refused:
            return  # it was closed under the edit: the file is still there
        if flight.lost:
            results |= dict.fromkeys(rest, EditResult("stale", reason=LOST))
        elif flight.accepted:
            self._overlay.remove(document.key, rest)
            now = apply_edits(flight.text, flight.edits.values())
            inverses = sent.inverses(rest, now)
            self._overlay.assume_applied(document, flight.text, flight.edits, inverses)
            results |= dict.fromkeys(rest, EditResult("unconfirmed"))
        else:
            why = flight.why_not(diverged=False)
            results |= dict.fromkeys(rest, EditResult("conflict", reason=why))

    def _look_on_disk(
        self, flight: Flight, document: Document, sent: SentEdit, results: dict[str, EditResult]
    ) -> None:
        """See whether the editor saved the edit before it closed the document."""
        known = set(sent.verified)
        found = self._services.files.find(document.uri)
        if found is None:
            return
        sent.follow(flight.last_text, [Edit(0, len(flight.last_text), found.text)])
        verdicts = sent.verdicts(found.text, refused=True)
        done = [key for key in verdicts if key not in known and verdicts[key] == "applied"]
        self._overlay.track(found, sent.inverses(done, found.text))
        if flight.order.undo:
            results |= _diverged(sent.overwritten(found.text))
        results |= dict.fromkeys(done, EditResult("applied"))
        if flight.accepted and len(known) + len(done) == len(flight.edits):
            # It was saved: no buffer holds anything else.
            self._unseen[document.key].discard(flight)

    def _notify_watch(self, flight: Flight, results: Mapping[str, EditResult]) -> None:
        """Say that what was done of a flight is no change by others."""
        if flight.document is None:
            return
        done = [
            edit for key, edit in flight.edits.items() if key in results and results[key].is_applied
        ]
        text = apply_edits(flight.text, done)
        self._watch.applied(flight.document.key, flight.text, text, done)

    def _look_for(self, flight: Flight) -> None:
        """Go on comparing the document with an edit that was given up: it may still come."""
        document = flight.document
        live = self._live(document.key) if document is not None else None
        if flight.sent is None or live is None:
            return
        flight.late = True
        followed = self._followed.setdefault(live.key, Followed(live.text))
        followed.flights = [*followed.flights, flight][-MAX_LATE:]

    def _drop(self, key: str, flight: Flight) -> None:
        """Stop following an edit, and the document with the last one."""
        followed = self._followed.get(key)
        if followed is not None and flight in followed.flights:
            followed.flights = [one for one in followed.flights if one is not flight]
            if not followed.flights:
                del self._followed[key]

    def _lose(self, key: str, followed: Followed) -> None:
        """The text is no longer the editor's: nothing more can be seen in it."""
        for flight in followed.flights:
            flight.lost, flight.last_text = True, followed.text
            flight.settled.set()
            if flight.late:
                self._drop(key, flight)

    def _explain(self, label: str, flight: Flight, results: Mapping[str, EditResult]) -> None:
        """Report why an edit that was sent is not there: the cause mostly lies in the editor."""
        states = {results[hunk_id].state for hunk_id in flight.edits}
        if states & {"diverged", "conflict"}:
            why = flight.why_not(diverged="diverged" in states)
            self._editor.warn(f"workspace/applyEdit `{label}`: {why}")

    def _live(self, key: str) -> Document | None:
        """Return the document, if the editor syncs it."""
        document = self._workspace.documents.get(key)
        return document if document is not None and document.synced else None

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _diverged(found: Mapping[str, str]) -> dict[str, EditResult]:
    """Return the results of hunks in whose places the `found` texts stand."""
    return {hunk_id: EditResult("diverged", text) for hunk_id, text in found.items()}


def _is_back(hunk: ProposedHunk, span: Hunk, unedited: UneditedText) -> bool:
    """Return whether what an undo is to put back stands beside its place: the user did it."""
    if span.start < span.end or hunk.repeats is None or hunk.state != hunk.done_state:
        return False
    return unedited.repeats(span, span.new_text) > hunk.repeats
