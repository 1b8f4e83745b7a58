"""Params and results of `kode/changeSet/*`."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kode_sidecar.core.domain.change_set import ChangeSetState, FileView
from kode_sidecar.core.domain.hunk_state import HunkState
from kode_sidecar.errors import KodeError

DecideAction = Literal["accept", "reject", "replace"]


class HunkDecision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The decision on one hunk. `new_text` only with `replace`; the model reads `comment`."""

    hunk_id: str
    action: DecideAction
    new_text: str | None = None
    comment: str | None = None

    @property
    def put(self) -> str | None:
        """The text to insert instead of the hunk's own; None for the hunk's own."""
        return self.new_text if self.action == "replace" else None


class DecideParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`rest` decides the hunks announced at or before `seen_seq` that `decisions` does not name.

    `rest` needs `seen_seq` unless it is `keep`. `rest: accept` never covers sensitive hunks.
    `dry_run` answers without acting.
    """

    change_set_id: str
    seen_seq: int = 0
    decisions: tuple[HunkDecision, ...] = ()
    rest: Literal["keep", "accept", "reject"] = "keep"
    dry_run: bool = False


class DecideResult(Struct, frozen=True, kw_only=True):
    """Hunk ids by outcome; `conflicts` are those in conflict, diverged or superseded.

    Repeating an earlier decision gets the same answer. `left` are sensitive hunks that
    `rest: accept` does not cover: name them. `verified` concerns the hunks that are `applied` or
    diverged: false if the editor's text shows something else (`diverged`), null if nothing was sent
    or the editor does not sync the file.
    """

    state: ChangeSetState
    applied: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    verified: bool | None = None


class ChangeSetRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """Names a change set; the id comes from `changeSet.updated`."""

    change_set_id: str


class ChangeSetView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A change set as it stands now; ranges are current, `diff` is unified per file."""

    change_set_id: str
    session_id: str
    turn_id: str
    state: ChangeSetState
    files: tuple[FileView, ...]
    diff: str | UnsetType = UNSET


class MovedHunksParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """All hunks of some files that wait for the user, each only with its state and its range."""

    change_sets: tuple[ChangeSetView, ...]


class ChangeSetListParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The change sets of one session."""

    session_id: str


class HunkCount(Struct, frozen=True, kw_only=True):
    """The number of hunks in one state."""

    state: HunkState
    count: int


class FileSummary(Struct, frozen=True, kw_only=True):
    """One file of a change set, without texts."""

    uri: str
    path: str
    hunks: tuple[HunkCount, ...]


class ChangeSetSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change set without texts. `on_head`: its turn is on the branch of the newest turn."""

    change_set_id: str
    turn_id: str
    state: ChangeSetState
    on_head: bool
    files: tuple[FileSummary, ...]


class ChangeSetListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Oldest first."""

    change_sets: tuple[ChangeSetSummary, ...]


class UndoParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Exactly one of the three ids says what to undo.

    `skip_conflicts` undoes the hunks that have no conflict; without it one conflict stops
    everything. `dry_run` answers without acting. The `direction` `undo` takes back applied hunks,
    `redo` restores those of the newest undo; without it, redo if nothing is applied, else undo.
    """

    change_set_id: str | None = None
    turn_id: str | None = None
    hunk_id: str | None = None
    skip_conflicts: bool = False
    dry_run: bool = False
    direction: Literal["undo", "redo"] | None = None


class UndoConflict(Struct, frozen=True, kw_only=True, rename="camel"):
    """A hunk that cannot be undone; `diff` leads from the present text to the one before it."""

    hunk_id: str
    diff: str


class UndoResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The ids of the undone hunks.

    If nothing in the scope was applied, the newest undo in it is redone instead: `restored`. With
    `conflicts` and without `skip_conflicts` nothing was sent. `diff` is what was sent, or would be
    with `dry_run`. `verified` as in `DecideResult`.
    """

    change_set_id: str
    state: ChangeSetState
    undone: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    conflicts: tuple[UndoConflict, ...] = ()
    diff: str = ""
    verified: bool | None = True


def undo_scope(params: UndoParams) -> str:
    """Return the one id given. Raises KodeError `InvalidParams` for none or several."""
    ids = (params.change_set_id, params.turn_id, params.hunk_id)
    named = [one for one in ids if one is not None]
    if len(named) != 1:
        path = "$" if not named else "$.turnId" if params.hunk_id is None else "$.hunkId"
        text = f"{path}: give exactly one of changeSetId, turnId and hunkId."
        raise KodeError("InvalidParams", text, details={"path": path})
    return named[0]
