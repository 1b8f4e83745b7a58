"""Where hunks stand in the text of now: which fit no more, and which turned out to be done.

A verdict follows the text whenever it is seen: an edit that came late, was discarded with its
buffer, or was on its way when an earlier process died.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from kode_sidecar.agent.edits.file_edits import FileEdits
from kode_sidecar.agent.edits.flights import whole
from kode_sidecar.agent.edits.recovery import Recovery, is_taken
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.core.domain.change_set import ProposedHunk
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.domain.hunk_state import UNSETTLED
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.documents import DocumentChange

QUIET_SECONDS = 0.25
"""A document is looked at when nobody has changed it for so long: a key costs next to nothing."""


class HunkStatus:
    """Looks at the hunks of a document some time after each change, and whenever somebody asks."""

    def __init__(self, services: EditServices, recovery: Recovery, file_edits: FileEdits) -> None:
        self._services = services
        self._overlay = services.overlay
        self._ledger = services.ledger
        self._recovery = recovery
        self._file_edits = file_edits
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def close(self) -> None:
        """Look no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def changed(self, change: DocumentChange) -> None:
        """Look at the document soon."""
        if not change.last:
            return
        key = change.document.key
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if change.kind != "saved" and self._ledger.has_hunks(key):
            self._look_later(key)

    def _look_later(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(QUIET_SECONDS, self._look_now, key)

    def _look_now(self, key: str) -> None:
        self._timers.pop(key, None)
        if key in self._services.in_flight:
            self._look_later(key)
        else:
            self.look(key)

    def look(self, key: str) -> None:
        """Compare the hunks of a document that is open with its text."""
        document = self._services.workspace.documents.get(key)
        if document is not None and document.synced:
            self.look_at(document)

    def look_at_closed(self, keys: Iterable[str]) -> None:
        """Compare those of files that are not open, too."""
        for key in keys:
            document = self._services.files.find(key)
            if document is not None:
                self.look_at(document)

    def look_at(self, document: Document) -> None:
        """Report what the text newly shows: verdicts, and what fits no more or does again."""
        key = document.key
        if key in self._services.in_flight:
            return
        self.see_verdicts(document)
        waiting = [hunk for hunk in self._ledger.unsettled(key) if hunk.state == "proposed"]
        fits = {hunk.id: self.fits(document, hunk) for hunk in waiting}
        news = {hunk.id: fits[hunk.id] for hunk in waiting if fits[hunk.id] != hunk.fits}
        if news:
            self._ledger.report_fit(news)

    def see_verdicts(self, document: Document) -> None:
        """Report which hunks turn out to be done, or discarded, unless one is on its way there."""
        if document.key in self._services.in_flight:
            return
        hunks = self._ledger.unsettled(document.key)
        edits = [hunk for hunk in hunks if hunk.kind == "modify"]
        done = self._done(document, edits)
        if done:
            self._ledger.apply_late(done)
        self._see_lines_between(document, edits)
        for hunk in edits:
            if hunk.unconfirmed:
                self._look_at_unconfirmed(document, hunk)

    def fits(self, document: Document | None, hunk: ProposedHunk) -> bool:
        """Return whether accepting a hunk would leave the text as it should be."""
        if hunk.kind != "modify":
            return self._file_edits.fits(hunk.id)
        span = self._overlay.find(document, hunk.id) if document is not None else None
        if document is None or span is None:
            return False
        return not span.touched or stands(span, self._overlay.current(document).text)

    def _done(self, document: Document, hunks: Iterable[ProposedHunk]) -> dict[str, str | None]:
        """Return the hunks that nobody knew to be applied, with the own text that stands there."""
        text = self._overlay.current(document).text
        done: dict[str, str | None] = {}
        unseen: list[ProposedHunk] = []
        for hunk in hunks:
            maybe_sent = hunk.state in UNSETTLED or (hunk.recalled and hunk.state == "proposed")
            if not maybe_sent:
                continue
            span = self._overlay.find(document, hunk.id)
            there = _that_stands(hunk, span, document, text) if span and span.touched else None
            if span is not None and there is not None and not self._is_taken(document, hunk, span):
                self._overlay.track(document, [inverse_of(span, text)])
                done[hunk.id] = there.replacement
            elif hunk.recalled:
                unseen.append(hunk)
        return done | self._recovery.find_done(document, unseen)

    def _is_taken(self, document: Document, hunk: ProposedHunk, span: Hunk) -> bool:
        """Return whether another hunk took away the lines that are gone from a hunk's place."""
        if span.start < span.end:
            return False
        return is_taken((span.start, span.end), hunk, self._recovery.placed(document))

    def _see_lines_between(self, document: Document, hunks: Iterable[ProposedHunk]) -> None:
        """Report which hunks were done unseen, and have lines of the user's in them by now."""
        text = self._overlay.current(document).text
        for hunk in hunks:
            span = self._overlay.find(document, hunk.id)
            if hunk.state not in ("stale", "conflict") or span is None or not span.touched:
                continue
            held = text[span.start : span.end]
            for one in hunk.as_sent():
                sent = _as_sent(one, span, document).new_text
                if sent and _has_lines(held, sent) and not _has_lines(span.old_text, sent):
                    self._ledger.diverge(one, to_lf(held))
                    break

    def _look_at_unconfirmed(self, document: Document, hunk: ProposedHunk) -> None:
        """What was sent to a file that nobody synced: it is there, or the user discarded it."""
        if self._overlay.current(document) is not document:
            return  # still unseen
        if self._overlay.was_discarded(document, hunk.id):
            self._ledger.discard(hunk.id)
        elif self._overlay.find(document, hunk.id) is not None:
            self._ledger.confirm(hunk.id)


def _that_stands(
    hunk: ProposedHunk, span: Hunk, document: Document, text: str
) -> ProposedHunk | None:
    """Return the hunk with what was sent for it and stands in its place; None for nothing."""
    sent = hunk.as_sent()
    return next((one for one in sent if stands(_as_sent(one, span, document), text)), None)


def _as_sent(hunk: ProposedHunk, span: Hunk, document: Document) -> Hunk:
    """Return where it was sent to, with the user's own text for it, if there is one."""
    own = hunk.replacement
    return span if own is None else replace(span, new_text=whole(span, own, document.eol))


def _has_lines(text: str, wanted: str) -> bool:
    """Return whether a text has all the wanted lines in their order, others between them or not."""
    lines = iter(to_lf(text).removesuffix("\n").split("\n"))
    return all(line in lines for line in to_lf(wanted).removesuffix("\n").split("\n"))


def stands(span: Hunk, text: str) -> bool:
    """Return whether the new text of a hunk stands in its place."""
    return to_lf(text[span.start : span.end]) == to_lf(span.new_text)


def inverse_of(span: Hunk, text: str) -> Hunk:
    """Return what takes a hunk back whose new text stands in its place."""
    return Hunk(span.id, span.start, span.end, text[span.start : span.end], span.old_text)
