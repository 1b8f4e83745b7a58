"""Params and results of `kode/changeSet/*`."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kode_sidecar.core.domain.change_set import ChangeSetState, FileView, HunkState
from kode_sidecar.errors import KodeError

DecideAction = Literal["accept", "reject", "replace"]


class HunkDecision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`new_text` only with `replace`; `comment` reaches the model."""

    hunk_id: str
    action: DecideAction
    new_text: str | None = None
    comment: str | None = None

    @property
    def put(self) -> str | None:
        """The text to put instead of the hunk's own; None for that one."""
        return self.new_text if self.action == "replace" else None


class DecideParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`rest` covers the hunks announced at or before `seen_seq` that `decisions` leaves out.

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

    What was decided that way before is answered like the rest. `left` are sensitive hunks that
    `rest: accept` does not cover: name them. `verified` is about the hunks that are `applied` or
    diverged: false where the editor's text shows something else (`diverged`), null where nothing
    was sent or the editor does not sync the file.
    """

    state: ChangeSetState
    applied: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    verified: bool | None = None


class ChangeSetRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """The id is that of `changeSet.updated`."""

    change_set_id: str


class ChangeSetView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A change set as it stands now; ranges are today's, `diff` is unified per file."""

    change_set_id: str
    session_id: str
    turn_id: str
    state: ChangeSetState
    files: tuple[FileView, ...]
    diff: str | UnsetType = UNSET


class ChangeSetListParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The change sets of one session."""

    session_id: str


class HunkCount(Struct, frozen=True, kw_only=True):
    """How many hunks are in one state."""

    state: HunkState
    count: int


class FileSummary(Struct, frozen=True, kw_only=True):
    """A file of a change set without texts."""

    uri: str
    path: str
    hunks: tuple[HunkCount, ...]


class ChangeSetSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change set without texts. `on_head`: its turn is on the path the newest turn grew on."""

    change_set_id: str
    turn_id: str
    state: ChangeSetState
    on_head: bool
    files: tuple[FileSummary, ...]


class ChangeSetListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Oldest first."""

    change_sets: tuple[ChangeSetSummary, ...]


class UndoParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Exactly one of the three ids says what to take back.

    `skip_conflicts` takes back what can be taken back; without it one conflict stops everything.
    `dry_run` answers without acting. With `direction` only that is done: `undo` takes back what is
    applied, `redo` puts back what the newest undo took; without it `redo` is meant where nothing is
    applied.
    """

    change_set_id: str | None = None
    turn_id: str | None = None
    hunk_id: str | None = None
    skip_conflicts: bool = False
    dry_run: bool = False
    direction: Literal["undo", "redo"] | None = None


class UndoConflict(Struct, frozen=True, kw_only=True, rename="camel"):
    """A hunk that cannot be taken back; `diff` leads from the text there now to the one before."""

    hunk_id: str
    diff: str


class UndoResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was taken back, hunk ids each.

    Where nothing of the scope was applied, the newest undo in it is taken back instead:
    `restored`. With `conflicts` and without `skip_conflicts` nothing was sent. `diff` is what was,
    or with `dry_run` would be, sent. `verified` as in `DecideResult`.
    """

    change_set_id: str
    state: ChangeSetState
    undone: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    conflicts: tuple[UndoConflict, ...] = ()
    diff: str = ""
    verified: bool | None = True


def undo_scope(params: UndoParams) -> str:
    """The one id given. Raises KodeError `InvalidParams`."""
    ids = (params.change_set_id, params.turn_id, params.hunk_id)
    named = [one for one in ids if one is not None]
    if len(named) != 1:
        path = "$" if not named else "$.turnId" if params.hunk_id is None else "$.hunkId"
        text = f"{path}: give exactly one of changeSetId, turnId and hunkId."
        raise KodeError("InvalidParams", text, details={"path": path})
    return named[0]
