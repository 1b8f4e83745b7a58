"""Params and results of `kode/changeSet/*`."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kode_sidecar.domain.change_set import ChangeSetState, FileView

DecideAction = Literal["accept", "reject", "replace"]


class HunkDecision(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`new_text` only with `replace`; `comment` reaches the model."""

    hunk_id: str
    action: DecideAction
    new_text: str | None = None
    comment: str | None = None


class DecideParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`rest` covers the hunks announced at or before `seen_seq` that `decisions` leaves out.

    `rest` needs `seen_seq` unless it is `keep`. Sensitive hunks are never covered by
    `rest: accept`. `dry_run` answers without acting.
    """

    change_set_id: str
    seen_seq: int = 0
    decisions: tuple[HunkDecision, ...] = ()
    rest: Literal["keep", "accept", "reject"] = "keep"
    dry_run: bool = False


class DecideResult(Struct, frozen=True, kw_only=True):
    """Hunk ids by outcome; `conflicts` are those in conflict, diverged or superseded.

    `verified` is false where the editor's text shows something else (`diverged`), null where the
    editor does not sync the file.
    """

    state: ChangeSetState
    applied: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    verified: bool | None = True


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
