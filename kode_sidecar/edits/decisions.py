"""Decisions about hunks: which ones are meant, carrying them out, and the result."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from kode_sidecar.domain.change_set import HunkState
from kode_sidecar.edits.edit_sender import Order
from kode_sidecar.edits.edit_services import EditServices
from kode_sidecar.edits.proposed_hunk import ChangeSet, ProposedHunk, by_file
from kode_sidecar.edits.shielded_work import ShieldedWork
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.change_set import DecideParams, DecideResult, HunkDecision
from kode_sidecar.text.text_edit import to_lf
from kode_sidecar.workspace.file_changes import FileChange

Choices = Mapping[str, HunkDecision]
"""What was decided, by hunk id."""


def choose(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    """By hunk id what was decided, `rest` spelled out, in the order of the announcements.

    `rest` means hunks that still wait and were announced at or before `seen_seq`; to accept a
    sensitive one, or a repair, it must be named.

    Raises KodeError `ChangeSetClosed`, `InvalidParams`.
    """
    if change_set.state == "decided":
        raise KodeError(
            "ChangeSetClosed",
            f"Every hunk of change set {change_set.id} is decided already; "
            "kode/changeSet/get shows how.",
        )
    named = _named(change_set, params)
    if params.rest != "keep":
        if params.seen_seq < 1:
            raise KodeError(
                "InvalidParams",
                f"$.seenSeq: `rest: {params.rest}` needs the last `seq` that you have seen; "
                "hunks announced after it are left alone.",
            )
        for hunk in change_set.hunks.values():
            waits = hunk.state == "proposed" and hunk.announced <= params.seen_seq
            needs_name = "sensitive" in hunk.flags or hunk.repairs is not None
            left = params.rest == "accept" and needs_name
            if waits and not left and hunk.id not in named:
                named[hunk.id] = HunkDecision(hunk_id=hunk.id, action=params.rest)
    return {hunk_id: named[hunk_id] for hunk_id in change_set.hunks if hunk_id in named}


def _named(change_set: ChangeSet, params: DecideParams) -> dict[str, HunkDecision]:
    named: dict[str, HunkDecision] = {}
    for at, decision in enumerate(params.decisions):
        where = f"$.decisions[{at}]"
        if decision.hunk_id not in change_set.hunks:
            raise KodeError(
                "InvalidParams",
                f"{where}.hunkId: {decision.hunk_id!r} is no hunk of {change_set.id}.",
            )
        if decision.hunk_id in named:
            raise KodeError(
                "InvalidParams", f"{where}.hunkId: {decision.hunk_id!r} is decided twice."
            )
        if decision.action == "replace" and decision.new_text is None:
            raise KodeError("InvalidParams", f"{where}.newText: `replace` needs the text to put.")
        kind = change_set.hunks[decision.hunk_id].kind
        if decision.action == "replace" and kind in ("rename", "delete"):
            raise KodeError(
                "InvalidParams", f"{where}.action: a {kind} has no text that could be replaced."
            )
        named[decision.hunk_id] = decision
    return named


def result(change_set: ChangeSet, hunks: Iterable[ProposedHunk]) -> DecideResult:
    """What has become of the hunks that a decision named."""
    ids: dict[str, list[str]] = {"applied": [], "rejected": [], "stale": [], "conflicts": []}
    verified: bool | None = True
    for hunk in hunks:
        match hunk.state:
            case "applied" | "replaced":
                ids["applied"].append(hunk.id)
                verified = None if hunk.unconfirmed and verified else verified
            case "rejected" | "stale":
                ids[hunk.state].append(hunk.id)
            case "proposed":
                pass
            case _:
                ids["conflicts"].append(hunk.id)
                verified = False if hunk.state == "diverged" else verified
    return DecideResult(
        state=change_set.state,
        applied=tuple(ids["applied"]),
        rejected=tuple(ids["rejected"]),
        stale=tuple(ids["stale"]),
        conflicts=tuple(ids["conflicts"]),
        verified=verified,
    )


class Decisions:
    """Carries decisions out, one document's edit at a time."""

    def __init__(self, edits: EditServices) -> None:
        self._edits = edits
        self._work = ShieldedWork()

    def close(self) -> None:
        """Give up what is under way."""
        self._work.close()

    async def carry_out(self, choices: Choices, *, by_user: bool = True) -> None:
        """Do what was decided and report it.

        It goes on when the caller is cancelled: an edit may be on its way to the editor.
        """
        await self._work.run(self._carry_out(choices, by_user=by_user))

    def forecast(self, change_set: ChangeSet, choices: Choices) -> DecideResult:
        """What it would come to, as far as can be told without sending anything."""
        told: list[ProposedHunk] = []
        for hunk_id, choice in choices.items():
            hunk = change_set.hunks[hunk_id]
            if hunk.state == "proposed":
                hunk = replace(hunk, state=self._expected(hunk, choice))
            told.append(hunk)
        return msgspec.structs.replace(result(change_set, told), verified=None)

    def _expected(self, hunk: ProposedHunk, choice: HunkDecision) -> HunkState:
        if choice.action == "reject":
            return "rejected"
        if hunk.change is not None:
            return "applied" if self._edits.file_sender.fits(hunk.change) else "conflict"
        document = self._edits.files.find(hunk.file.uri)
        if document is None or (hunk.was_open and not document.is_open):
            return "stale"
        span = self._edits.overlay.find(document, hunk.id)
        return "conflict" if span is None or span.touched else "applied"

    async def _carry_out(self, choices: Choices, *, by_user: bool) -> None:
        """A hunk that another decision has claimed waits for that one."""
        hunks = [self._edits.ledger[hunk_id] for hunk_id in choices]
        self._reject([hunk for hunk in hunks if not hunk.claimed], choices)
        waiting = [hunk for hunk in hunks if hunk.state == "proposed"]
        for hunk in waiting:
            hunk.claimed = True
        try:
            groups = by_file(waiting).values()
            await asyncio.gather(*(self._send(g, choices, by_user=by_user) for g in groups))
        finally:
            for hunk in waiting:
                hunk.claimed = False

    async def _send(
        self, hunks: Sequence[ProposedHunk], choices: Choices, *, by_user: bool
    ) -> None:
        """Text first, then the file itself, each in a request of its own."""
        async with self._edits.locks.of_all(key for hunk in hunks for key in hunk.keys):
            self._reject(hunks, choices)
            accepted = [hunk for hunk in hunks if hunk.state == "proposed"]
            texts = [hunk for hunk in accepted if hunk.change is None]
            if texts:
                await self._send_texts(texts, choices)
            for hunk in accepted:
                if hunk.change is not None:
                    await self._send_file(hunk, hunk.change, choices, by_user=by_user)

    async def _send_texts(self, hunks: Sequence[ProposedHunk], choices: Choices) -> None:
        file = hunks[0].file
        texts = {hunk.id: choices[hunk.id].put for hunk in hunks}
        synced = {hunk.id for hunk in hunks if hunk.was_open}
        outcomes = await self._edits.sender.send(
            Order(file.uri, f"kode: {file.path}", texts, synced)
        )
        self._edits.overlay.remove(file.key, [key for key in texts if not outcomes[key].is_applied])
        self._edits.ledger.finish(hunks, choices, outcomes)
        document = self._edits.files.find(file.uri)
        for hunk in hunks:
            repairs = outcomes[hunk.id].repairs
            if repairs and document is not None:
                self._edits.announcer.repair(document, hunk, repairs)

    async def _send_file(
        self, hunk: ProposedHunk, change: FileChange, choices: Choices, *, by_user: bool
    ) -> None:
        text = choices[hunk.id].put
        if text is not None:
            change = replace(change, text=to_lf(text))
        label = f"kode: {change.kind} {hunk.file.path}"
        outcome = await self._edits.file_sender.send(change, label, ask=not by_user)
        self._edits.announcer.forget(change.key, {hunk.id: None})
        if outcome.is_applied:
            hunk.change = change.inverse()
            self._edits.announcer.renamed(change)
        self._edits.ledger.finish([hunk], choices, {hunk.id: outcome})

    def _reject(self, hunks: Iterable[ProposedHunk], choices: Choices) -> None:
        rejected = [
            hunk
            for hunk in hunks
            if hunk.state == "proposed" and choices[hunk.id].action == "reject"
        ]
        for hunk in rejected:
            self._edits.announcer.forget(hunk.file.key, {hunk.id: None})
        self._edits.ledger.reject(rejected, choices)
