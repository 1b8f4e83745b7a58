"""Carries hunks to the editor and back: decisions, and the undo of what they did.

Both go one way. What is meant is worked out without an await, then each file's edits are sent
under the lock of its document: a file that comes first, then text, then a file that goes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from kode_sidecar.domain.change_set import ChangeSet, HunkState, ProposedHunk, by_file
from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.edits.announcing import Announcer
from kode_sidecar.edits.decisions import result
from kode_sidecar.edits.file_edits import FileEdits
from kode_sidecar.edits.hunks import EditResult
from kode_sidecar.edits.services import EditServices
from kode_sidecar.edits.text_edits import TextEdits
from kode_sidecar.protocol.change_set import (
    DecideResult,
    HunkDecision,
    UndoConflict,
    UndoParams,
    UndoResult,
)
from kode_sidecar.text.line_diff import Run, split_lines, unified_diff
from kode_sidecar.text.text_edit import apply_edits, line_runs, to_lf
from kode_sidecar.workspace.document import Document

Choices = Mapping[str, HunkDecision]
"""What was decided, by hunk id."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass
class _Plan:
    """What can be undone now. `diffs` are by hunk id, of those that cannot be.

    `texts` are those of each file before and after the rest, with the lines that change.
    """

    hunks: list[ProposedHunk] = field(default_factory=list[ProposedHunk])
    diffs: dict[str, str] = field(default_factory=dict[str, str])
    texts: list[tuple[str, str, str, Sequence[Run]]] = field(
        default_factory=list[tuple[str, str, str, Sequence[Run]]]
    )

    def diff(self) -> str:
        """Return the unified diff of all files."""
        return "".join(
            unified_diff(split_lines(before), split_lines(after), path, runs=runs)
            for path, before, after, runs in self.texts
        )


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
        save: Callable[[], Awaitable[None]],
    ) -> None:
        self._services = services
        self._ledger = services.ledger
        self._overlay = services.overlay
        self._files = services.files
        self._announcer = announcer
        self._text_edits = text_edits
        self._file_edits = file_edits
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
        """Return what it would come to, as far as can be told without sending anything."""
        documents = await self._documents(change_set.hunks[key] for key in choices)
        told: list[ProposedHunk] = []
        for hunk_id, choice in choices.items():
            hunk = change_set.hunks[hunk_id]
            if hunk.state == "proposed":
                document = documents.get(hunk.file.uri)
                hunk = replace(hunk, state=self._expected(hunk, choice, document))
            told.append(hunk)
        return msgspec.structs.replace(result(change_set, told), verified=None)

    def _expected(
        self, hunk: ProposedHunk, choice: HunkDecision, document: Document | None
    ) -> HunkState:
        if choice.action == "reject":
            return "rejected"
        if hunk.kind != "modify":
            return "applied" if self._file_edits.fits(hunk.id) else "conflict"
        if document is None or (hunk.was_open and not document.is_open):
            return "stale"
        span = self._overlay.find(document, hunk.id)
        return "conflict" if span is None or span.touched else "applied"

    async def _decide(self, choices: Choices, *, by_user: bool) -> None:
        """Carry it out. A hunk that another decision has claimed waits for that one."""
        hunks = [self._ledger[hunk_id] for hunk_id in choices]
        self._reject([hunk for hunk in hunks if hunk.id not in self._claimed], choices)
        waiting = [hunk for hunk in hunks if hunk.state == "proposed"]
        ids = {hunk.id for hunk in waiting}
        self._claimed |= ids
        try:
            groups = by_file(waiting).values()
            await asyncio.gather(*(self._accept(g, choices, by_user=by_user) for g in groups))
        finally:
            self._claimed -= ids
        if by_user:
            await self._save()

    async def _accept(
        self, hunks: Sequence[ProposedHunk], choices: Choices, *, by_user: bool
    ) -> None:
        async with self._services.locks.of_all(key for hunk in hunks for key in hunk.keys):
            self._reject(hunks, choices)
            accepted = [hunk for hunk in hunks if hunk.state == "proposed"]
            if not accepted:
                return
            texts = {hunk.id: choices[hunk.id].put for hunk in accepted}
            results = await self._send(accepted, texts, ask=not by_user)
            lost = [key for key, one in results.items() if not one.is_applied]
            self._announcer.forget(accepted[0].file.key, dict.fromkeys(lost))
            self._ledger.finish(accepted, choices, results)

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
        chosen, back = _chosen(scope)
        plan = self._plan(chosen, documents)
        refused = bool(plan.diffs) and not params.skip_conflicts
        if params.dry_run or refused:
            doable = [] if refused else [hunk.id for hunk in plan.hunks]
            return await _undo_result(change_set, plan, doable, back=back, verified=None)
        results = await self._followed_through(self._undo(plan, back=back))
        done = [hunk.id for hunk in plan.hunks if results[hunk.id].is_applied]
        lost = [hunk for hunk in plan.hunks if not results[hunk.id].is_applied]
        documents = await self._documents(lost)
        plan.diffs |= {hunk.id: self._diff_of(hunk, documents) for hunk in lost}
        verified = _verified(results.values())
        return await _undo_result(change_set, plan, done, back=back, verified=verified)

    async def _undo(self, plan: _Plan, *, back: bool) -> dict[str, EditResult]:
        self._undos += 1
        number = self._undos
        results: dict[str, EditResult] = {}
        for hunks in by_file(plan.hunks).values():
            async with self._services.locks.of_all(key for hunk in hunks for key in hunk.keys):
                here = [hunk for hunk in hunks if (hunk.state == "undone") != back]
                results |= {hunk.id: EditResult("conflict") for hunk in hunks}
                results |= await self._send(here, {hunk.id: None for hunk in here}, undo=True)
                self._report(here, results, number, back=back)
        if any(one.is_applied for one in results.values()):
            await self._save()
        return results

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
        if done and back:
            self._ledger.take_back(done, number)
        elif done:
            self._ledger.put_back(done)
        if lost:
            self._ledger.lose(lost, results)
            self._overlay.remove(lost[0].file.key, [hunk.id for hunk in lost])

    def _plan(
        self, hunks: Sequence[ProposedHunk], documents: Mapping[str, Document | None]
    ) -> _Plan:
        plan = _Plan()
        for file, group in by_file(hunks).items():
            document = documents[file.uri]
            whole = [hunk for hunk in group if hunk.kind != "modify"]
            comes = any(self._file_edits.creates(hunk.id) for hunk in whole)
            spans: list[Hunk] = []
            for hunk in group:
                span = self._span(hunk, document)
                if span is not None and not span.touched:
                    spans.append(span)
                if hunk.kind == "modify" and (comes or (span is not None and not span.touched)):
                    plan.hunks.append(hunk)
                elif hunk.kind == "modify":
                    plan.diffs[hunk.id] = self._diff_of(hunk, documents)
            before = after = None
            if document is not None:
                current = self._overlay.current(document)
                edits = sorted((s.edit for s in spans), key=lambda edit: (edit.start, edit.end))
                before, after = current.lf_text, to_lf(apply_edits(current.text, edits))
                runs = line_runs(current.text, edits)
                plan.texts.append((file.path, before, after, runs))
            for hunk in whole:
                if self._file_edits.fits(hunk.id, after):
                    plan.hunks.append(hunk)
                else:
                    plan.diffs[hunk.id] = self._diff_of(hunk, documents, after or "")
        return plan

    def _span(self, hunk: ProposedHunk, document: Document | None) -> Hunk | None:
        return None if document is None else self._overlay.find(document, hunk.id)

    def _diff_of(
        self, hunk: ProposedHunk, documents: Mapping[str, Document | None], text: str = ""
    ) -> str:
        """Return the diff from what stands in a hunk's place to what would stand there."""
        change = self._services.changes.find(hunk.id)
        if change is not None:
            wanted = change.lf_text if change.kind != "rename" else text
            return unified_diff(split_lines(text), split_lines(wanted), hunk.file.path)
        document = documents.get(hunk.file.uri)
        span = self._span(hunk, document)
        wanted = to_lf(span.new_text) if span else hunk.old_text
        found = ""
        if document is not None and span is not None:
            found = to_lf(self._overlay.current(document).text[span.start : span.end])
        return unified_diff(split_lines(found), split_lines(wanted), hunk.file.path)

    # ---- both ----------------------------------------------------------------------------------

    async def _send(
        self,
        hunks: Sequence[ProposedHunk],
        texts: Mapping[str, str | None],
        *,
        undo: bool = False,
        ask: bool = False,
    ) -> dict[str, EditResult]:
        """Send hunks of one file, the file itself in a request of its own."""
        label = "kode: undo, " if undo else "kode: "
        results: dict[str, EditResult] = {}
        whole = [hunk for hunk in hunks if hunk.kind != "modify"]
        first = [hunk for hunk in whole if self._file_edits.creates(hunk.id)]
        for hunk in first:
            results[hunk.id] = await self._send_file(hunk, texts[hunk.id], label, ask=ask)
        edits = {hunk.id: texts[hunk.id] for hunk in hunks if hunk.kind == "modify"}
        if edits:
            file = hunks[0].file
            synced = {hunk.id for hunk in hunks if hunk.was_open and not undo}
            what = f"kode: undo in {file.path}" if undo else f"kode: {file.path}"
            results |= await self._text_edits.send(file.uri, what, edits, synced)
        for hunk in whole:
            if hunk.id not in results:
                results[hunk.id] = await self._send_file(hunk, texts[hunk.id], label, ask=ask)
        return results

    async def _send_file(
        self, hunk: ProposedHunk, text: str | None, label: str, *, ask: bool
    ) -> EditResult:
        change = self._services.changes.find(hunk.id)
        if change is None:
            return EditResult("conflict")
        if text is not None:
            change = replace(change, text=to_lf(text))
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
    """Tell of a failure that nobody waits for any more."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("a decision failed after its caller was cancelled", exc_info=error)


def _chosen(scope: Iterable[ProposedHunk]) -> tuple[list[ProposedHunk], bool]:
    """Return the hunks that are meant, and whether they are to be taken back."""
    hunks = list(scope)
    applied = [hunk for hunk in hunks if hunk.state in ("applied", "replaced")]
    if applied:
        return applied, True
    undone = [hunk for hunk in hunks if hunk.state == "undone"]
    newest = max((hunk.undone_by for hunk in undone), default=0)
    return [hunk for hunk in undone if hunk.undone_by == newest], False


def _verified(results: Iterable[EditResult]) -> bool | None:
    states = {one.state for one in results}
    if "diverged" in states:
        return False
    return None if "unconfirmed" in states else True


async def _undo_result(
    change_set: ChangeSet,
    plan: _Plan,
    done: Sequence[str],
    *,
    back: bool,
    verified: bool | None,
) -> UndoResult:
    conflicts = [UndoConflict(hunk_id=key, diff=diff) for key, diff in plan.diffs.items()]
    return UndoResult(
        change_set_id=change_set.id,
        state=change_set.state,
        undone=tuple(done) if back else (),
        restored=() if back else tuple(done),
        conflicts=tuple(conflicts),
        diff=await asyncio.to_thread(plan.diff) if done else "",
        verified=verified,
    )
