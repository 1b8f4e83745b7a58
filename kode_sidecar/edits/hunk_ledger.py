"""The hunks of a session with their states; every change of state is told once."""

from collections.abc import Callable, Collection, Mapping, Sequence

from kode_sidecar.domain.agent_event import ChangeSetUpdated, Event
from kode_sidecar.domain.change_set import FileView, HunkState, Range, TextBase
from kode_sidecar.edits.edit_sender import Outcome
from kode_sidecar.edits.proposed_hunk import (
    ChangeSet,
    FileName,
    ProposedHunk,
    by_file,
    verdict_line,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import NewId
from kode_sidecar.protocol.change_set import HunkDecision
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.text_edit import to_lf


class HunkLedger:
    """Change sets, one per turn, and what the model has not been told about them."""

    def __init__(self, emit: Callable[[Event], int], new_id: NewId) -> None:
        self._emit = emit
        self._new_id = new_id
        self._sets: dict[str, ChangeSet] = {}
        self._by_turn: dict[str, ChangeSet] = {}
        self._hunks: dict[str, ProposedHunk] = {}
        self._untold: list[ProposedHunk] = []

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

    def restore(self, change_set: ChangeSet, untold: Collection[str]) -> None:
        """Take over a change set of an earlier process; the model knows nothing of `untold`."""
        self._sets[change_set.id] = self._by_turn[change_set.turn_id] = change_set
        self._hunks |= change_set.hunks
        self._untold += [
            hunk
            for hunk in change_set.hunks.values()
            if hunk.id in untold and hunk.state not in ("proposed", "superseded")
        ]

    def go_stale(self, reasons: Mapping[str, str]) -> None:
        """These hunks, by id with the reason, can not be applied any more."""
        hunks = [self._hunks[hunk_id] for hunk_id in reasons]
        for hunk in hunks:
            hunk.reason = reasons[hunk.id]
        self._settle(hunks, dict.fromkeys(reasons, "stale"))

    def announce(
        self,
        hunks: Sequence[ProposedHunk],
        ranges: Sequence[Range | None],
        base: TextBase | None = None,
    ) -> None:
        """New hunks of one file and one turn, whole, in the order of the text."""
        if not hunks:
            return
        change_set = self.of_turn(hunks[0].turn_id)
        for hunk in hunks:
            self._hunks[hunk.id] = change_set.hunks[hunk.id] = hunk
        views = tuple(hunk.whole_view(at) for hunk, at in zip(hunks, ranges, strict=True))
        name, version = hunks[0].file, base.version if base else None
        file = FileView(uri=name.uri, path=name.path, hunks=views, version=version, base=base)
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

    def supersede(self, heirs: Mapping[str, str | None]) -> None:
        """These hunks were taken over by others, or by nothing."""
        hunks = [self._hunks[hunk_id] for hunk_id in heirs]
        for hunk in hunks:
            hunk.superseded_by = heirs[hunk.id]
        self._settle(hunks, dict.fromkeys(heirs, "superseded"), tell_model=False)

    def reject(self, hunks: Sequence[ProposedHunk], choices: Mapping[str, HunkDecision]) -> None:
        """The user said no."""
        for hunk in hunks:
            hunk.comment = choices[hunk.id].comment
        self._settle(hunks, {hunk.id: "rejected" for hunk in hunks})

    def finish(
        self,
        hunks: Sequence[ProposedHunk],
        choices: Mapping[str, HunkDecision],
        outcomes: Mapping[str, Outcome],
    ) -> None:
        """Accepted hunks were sent, or could not be."""
        states: dict[str, HunkState] = {}
        for hunk in hunks:
            choice, outcome = choices[hunk.id], outcomes[hunk.id]
            hunk.found = outcome.found
            if outcome.state == "diverged":
                meant = hunk.new_text if choice.put is None else choice.put
                hunk.diff = unified_diff(
                    split_lines(to_lf(meant)), split_lines(outcome.found), hunk.file.path
                )
            hunk.unconfirmed = outcome.state == "unconfirmed"
            hunk.comment = choice.comment
            if outcome.state not in ("applied", "unconfirmed"):
                states[hunk.id] = outcome.state
            elif choice.action == "replace":
                hunk.replaced_by = choice.new_text
                states[hunk.id] = "replaced"
            else:
                states[hunk.id] = "applied"
        self._settle(hunks, states)

    def take_back(self, hunks: Sequence[ProposedHunk], number: int) -> None:
        """Applied hunks were undone by the undo of that number."""
        for hunk in hunks:
            hunk.undone_from, hunk.undone_by = hunk.state, number
        self._settle(hunks, {hunk.id: "undone" for hunk in hunks})

    def put_back(self, hunks: Sequence[ProposedHunk]) -> None:
        """Undone hunks are applied again."""
        self._settle(hunks, {hunk.id: hunk.undone_from or "applied" for hunk in hunks})

    def lose(self, hunks: Sequence[ProposedHunk], outcomes: Mapping[str, Outcome]) -> None:
        """An undo left another text than it should have."""
        for hunk in hunks:
            hunk.found = outcomes[hunk.id].found
            hunk.diff = unified_diff(
                split_lines(to_lf(hunk.old_text)), split_lines(hunk.found), hunk.file.path
            )
        self._settle(hunks, {hunk.id: "diverged" for hunk in hunks})

    def rename(self, file: FileName, new_file: FileName) -> None:
        """The file has another name now; what still waits there goes with it."""
        for hunk in self._hunks.values():
            if hunk.file == file and hunk.kind == "modify":
                hunk.file, hunk.was_open = new_file, False

    def take_reminders(self, turn_ids: Collection[str]) -> str | None:
        """What the model was not told yet about hunks of these turns; each one once."""
        text = self.untold(turn_ids)
        self._untold = [hunk for hunk in self._untold if hunk.turn_id not in turn_ids]
        return text

    def untold(self, turn_ids: Collection[str]) -> str | None:
        """The same, and they stay untold."""
        told = [hunk for hunk in self._untold if hunk.turn_id in turn_ids]
        if not told:
            return None
        return "What became of edits you proposed:\n" + "\n".join(map(verdict_line, told))

    def _settle(
        self,
        hunks: Sequence[ProposedHunk],
        states: Mapping[str, HunkState],
        *,
        tell_model: bool = True,
    ) -> None:
        for hunk in hunks:
            hunk.state = states[hunk.id]
            if hunk.waiter is not None:
                if not hunk.waiter.done():
                    hunk.waiter.set_result(None)
            elif tell_model and not any(one is hunk for one in self._untold):
                self._untold.append(hunk)
        # Without a turnId: a decision may come when its turn is long over (O2).
        touched = {hunk.turn_id: self.of_turn(hunk.turn_id) for hunk in hunks}
        for turn_id, change_set in touched.items():
            mine = by_file(hunk for hunk in hunks if hunk.turn_id == turn_id)
            files = (
                FileView(
                    uri=file.uri, path=file.path, hunks=tuple(hunk.state_view() for hunk in group)
                )
                for file, group in mine.items()
            )
            self._emit(
                ChangeSetUpdated(
                    change_set_id=change_set.id, state=change_set.state, files=tuple(files)
                )
            )
