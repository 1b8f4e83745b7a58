"""Sends text edits of one document to the editor and finds out what became of them."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kode_sidecar.domain.change_set import Range
from kode_sidecar.edits.hunks import EditResult
from kode_sidecar.edits.services import EditServices
from kode_sidecar.edits.verification import SentEdit
from kode_sidecar.event_log.editor_port import ApplyAnswer, DocumentEdit, TextEdit
from kode_sidecar.text.change_log import ChangeLog
from kode_sidecar.text.text_edit import Change, Edit, apply_edits, minimal_edits, to_lf, with_eol
from kode_sidecar.workspace.documents import Document, DocumentChange

ATTEMPTS = 2
"""An edit that left no trace is rebased and sent once more."""
ANSWER_SECONDS = 60.0
"""How long an editor may think about an edit (some ask their user) before others get their turn."""
MAX_LATE = 3
"""Edits of one document that were given up and are still looked for in its text."""


@dataclass(eq=False)
class _Flight:
    """One edit on its way: `edits` of `text`, by hunk id.

    `lost`: its document was closed or went out of step, with `last_text`. `answered`: the editor
    replied, or its `didChange` proved the edit before a reply came. `late`: nobody waits any more.
    """

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    document: Document | None = None
    text: str = ""
    last_text: str = ""
    sent: SentEdit | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict[str, Edit])
    answer: ApplyAnswer | None = None
    lost: bool = False
    answered: bool = False
    late: bool = False

    @property
    def refused(self) -> bool:
        """Whether the editor said that it did nothing."""
        return self.answer is not None and not self.answer.applied


@dataclass
class _Followed:
    """A document with edits on their way: the text they are compared with, and what came since."""

    text: str
    flights: list[_Flight] = field(default_factory=list[_Flight])
    log: ChangeLog = field(default_factory=ChangeLog)


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
        self._followed: dict[str, _Followed] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self) -> None:
        """Give up what is on its way."""
        for task in self._tasks:
            task.cancel()

    async def send(
        self, uri: str, label: str, texts: Mapping[str, str | None], synced: Collection[str] = ()
    ) -> dict[str, EditResult]:
        """Apply hunks of one document and return what became of each one.

        `texts` gives by hunk id what to put there, None for the hunk's own new text. `synced` names
        the hunks proposed while the editor synced the document, which it must still do.
        """
        results: dict[str, EditResult] = {}
        flights: list[_Flight] = []
        while len(flights) < ATTEMPTS:
            todo = {key: text for key, text in texts.items() if key not in results}
            flights.append(await self._fly(uri, label, todo, synced, results))
            if len(results) == len(texts) or not flights[-1].answered:
                break
        missing = [hunk_id for hunk_id in texts if hunk_id not in results]
        results |= dict.fromkeys(missing, EditResult("conflict"))
        if missing and not all(flight.refused for flight in flights):
            self._look_for(flights[-1])
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
            case "opened" if followed is None:
                self._overlay.replaced(document.key)
            case "opened" if followed is not None and followed.text != document.text:
                self._follow(document, followed, [Edit(0, len(followed.text), document.text)])
            case "changed" if followed is None:
                self._overlay.changed(document.key, change.entries)
            case "changed" if followed is not None:
                for entry in change.entries:
                    followed.log.add(entry)
                if change.last:
                    self._follow(document, followed, followed.log.edits)
            case _:
                pass

    def _follow(self, document: Document, followed: _Followed, changes: Sequence[Change]) -> None:
        """See in the text of now which edits are done."""
        key, before, steps = document.key, followed.text, changes
        fresh: dict[_Flight, list[str]] = {}
        for flight in followed.flights:
            if flight.sent is not None:
                known = set(flight.sent.verified)
                steps = flight.sent.follow(before, steps)
                fresh[flight] = [one for one in flight.sent.verified if one not in known]
        followed.text = document.text
        followed.log = ChangeLog()
        self._overlay.remove(key, [one for ids in fresh.values() for one in ids])
        self._overlay.follow(key, steps)
        for flight, ids in fresh.items():
            if flight.sent is None or not ids:
                continue
            self._overlay.track(document, flight.sent.inverses(ids, document.text))
            if flight.late:
                self._watch.applied(key, before, document.text)
                self._services.ledger.land_late(ids)
            if flight.sent.is_settled:
                flight.settled.set()
                if flight.late:
                    self._drop(key, flight)

    async def _fly(
        self,
        uri: str,
        label: str,
        todo: Mapping[str, str | None],
        synced: Collection[str],
        results: dict[str, EditResult],
    ) -> _Flight:
        """Make one attempt. It ends when the text shows all of it, or a while after the answer."""
        flight = _Flight()
        transmission = self._spawn(self._transmit(flight, uri, label, todo, synced, results))
        settled = self._spawn(flight.settled.wait())
        try:
            await self._first_of(self._services.answer_seconds, transmission, settled)
            if transmission.done():
                transmission.result()
            if flight.document is not None and self._live(flight.document.key):
                await self._first_of(self._patience(flight), settled)
        finally:
            settled.cancel()
            if flight.document is not None:
                self._drop(flight.document.key, flight)
                self._services.in_flight.discard(flight.document.key)
        self._judge(flight, results)
        self._tell_watch(flight, results)
        flight.answered = transmission.done() or flight.settled.is_set()
        return flight

    async def _first_of(self, seconds: float, *tasks: asyncio.Task[Any]) -> None:
        """Wait until one of them is done, and not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _patience(self, flight: _Flight) -> float:
        """Return how many seconds the text may take to show; nobody reports much after a no."""
        if flight.answer is None:
            return 0.0
        return (
            self._services.settle_seconds
            if flight.answer.applied
            else self._services.settle_seconds / 8
        )

    async def _transmit(
        self,
        flight: _Flight,
        uri: str,
        label: str,
        todo: Mapping[str, str | None],
        synced: Collection[str],
        results: dict[str, EditResult],
    ) -> None:
        """Build the edit on the text of this moment and send it, with no await in between (O7)."""
        document = await self._services.files.fetch(uri)
        if document is None or not document.is_open:
            gone = [key for key in todo if document is None or key in synced]
            results |= dict.fromkeys(gone, EditResult("stale"))
            todo = {key: text for key, text in todo.items() if key not in gone}
        if document is None:
            return
        current = self._overlay.current(document)
        edits = self._edits(document, current, todo, results)
        if not edits:
            return
        flight.document, flight.edits, flight.text = document, edits, current.text
        flight.sent = SentEdit(current.text, edits)
        followed = self._followed.setdefault(document.key, _Followed(current.text))
        followed.flights.append(flight)
        self._services.in_flight.add(document.key)
        flight.answer = await self._editor.apply_edit(self._wire(label, current, edits))
        if flight.late and flight.refused:
            self._drop(document.key, flight)

    def _edits(
        self,
        document: Document,
        current: Document,
        todo: Mapping[str, str | None],
        results: dict[str, EditResult],
    ) -> dict[str, Edit]:
        """Return the hunks where they stand now. One that the user touched is a conflict."""
        edits: dict[str, Edit] = {}
        end = 0
        found = [(self._overlay.find(document, hunk_id), hunk_id) for hunk_id in todo]
        results |= {hunk_id: EditResult("conflict") for hunk, hunk_id in found if hunk is None}
        hunks = [hunk for hunk, _ in found if hunk is not None]
        for hunk in sorted(hunks, key=lambda hunk: (hunk.start, hunk.end)):
            text = todo[hunk.id]
            new = hunk.new_text if text is None else with_eol(text, current.eol)
            if hunk.touched or hunk.start < end:
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
                TextEdit(
                    Range(
                        current.position_at(edit.start, encoding),
                        current.position_at(edit.end, encoding),
                    ),
                    edit.text,
                )
                for edit in minimal_edits(current.text, list(edits.values()))
            ],
        )

    def _judge(self, flight: _Flight, results: dict[str, EditResult]) -> None:
        """Note what became of the hunks of a flight; those that left no trace get no result."""
        document, sent = flight.document, flight.sent
        if document is None or sent is None:
            return
        live = self._live(document.key)
        if live is not None:
            for key, verdict in sent.verdicts(live.text, refused=flight.refused).items():
                if verdict == "applied":
                    results[key] = EditResult("applied")
                elif verdict == "diverged":
                    results[key] = EditResult("diverged", sent.found(key, live.text))
            late = [key for key in flight.edits if key in results and key not in sent.verified]
            late = [key for key in late if results[key].state == "applied"]
            self._overlay.track(live, sent.inverses(late, live.text))
            return
        results |= dict.fromkeys(sent.verified, EditResult("applied"))
        if flight.lost:
            self._look_on_disk(flight, document, sent, results)
        rest = [key for key in flight.edits if key not in results]
        if flight.lost:
            results |= dict.fromkeys(rest, EditResult("stale"))
        elif flight.answer is not None and flight.answer.applied:
            self._overlay.remove(document.key, rest)
            self._overlay.assume_applied(document, list(flight.edits.values()))
            now = self._overlay.current(document).text
            self._overlay.track(document, sent.inverses(rest, now))
            results |= dict.fromkeys(rest, EditResult("unconfirmed"))
        else:
            results |= dict.fromkeys(rest, EditResult("conflict"))

    def _look_on_disk(
        self, flight: _Flight, document: Document, sent: SentEdit, results: dict[str, EditResult]
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
        results |= dict.fromkeys(done, EditResult("applied"))

    def _tell_watch(self, flight: _Flight, results: Mapping[str, EditResult]) -> None:
        """Say that what was done of a flight is no change by others."""
        if flight.document is None:
            return
        done = [
            edit for key, edit in flight.edits.items() if key in results and results[key].is_applied
        ]
        text = apply_edits(flight.text, done)
        self._watch.applied(flight.document.key, flight.text, text, done)

    def _look_for(self, flight: _Flight) -> None:
        """Go on comparing the document with an edit that was given up: it may still come."""
        document = flight.document
        live = self._live(document.key) if document is not None else None
        if flight.sent is None or live is None:
            return
        flight.late = True
        followed = self._followed.setdefault(live.key, _Followed(live.text))
        followed.flights = [*followed.flights, flight][-MAX_LATE:]

    def _drop(self, key: str, flight: _Flight) -> None:
        """Stop following an edit, and the document with the last one."""
        followed = self._followed.get(key)
        if followed is not None and flight in followed.flights:
            followed.flights = [one for one in followed.flights if one is not flight]
            if not followed.flights:
                del self._followed[key]

    def _lose(self, key: str, followed: _Followed) -> None:
        """The text is no longer the editor's: nothing more can be seen in it."""
        for flight in followed.flights:
            flight.lost, flight.last_text = True, followed.text
            flight.settled.set()
            if flight.late:
                self._drop(key, flight)

    def _explain(self, label: str, flight: _Flight, results: Mapping[str, EditResult]) -> None:
        """Tell why an edit that was sent is not there: the cause mostly lies in the editor."""
        states = {results[hunk_id].state for hunk_id in flight.edits}
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
        """Return the document, if the editor syncs it."""
        document = self._workspace.documents.get(key)
        return document if document is not None and document.synced else None

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
