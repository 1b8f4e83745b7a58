"""The hunks of a session with their states; every change of state is reported once."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from kode_sidecar.agent.edits.verdicts import verdict_line
from kode_sidecar.core.domain.agent_event import ChangeSetUpdated, Event
from kode_sidecar.core.domain.change_set import (
    ChangeSet,
    FileName,
    FileView,
    HunkView,
    ProposedHunk,
    by_file,
)
from kode_sidecar.core.domain.hunk_state import HunkState
from kode_sidecar.core.domain.message import DECISIONS
from kode_sidecar.core.kernel.contracts import NewId
from kode_sidecar.core.protocol.change_set import HunkDecision
from kode_sidecar.core.text.line_diff import split_lines, unified_diff
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.errors import KodeError

_DISCARDED = "it was sent to the editor, but the text does not have it: it was discarded there."


@dataclass(frozen=True)
class EditResult:
    """What became of one hunk that was sent. `found` is what stands there instead, if it diverged.

    `unconfirmed`: sent for a file that the editor does not sync, so nobody can know. `reason` says
    why it was not applied, `diff` what it would still do to the text there. `by_earlier`: an edit
    that was sent for it before has come.
    """

    state: Literal["applied", "unconfirmed", "conflict", "diverged", "stale"]
    found: str = ""
    reason: str | None = None
    diff: str | None = None
    by_earlier: bool = False

    @property
    def is_applied(self) -> bool:
        """Whether it counts as done."""
        return self.state in ("applied", "unconfirmed")


class HunkLedger:
    """Change sets, one per turn, and what is not reported to the model yet."""

    def __init__(self, emit: Callable[[Event], int], new_id: NewId) -> None:
        self._emit = emit
        self._new_id = new_id
        self._sets: dict[str, ChangeSet] = {}
        self._by_turn: dict[str, ChangeSet] = {}
        self._hunks: dict[str, ProposedHunk] = {}
        self._keys: set[str] = set()
        self._unreported: dict[str, ProposedHunk] = {}
        self._waiters: dict[str, asyncio.Future[None]] = {}

    def __getitem__(self, hunk_id: str) -> ProposedHunk:
        return self._hunks[hunk_id]

    def change_set(self, change_set_id: str) -> ChangeSet:
        """Raises KodeError `ChangeSetNotFound`."""
        change_set = self._sets.get(change_set_id)
        if change_set is None:
            raise KodeError(
                "ChangeSetNotFound",
                f"There is no change set {change_set_id!r} in this session; "
                "use an id from changeSet.updated.",
            )
        return change_set

    def of_turn(self, turn_id: str) -> ChangeSet:
        """The turn's change set, a new one at its first proposal."""
        change_set = self._by_turn.get(turn_id)
        if change_set is None:
            change_set = ChangeSet(self._new_id("change_set"), turn_id)
            self._by_turn[turn_id] = self._sets[change_set.id] = change_set
        return change_set

    def holding(self, some_id: str) -> ChangeSet | None:
        """The change set of that id, of that turn, or with that hunk."""
        hunk = self._hunks.get(some_id)
        turn_id = hunk.turn_id if hunk else some_id
        return self._sets.get(some_id) or self._by_turn.get(turn_id)

    @property
    def change_sets(self) -> Sequence[ChangeSet]:
        """All of them, oldest first."""
        return tuple(self._sets.values())

    def take_over(self, change_set: ChangeSet, unreported: Collection[str]) -> None:
        """Take over a change set of an earlier process; the model knows nothing of `unreported`."""
        self._sets[change_set.id] = self._by_turn[change_set.turn_id] = change_set
        self._hunks |= change_set.hunks
        self._keys.update(key for hunk in change_set.hunks.values() for key in hunk.keys)
        self._unreported |= {
            hunk.id: hunk
            for hunk in change_set.hunks.values()
            if hunk.id in unreported and hunk.state not in ("proposed", "superseded")
        }

    def go_stale(self, reasons: Mapping[str, str]) -> None:
        """These hunks, by id with the reason, can not be applied any more."""
        hunks = [self._hunks[hunk_id] for hunk_id in reasons]
        for hunk in hunks:
            hunk.reason = reasons[hunk.id]
        self._settle(hunks, dict.fromkeys(reasons, "stale"))

    def announce(self, hunks: Sequence[ProposedHunk]) -> None:
        """Announce new hunks of one file and one turn, whole, in the order of the text."""
        if not hunks:
            return
        change_set = self.of_turn(hunks[0].turn_id)
        for hunk in hunks:
            self._hunks[hunk.id] = change_set.hunks[hunk.id] = hunk
            self._keys.update(hunk.keys)
        name, base = hunks[0].file, hunks[0].base
        file = FileView(
            uri=name.uri,
            path=name.path,
            hunks=tuple(hunk.whole_view(hunk.range) for hunk in hunks),
            version=base.version if base else None,
            base=base,
        )
        seq = self._emit(
            ChangeSetUpdated(
                turn_id=change_set.turn_id,
                change_set_id=change_set.id,
                state=change_set.state,
                files=(file,),
            )
        )
        for hunk in hunks:
            hunk.announced = seq

    def supersede(self, replacements: Mapping[str, str | None]) -> None:
        """These hunks were taken over by others, or by nothing."""
        hunks = [self._hunks[hunk_id] for hunk_id in replacements]
        for hunk in hunks:
            hunk.superseded_by = replacements[hunk.id]
        self._settle(hunks, dict.fromkeys(replacements, "superseded"), report_to_model=False)

    def reject(self, hunks: Sequence[ProposedHunk], choices: Mapping[str, HunkDecision]) -> None:
        """The user said no."""
        for hunk in hunks:
            hunk.comment = choices[hunk.id].comment
        self._settle(hunks, {hunk.id: "rejected" for hunk in hunks})

    def finish(
        self,
        hunks: Sequence[ProposedHunk],
        choices: Mapping[str, HunkDecision],
        results: Mapping[str, EditResult],
    ) -> None:
        """Accepted hunks were sent, or could not be."""
        states: dict[str, HunkState] = {}
        for hunk in hunks:
            choice, result = choices[hunk.id], results[hunk.id]
            hunk.comment = choice.comment
            if hunk.state == hunk.done_state and (result.by_earlier or not result.is_applied):
                continue  # an earlier edit of it stands, and was reported
            hunk.replacement = choice.put
            hunk.unconfirmed = result.state == "unconfirmed"
            hunk.explain(result.reason, result.diff)
            states[hunk.id] = hunk.done_state
            if result.state not in ("applied", "unconfirmed"):
                states[hunk.id] = result.state
                hunk.try_for(choice.put)
            if result.state == "diverged":
                hunk.found = result.found
                hunk.diff = _diverged(hunk, hunk.put_text, result.found)
        self._settle([hunk for hunk in hunks if hunk.id in states], states)

    def apply_late(self, puts: Mapping[str, str | None]) -> None:
        """Hunks that were given up turned out to be applied: that is the last word.

        `puts` are the user's own texts that stand there, by hunk id; None for the hunk's own.
        """
        hunks = [self._hunks[key] for key in puts]
        hunks = [hunk for hunk in hunks if hunk.is_open or _is_another(hunk, puts[hunk.id])]
        for hunk in hunks:
            hunk.explain(None, None)
            hunk.unconfirmed = False
            hunk.replacement = puts[hunk.id]
        self._settle(hunks, {hunk.id: hunk.done_state for hunk in hunks})

    def diverge(self, sent: ProposedHunk, found: str) -> None:
        """What was `sent` and given up is there, with other lines in it: `found` stands there."""
        hunk = self._hunks[sent.id]
        hunk.reason, hunk.found, hunk.replacement = None, found, sent.replacement
        hunk.diff = _diverged(hunk, hunk.put_text, found)
        self._settle([hunk], {hunk.id: "diverged"})

    def confirm(self, hunk_id: str) -> None:
        """What was sent to a file that nobody could see is seen in its text."""
        hunk = self._hunks[hunk_id]
        hunk.unconfirmed = False
        self._unreported.setdefault(hunk.id, hunk)

    def discard(self, hunk_id: str) -> None:
        """What was sent to a file that nobody could see is not there after all."""
        hunk = self._hunks[hunk_id]
        hunk.unconfirmed, hunk.reason = False, _DISCARDED
        state = hunk.done_state if hunk.state == "undone" else "conflict"
        self._settle([hunk], {hunk.id: state})

    def report_fit(self, fits: Mapping[str, bool]) -> None:
        """Hunks that wait fit no more, or do again."""
        hunks = [self._hunks[hunk_id] for hunk_id in fits]
        for hunk in hunks:
            hunk.fits = fits[hunk.id]
        self._report(hunks, lambda hunk: replace(hunk.state_view(), fits=hunk.fits))

    def unsettled(self, key: str) -> list[ProposedHunk]:
        """Hunks of that document of which the text may still show something new."""
        return [
            hunk
            for hunk in self._hunks.values()
            if key in hunk.keys and (hunk.is_open or hunk.unconfirmed)
        ]

    def has_hunks(self, key: str) -> bool:
        """Whether anything was ever proposed for that document."""
        return key in self._keys

    def of_file(self, key: str) -> list[ProposedHunk]:
        """All hunks of that document, whatever became of them."""
        return [hunk for hunk in self._hunks.values() if hunk.file.key == key]

    def unconfirmed_keys(self) -> set[str]:
        """The documents that something was sent to which nobody has seen."""
        return {hunk.file.key for hunk in self._hunks.values() if hunk.unconfirmed}

    def keep(self, hunks: Sequence[ProposedHunk]) -> None:
        """Keep hunks that were applied unasked; the model learns what the user says of them."""
        for hunk in hunks:
            hunk.kept = True
            if hunk.comment:
                self._unreported.setdefault(hunk.id, hunk)
        self._report(hunks, ProposedHunk.state_view)

    def take_back(self, hunks: Sequence[ProposedHunk], number: int) -> None:
        """Applied hunks were undone by the undo of that number; a redo is a word to keep them."""
        for hunk in hunks:
            hunk.undone_by = number
            hunk.kept = None if hunk.kept is None else True
        self._settle(hunks, {hunk.id: "undone" for hunk in hunks})

    def restore(self, hunks: Sequence[ProposedHunk]) -> None:
        """Undone hunks are applied again."""
        self._settle(hunks, {hunk.id: hunk.done_state for hunk in hunks})

    def drop(self, hunks: Sequence[ProposedHunk], results: Mapping[str, EditResult]) -> None:
        """An undo left another text than it should have."""
        for hunk in hunks:
            hunk.found = results[hunk.id].found
            hunk.diff = _diverged(hunk, hunk.old_text, hunk.found)
        self._settle(hunks, {hunk.id: "diverged" for hunk in hunks})

    def rename(self, file: FileName, new_file: FileName) -> None:
        """The file has another name now; what still waits there goes with it."""
        for hunk in self._hunks.values():
            if hunk.file == file and hunk.kind == "modify":
                hunk.file = new_file

    def expect(self, hunks: Sequence[ProposedHunk]) -> Sequence[asyncio.Future[None]]:
        """Return what is done once each hunk is decided; until `expected` only we report it."""
        for hunk in hunks:
            self._waiters[hunk.id] = asyncio.get_running_loop().create_future()
        return [self._waiters[hunk.id] for hunk in hunks]

    def expected(self, hunks: Sequence[ProposedHunk]) -> None:
        """Whoever waited for these hunks has reported them to the model, or gave up."""
        for hunk in hunks:
            del self._waiters[hunk.id]

    def reported(self, turn_ids: Collection[str]) -> None:
        """Note that the model got what `unreported` says of these turns."""
        known = [key for key, hunk in self._unreported.items() if hunk.turn_id in turn_ids]
        for key in known:
            del self._unreported[key]

    def unreported(self, turn_ids: Collection[str]) -> str | None:
        """Return what is not reported yet of hunks of these turns; they stay unreported."""
        known = [hunk for hunk in self._unreported.values() if hunk.turn_id in turn_ids]
        if not known:
            return None
        return DECISIONS + "\n".join(map(verdict_line, known))

    def _settle(
        self,
        hunks: Sequence[ProposedHunk],
        states: Mapping[str, HunkState],
        *,
        report_to_model: bool = True,
    ) -> None:
        for hunk in hunks:
            hunk.state = states[hunk.id]
            hunk.fits = True
            waiter = self._waiters.get(hunk.id)
            if waiter is not None:
                if not waiter.done():
                    waiter.set_result(None)
            elif report_to_model:
                self._unreported.setdefault(hunk.id, hunk)
        self._report(hunks, ProposedHunk.state_view)

    def _report(
        self, hunks: Sequence[ProposedHunk], view: Callable[[ProposedHunk], HunkView]
    ) -> None:
        """Without a turnId: a decision may come when its turn is long over (O2)."""
        touched = {hunk.turn_id: self.of_turn(hunk.turn_id) for hunk in hunks}
        for turn_id, change_set in touched.items():
            mine = by_file(hunk for hunk in hunks if hunk.turn_id == turn_id)
            files = (
                FileView(uri=file.uri, path=file.path, hunks=tuple(map(view, group)))
                for file, group in mine.items()
            )
            self._emit(
                ChangeSetUpdated(
                    turn_id=change_set.turn_id,
                    change_set_id=change_set.id,
                    state=change_set.state,
                    files=tuple(files),
                )
            )


def _is_another(hunk: ProposedHunk, put: str | None) -> bool:
    """Return whether a hunk was reported as done with another text than what was put now."""
    return hunk.state == hunk.done_state and hunk.replacement != put


def _diverged(hunk: ProposedHunk, wanted: str, found: str) -> str:
    """Return the diff from what should stand in a hunk's place to what was found there."""
    return unified_diff(split_lines(to_lf(wanted)), split_lines(found), hunk.file.path)
