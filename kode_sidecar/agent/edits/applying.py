"""Carries hunks to the editor and back: decisions, and the undo of what they did.

Both go one way. What is meant is worked out without an await, then each file's edits are sent
under the lock of its document: a file that comes first, then text, then a file that goes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from kode_sidecar.agent.edits.announcing import Announcer
from kode_sidecar.agent.edits.decisions import result
from kode_sidecar.agent.edits.file_edits import FileEdits
from kode_sidecar.agent.edits.flights import Late
from kode_sidecar.agent.edits.hunk_status import HunkStatus
from kode_sidecar.agent.edits.hunks import EditResult
from kode_sidecar.agent.edits.recovery import Recovery
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.agent.edits.text_edits import TextEdits
from kode_sidecar.agent.edits.undo_plan import UndoPlan, UndoPlanner, chosen_of, place_diff
from kode_sidecar.core.domain.change_set import ChangeSet, ProposedHunk, by_file
from kode_sidecar.core.domain.hunk_state import UNSETTLED, HunkState
from kode_sidecar.core.protocol.change_set import (
    DecideResult,
    HunkDecision,
    UndoParams,
    UndoResult,
)
from kode_sidecar.core.text.text_edit import with_eol, with_one_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.unsaved import OpenTexts

Choices = Mapping[str, HunkDecision]
"""What was decided, by hunk id."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Applying:
    """Applies decided hunks, one document's edit at a time, and takes applied ones back.

    Inverse hunks follow the user's typing as pending ones do; a touched one is not sent.
    """

    def __init__(
        self,
        services: EditServices,
        announcer: Announcer,
        text_edits: TextEdits,
        file_edits: FileEdits,
        recovery: Recovery,
        status: HunkStatus,
        open_texts: OpenTexts,
        save: Callable[[], Awaitable[None]],
    ) -> None:
        self._services = services
        self._ledger = services.ledger
        self._overlay = services.overlay
        self._files = services.files
        self._announcer = announcer
        self._text_edits = text_edits
        self._file_edits = file_edits
        self._recovery = recovery
        self._planner = UndoPlanner(services, file_edits, recovery)
        self._status = status
        self._open_texts = open_texts
        self._save = save
        self._claimed: set[str] = set()
        self._undos = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()

    # ---- decisions -----------------------------------------------------------------------------

    async def decide(self, choices: Choices, *, by_user: bool = True) -> None:
        """Do what was decided and report it; the user's decisions are saved.

        It goes on when the caller is cancelled: an edit may be on its way to the editor.
        """
        await self._followed_through(self._decide(choices, by_user=by_user))

    async def forecast(self, change_set: ChangeSet, choices: Choices) -> DecideResult:
        """Return what it would come to, as far as can be known without sending anything."""
        _, back = self._to_keep(choices)
        undone = (await self._undo_unkept(back, dry_run=True)) if back else ()
        documents = await self._documents(change_set.hunks[key] for key in choices)
        expected: list[ProposedHunk] = []
        for hunk_id, choice in choices.items():
            hunk = change_set.hunks[hunk_id]
            if _may_be_sent(hunk, choice):
                document = documents.get(hunk.file.uri)
                hunk = replace(hunk, state=self._expected(hunk, choice, document))
            elif hunk_id in undone:
                hunk = replace(hunk, state="undone")
            expected.append(hunk)
        return msgspec.structs.replace(result(change_set, expected, choices), verified=None)

    def _expected(
        self, hunk: ProposedHunk, choice: HunkDecision, document: Document | None
    ) -> HunkState:
        if choice.action == "reject":
            return "rejected"
        if hunk.kind == "modify" and document is None:
            return "stale"
        return "applied" if self._status.fits(document, hunk) else "conflict"

    async def _decide(self, choices: Choices, *, by_user: bool) -> None:
        """Carry it out. A hunk that another decision has claimed waits for that one.

        What that one could not apply is not sent again: nobody has decided on that yet.
        """
        hunks = [self._ledger[hunk_id] for hunk_id in choices]
        seen: dict[str, HunkState] = {hunk.id: hunk.state for hunk in hunks}
        # An earlier process may have sent a recalled one: that is looked at first.
        if by_user:
            await self._decide_applied(choices)
        free = [one for one in hunks if one.id not in self._claimed and not one.recalled]
        self._reject(free, choices)
        waiting = [hunk for hunk in hunks if _may_be_sent(hunk, choices[hunk.id])]
        for hunk in waiting if by_user else ():
            hunk.kept = None if hunk.kept is None else True
        ids = {hunk.id for hunk in waiting}
        self._claimed |= ids
        try:
            groups = by_file(waiting).values()
            await asyncio.gather(*(self._accept(g, choices, seen, by_user=by_user) for g in groups))
        finally:
            self._claimed -= ids
        if by_user:
            await self._save()

    def _to_keep(self, choices: Choices) -> tuple[list[ProposedHunk], list[ProposedHunk]]:
        """Return the hunks applied unasked that are kept now, and those to undo."""
        hunks = [hunk for hunk in map(self._ledger.__getitem__, choices) if hunk.is_to_keep]
        kept = [hunk for hunk in hunks if choices[hunk.id].action != "reject"]
        return kept, [hunk for hunk in hunks if choices[hunk.id].action == "reject"]

    async def _decide_applied(self, choices: Choices) -> None:
        """Keep or undo what was applied unasked; one that cannot be undone waits on."""
        kept, back = self._to_keep(choices)
        for hunk in (*kept, *back):
            hunk.comment = choices[hunk.id].comment
        if kept:
            self._ledger.keep(kept)
        if back:
            await self._undo_unkept(back)

    async def _undo_unkept(
        self, hunks: Sequence[ProposedHunk], *, dry_run: bool = False
    ) -> Sequence[str]:
        """Undo hunks of one change set where that is possible; return the ids of those."""
        params = UndoParams(skip_conflicts=True, direction="undo", dry_run=dry_run)
        change_set = self._ledger.of_turn(hunks[0].turn_id)
        return (await self.undo(change_set, hunks, params)).undone

    async def _accept(
        self,
        hunks: Sequence[ProposedHunk],
        choices: Choices,
        seen: Mapping[str, HunkState],
        *,
        by_user: bool,
    ) -> None:
        async with self._services.locks.of_all(key for hunk in hunks for key in hunk.keys):
            document = await self._seen(hunks[0].file.uri)
            self._reject(hunks, choices)
            accepted = [hunk for hunk in hunks if hunk.state == seen[hunk.id]]
            accepted = [hunk for hunk in accepted if _may_be_sent(hunk, choices[hunk.id])]
            if not accepted:
                return
            if document is not None:
                self._find_again(document, accepted)
                await self._services.watch.catch_up(document)
            texts = {hunk.id: choices[hunk.id].put for hunk in accepted}

            def late(results: Mapping[str, EditResult]) -> None:
                self._ledger.apply_late({key: texts[key] for key in results})

            results = await self._send(accepted, texts, late, ask=not by_user)
            lost = [key for key, one in results.items() if not one.is_applied]
            document = await self._files.fetch(accepted[0].file.uri) if lost else None
            self._announcer.withhold(lost)
            for hunk in accepted:
                if document is not None and results[hunk.id].state == "conflict":
                    results[hunk.id] = self._with_diff(document, hunk, results[hunk.id])
            self._ledger.finish(accepted, choices, results)
            if document is not None:
                self._offer_merges(document, accepted)

    def _find_again(self, document: Document, hunks: Sequence[ProposedHunk]) -> None:
        """Look where the lines of hunks are by now that could not be applied, or diverged."""
        for hunk in hunks:
            if hunk.kind != "modify" or hunk.state not in UNSETTLED:
                continue
            span = self._overlay.find(document, hunk.id)
            if span is None or (hunk.state == "diverged" and span.touched):
                self._recovery.find_again(document, hunk)

    def _with_diff(self, document: Document, hunk: ProposedHunk, result: EditResult) -> EditResult:
        """Return the result with what the hunk would do to the text that stands there."""
        span = self._overlay.find(document, hunk.id)
        if hunk.kind != "modify" or span is None:
            return result
        return replace(result, diff=place_diff(self._overlay, document, span, hunk.file.path))

    def _offer_merges(self, document: Document, hunks: Sequence[ProposedHunk]) -> None:
        """Propose what is left of hunks in conflict; earlier offers of the same are taken back."""
        for hunk in hunks:
            span = self._overlay.find(document, hunk.id)
            if hunk.state != "conflict" or span is None or not span.touched:
                continue
            known = self._ledger.of_file(document.key)
            old = (one for one in known if one.merge_of == hunk.id and one.state == "proposed")
            self._announcer.withdraw(document.key, dict.fromkeys(one.id for one in old))
            offer = self._announcer.merge(document, hunk)
            if offer is not None:
                self._ledger.announce([offer])

    def _reject(self, hunks: Iterable[ProposedHunk], choices: Choices) -> None:
        rejected = [
            hunk
            for hunk in hunks
            if hunk.state == "proposed" and choices[hunk.id].action == "reject"
        ]
        for hunk in rejected:
            self._announcer.forget(hunk.file.key, {hunk.id: None})
        self._ledger.reject(rejected, choices)

    # ---- undo ----------------------------------------------------------------------------------

    async def undo(
        self, change_set: ChangeSet, scope: Sequence[ProposedHunk], params: UndoParams
    ) -> UndoResult:
        """Take back what is applied of `scope`; where nothing is, put the newest undo back."""
        documents = await self._documents(scope)
        for document in documents.values():
            if document is not None and not params.dry_run:
                self._status.see_verdicts(document)
        chosen, back = chosen_of(scope, params.direction)
        self._planner.find_done(chosen, documents)
        plan = self._planner.plan(chosen, documents)
        refused = bool(plan.diffs) and not params.skip_conflicts
        if params.dry_run or refused:
            doable = [] if refused else [hunk.id for hunk in plan.hunks]
            return await plan.result(change_set, doable, back=back, verified=None)
        results = await self._followed_through(self._undo(plan, back=back))
        done = [hunk.id for hunk in plan.hunks if results[hunk.id].is_applied]
        lost = [hunk for hunk in plan.hunks if not results[hunk.id].is_applied]
        documents = await self._documents(lost)
        plan.diffs |= {hunk.id: self._planner.diff_of(hunk, documents) for hunk in lost}
        verified = _verified(results.values())
        return await plan.result(change_set, done, back=back, verified=verified)

    async def _undo(self, plan: UndoPlan, *, back: bool) -> dict[str, EditResult]:
        self._undos += 1
        number = self._undos
        results = await self._file_by_file(plan.hunks, number, back=back)
        done = [hunk for hunk in plan.hunks if results[hunk.id].is_applied]
        try:
            if done:
                await self._save()
        except KodeError:
            # What is not saved is refused: the texts get back what they were, where that fits.
            await self._file_by_file(done, number, back=not back)
            raise
        return results

    async def _file_by_file(
        self, hunks: Sequence[ProposedHunk], number: int, *, back: bool
    ) -> dict[str, EditResult]:
        """Undo hunks, or redo them, and report it; those that changed meanwhile are left alone."""
        results = {hunk.id: EditResult("conflict") for hunk in hunks}
        for group in by_file(hunks).values():
            async with self._services.locks.of_all(key for hunk in group for key in hunk.keys):
                await self._seen(group[0].file.uri)
                here = _to_go(group, back=back)
                results |= await self._take_back(here, number, back=back)
                self._report(here, results, number, back=back)
        return results

    async def _take_back(
        self, hunks: Sequence[ProposedHunk], number: int, *, back: bool
    ) -> dict[str, EditResult]:
        """Send what undoes hunks, or redoes them; what comes late is reported when it comes."""

        def late(results: Mapping[str, EditResult]) -> None:
            here = _to_go((hunk for hunk in hunks if hunk.id in results), back=back)
            self._report(here, results, number, back=back)

        return await self._send(hunks, {hunk.id: None for hunk in hunks}, late, undo=True)

    def _report(
        self,
        hunks: Sequence[ProposedHunk],
        results: Mapping[str, EditResult],
        number: int,
        *,
        back: bool,
    ) -> None:
        done = [hunk for hunk in hunks if results[hunk.id].is_applied]
        lost = [hunk for hunk in hunks if results[hunk.id].state == "diverged"]
        for hunk in done:
            hunk.unconfirmed = results[hunk.id].state == "unconfirmed"
        if done and back:
            self._ledger.take_back(done, number)
        elif done:
            self._ledger.restore(done)
        if lost:
            self._ledger.drop(lost, results)
            self._follow_lost(lost)

    def _follow_lost(self, hunks: Sequence[ProposedHunk]) -> None:
        """Follow the places of hunks that diverged: their texts may come back to them."""
        document = self._files.find(hunks[0].file.uri)
        texts = {hunk.id: (hunk.old_text, hunk.put_text) for hunk in hunks}
        spans = self._overlay.find_all(document, texts) if document is not None else []
        self._overlay.remove(hunks[0].file.key, texts)
        if document is None:
            return
        for span in spans:
            old, new = (with_eol(text, document.eol) for text in texts[span.id])
            lost = replace(span, old_text=old, new_text=new, touched=True)
            self._overlay.track(document, [lost])

    # ---- both ----------------------------------------------------------------------------------

    async def _send(
        self,
        hunks: Sequence[ProposedHunk],
        texts: Mapping[str, str | None],
        late: Late,
        *,
        undo: bool = False,
        ask: bool = False,
    ) -> dict[str, EditResult]:
        """Send hunks of one file, the file itself in a request of its own."""
        label = "kode: undo, " if undo else "kode: "
        results: dict[str, EditResult] = {}
        whole = {hunk.id: hunk for hunk in hunks if hunk.kind != "modify"}
        first, then = self._file_edits.in_order(list(whole))
        for one in first:
            results[one] = await self._send_file(whole[one], texts[one], label, ask=ask)
        edits = {hunk.id: texts[hunk.id] for hunk in hunks if hunk.kind == "modify"}
        if edits:
            file = hunks[0].file
            what = f"kode: undo in {file.path}" if undo else f"kode: {file.path}"
            results |= await self._text_edits.send(file.uri, what, edits, late, undo=undo)
        for one in then:
            results[one] = await self._send_file(whole[one], texts[one], label, ask=ask)
        done = [hunk for hunk in hunks if results[hunk.id].state == "applied"]
        if done:
            await self._open_texts.edited(done[0].file.uri, done)
        return results

    async def _send_file(
        self, hunk: ProposedHunk, text: str | None, label: str, *, ask: bool
    ) -> EditResult:
        change = self._services.changes.find(hunk.id)
        if change is None:
            return EditResult("conflict")
        if text is not None:
            change = replace(change, text=with_one_eol(text, change.text or text))
        what = f"{label}{change.kind} {change.place.display}"
        sent = await self._file_edits.send(change, what, ask=ask)
        if sent.is_applied:
            self._announcer.forget(change.key, {hunk.id: None})
            self._services.changes.finish(change)
            self._announcer.renamed(change)
        return sent

    async def _documents(self, hunks: Iterable[ProposedHunk]) -> dict[str, Document | None]:
        """Read each file of these hunks once, closed ones beside the loop."""
        uris = {hunk.file.uri for hunk in hunks}
        return {uri: await self._files.fetch(uri) for uri in sorted(uris)}

    async def _seen(self, uri: str) -> Document | None:
        """Read a file and see how its hunks stand: nothing is decided on what nobody saw yet."""
        document = await self._files.fetch(uri)
        if document is not None:
            self._status.see_verdicts(document)
        return document

    async def _followed_through(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that goes on when the caller is cancelled; only `close` ends it early."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise


def _log_failure(task: asyncio.Task[Any]) -> None:
    """Report a failure that nobody waits for any more."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("a decision failed after its caller was cancelled", exc_info=error)


def _may_be_sent(hunk: ProposedHunk, choice: HunkDecision) -> bool:
    """Return whether a decision can be carried out: on what waits, or once more what failed."""
    return hunk.state == "proposed" or (hunk.state in UNSETTLED and choice.action != "reject")


def _to_go(hunks: Iterable[ProposedHunk], *, back: bool) -> list[ProposedHunk]:
    """Return those that an undo (`back`), or a redo, still has to deal with."""
    return [
        hunk for hunk in hunks if (hunk.state == "undone") != back and hunk.state not in UNSETTLED
    ]


def _verified(results: Iterable[EditResult]) -> bool | None:
    states = {one.state for one in results}
    if "diverged" in states:
        return False
    return None if "unconfirmed" in states else True
