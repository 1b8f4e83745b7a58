"""Takes applied hunks back where they stand now, and puts them there again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.edits.edit_sender import Order, Outcome
from kode_sidecar.edits.edit_services import EditServices
from kode_sidecar.edits.proposed_hunk import ChangeSet, ProposedHunk, by_file
from kode_sidecar.edits.shielded_work import ShieldedWork
from kode_sidecar.protocol.change_set import UndoConflict, UndoParams, UndoResult
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.text_edit import apply_edits, to_lf


@dataclass
class _Plan:
    """What can be done now. `diffs` are by hunk id, of those that cannot; `diff` is of the rest."""

    hunks: list[ProposedHunk] = field(default_factory=list[ProposedHunk])
    diffs: dict[str, str] = field(default_factory=dict[str, str])
    diff: str = ""


class Undo:
    """Inverse hunks follow the user's typing as pending ones do; a touched one is refused."""

    def __init__(self, edits: EditServices) -> None:
        self._edits = edits
        self._work = ShieldedWork()
        self._count = 0

    def close(self) -> None:
        """Give up what is under way."""
        self._work.close()

    async def undo(
        self, change_set: ChangeSet, scope: Iterable[ProposedHunk], params: UndoParams
    ) -> UndoResult:
        """Take back what is applied of `scope`; where nothing is, put the newest undo back."""
        chosen, back = _chosen(scope)
        plan = self._plan(chosen)
        refused = bool(plan.diffs) and not params.skip_conflicts
        if params.dry_run or refused:
            doable = [] if refused else [hunk.id for hunk in plan.hunks]
            return _result(change_set, plan, doable, back=back, verified=None)
        outcomes = await self._work.run(self._carry_out(plan, back=back))
        done = [hunk.id for hunk in plan.hunks if outcomes[hunk.id].is_applied]
        lost = [hunk for hunk in plan.hunks if not outcomes[hunk.id].is_applied]
        plan.diffs |= {hunk.id: self._diff_of(hunk) for hunk in lost}
        return _result(change_set, plan, done, back=back, verified=_verified(outcomes.values()))

    def _plan(self, hunks: Sequence[ProposedHunk]) -> _Plan:
        plan = _Plan()
        for group in by_file(hunks).values():
            spans: list[Hunk] = []
            creates = any(h.change and h.change.kind == "create" for h in group)
            for hunk in group:
                if hunk.change is not None:
                    continue
                span = self._span(hunk)
                if span is not None and not span.touched:
                    spans.append(span)
                if creates or (span is not None and not span.touched):
                    plan.hunks.append(hunk)
                else:
                    plan.diffs[hunk.id] = self._diff_of(hunk)
            after = self._text_after(group[0], spans)
            for hunk in group:
                if hunk.change is not None and self._edits.file_sender.fits(hunk.change, after):
                    plan.hunks.append(hunk)
                elif hunk.change is not None:
                    plan.diffs[hunk.id] = self._diff_of(hunk, after)
            plan.diff += self._diff(group[0], after)
        return plan

    def _span(self, hunk: ProposedHunk) -> Hunk | None:
        document = self._edits.files.find(hunk.file.uri)
        return None if document is None else self._edits.overlay.find(document, hunk.id)

    def _text_after(self, hunk: ProposedHunk, spans: Sequence[Hunk]) -> str | None:
        """The file's text (LF) with these hunks taken back; None without a file."""
        document = self._edits.files.find(hunk.file.uri)
        if document is None:
            return None
        ordered = sorted((span.edit for span in spans), key=lambda edit: (edit.start, edit.end))
        return to_lf(apply_edits(self._edits.overlay.current(document).text, ordered))

    def _diff(self, hunk: ProposedHunk, after: str | None) -> str:
        document = self._edits.files.find(hunk.file.uri)
        if document is None or after is None:
            return ""
        before = self._edits.overlay.current(document).lf_text
        return unified_diff(split_lines(before), split_lines(after), hunk.file.path)

    def _diff_of(self, hunk: ProposedHunk, text: str | None = None) -> str:
        """From what stands in a hunk's place to what would stand there."""
        if hunk.change is not None:
            found = text or ""
            wanted = hunk.change.lf_text if hunk.change.kind != "rename" else found
            return unified_diff(split_lines(found), split_lines(wanted), hunk.file.path)
        document, span = self._edits.files.find(hunk.file.uri), self._span(hunk)
        wanted = to_lf(span.new_text) if span else hunk.old_text
        found = ""
        if document is not None and span is not None:
            found = to_lf(self._edits.overlay.current(document).text[span.start : span.end])
        return unified_diff(split_lines(found), split_lines(wanted), hunk.file.path)

    async def _carry_out(self, plan: _Plan, *, back: bool) -> dict[str, Outcome]:
        self._count += 1
        number = self._count
        outcomes: dict[str, Outcome] = {}
        for hunks in by_file(plan.hunks).values():
            async with self._edits.locks.of_all(key for hunk in hunks for key in hunk.keys):
                outcomes |= await self._send(hunks)
                self._report(hunks, outcomes, number, back=back)
        return outcomes

    async def _send(self, hunks: Sequence[ProposedHunk]) -> dict[str, Outcome]:
        """A file that comes back first, then text, then a file that goes."""
        outcomes: dict[str, Outcome] = {}
        changes = [hunk for hunk in hunks if hunk.change is not None]
        texts = [hunk for hunk in hunks if hunk.change is None]
        for hunk in changes:
            if hunk.change and hunk.change.kind == "create":
                outcomes[hunk.id] = await self._send_file(hunk)
        if texts:
            file = texts[0].file
            order = Order(file.uri, f"kode: undo in {file.path}", {h.id: None for h in texts})
            outcomes |= await self._edits.sender.send(order)
        for hunk in changes:
            if hunk.id not in outcomes:
                outcomes[hunk.id] = await self._send_file(hunk)
        return outcomes

    async def _send_file(self, hunk: ProposedHunk) -> Outcome:
        change = hunk.change
        assert change is not None
        label = f"kode: undo, {change.kind} {change.place.display}"
        outcome = await self._edits.file_sender.send(change, label, ask=False)
        if outcome.is_applied:
            hunk.change = change.inverse()
            self._edits.announcer.renamed(change)
        return outcome

    def _report(
        self,
        hunks: Sequence[ProposedHunk],
        outcomes: dict[str, Outcome],
        number: int,
        *,
        back: bool,
    ) -> None:
        done = [hunk for hunk in hunks if outcomes[hunk.id].is_applied]
        lost = [hunk for hunk in hunks if outcomes[hunk.id].state == "diverged"]
        if done and back:
            self._edits.ledger.take_back(done, number)
        elif done:
            self._edits.ledger.put_back(done)
        if lost:
            self._edits.ledger.lose(lost, outcomes)
            self._edits.overlay.remove(lost[0].file.key, [hunk.id for hunk in lost])


def _chosen(scope: Iterable[ProposedHunk]) -> tuple[list[ProposedHunk], bool]:
    """The hunks that are meant, and whether they are to be taken back."""
    hunks = list(scope)
    applied = [hunk for hunk in hunks if hunk.state in ("applied", "replaced")]
    if applied:
        return applied, True
    undone = [hunk for hunk in hunks if hunk.state == "undone"]
    newest = max((hunk.undone_by for hunk in undone), default=0)
    return [hunk for hunk in undone if hunk.undone_by == newest], False


def _verified(outcomes: Iterable[Outcome]) -> bool | None:
    states = {outcome.state for outcome in outcomes}
    if "diverged" in states:
        return False
    return None if "unconfirmed" in states else True


def _result(
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
        diff=plan.diff if done else "",
        verified=verified,
    )
