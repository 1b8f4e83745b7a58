"""Proposed hunks from announcement to decision, and how they look on the wire and to the model."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kode_sidecar.domain.change_set import (
    ChangeSetState,
    HunkFlag,
    HunkKind,
    HunkState,
    HunkView,
    Range,
)
from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.domain.seen_lines import Gap
from kode_sidecar.text.shown_text import invisible_characters
from kode_sidecar.workspace.file_changes import FileChange

MAX_COMMENT_CHARS = 2_000
MAX_QUOTED_CHARS = 2_000
MAX_NAME_CHARS = 60


@dataclass(frozen=True)
class FileName:
    """A file in its three spellings: the editor's URI, the canonical key, what people read."""

    uri: str
    key: str
    path: str


@dataclass
class ProposedHunk:
    """One hunk. Its texts never change; `state` and what goes with it do.

    `change` is what it does to a file as a whole: to do it, or once it is applied to take it back.
    `repairs` names the diverged hunk it puts right. `undone_from` is the state that an undo took
    it from, `undone_by` the number of that undo. `announced` is the `seq` of the event that carried
    it whole. `was_open`: proposed on a text that the editor synced. `claimed`: somebody has
    accepted it and it is on its way. `waiter` is set while a tool call waits for the decision and
    will tell the model itself.
    """

    id: str
    turn_id: str
    file: FileName
    old_text: str
    new_text: str
    kind: HunkKind = "modify"
    change: FileChange | None = None
    new_file: FileName | None = None
    repairs: str | None = None
    flags: tuple[HunkFlag, ...] = ()
    code_points: tuple[str, ...] = ()
    was_open: bool = True
    announced: int = 0
    state: HunkState = "proposed"
    superseded_by: str | None = None
    comment: str | None = None
    replaced_by: str | None = None
    unconfirmed: bool = False
    found: str = ""
    reason: str | None = None
    diff: str | None = None
    undone_from: HunkState | None = None
    undone_by: int = 0
    claimed: bool = False
    waiter: asyncio.Future[None] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The documents it concerns."""
        return (self.file.key, self.new_file.key) if self.new_file else (self.file.key,)

    def whole_view(self, span: Range | None) -> HunkView:
        """All of it; `span` is where it stands, None once it is decided."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            kind=self.kind,
            range=span,
            old_text=self.old_text if self.kind in ("modify", "delete") else None,
            new_text=self.new_text if self.kind in ("modify", "create") else None,
            flags=self.flags,
            code_points=self.code_points,
            superseded_by=self.superseded_by,
            reason=self.reason,
            new_uri=self.new_file.uri if self.new_file else None,
            new_path=self.new_file.path if self.new_file else None,
            repairs=self.repairs,
            diff=self.diff,
        )

    def state_view(self) -> HunkView:
        """What changes after the announcement."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            superseded_by=self.superseded_by,
            reason=self.reason,
            diff=self.diff,
        )


def new_hunk(
    span: Hunk,
    turn_id: str,
    file: FileName,
    *,
    sensitive: bool,
    gaps: Sequence[Gap] = (),
    is_open: bool,
) -> ProposedHunk:
    """A proposed hunk, flagged for what a user should look at (W11, W13, C13)."""
    flags, hidden = _flags(span.new_text, sensitive=sensitive)
    return ProposedHunk(
        id=span.id,
        turn_id=turn_id,
        file=file,
        old_text=span.old_text,
        new_text=span.new_text,
        flags=(*gaps, *flags),
        code_points=hidden,
        was_open=is_open,
    )


def new_file_hunk(
    change: FileChange,
    turn_id: str,
    file: FileName,
    new_file: FileName | None,
    *,
    sensitive: bool,
    gaps: Sequence[Gap] = (),
) -> ProposedHunk:
    """The same for a file that is created, renamed to `new_file`, or deleted.

    A new name may hide something as well as a new text.
    """
    created = change.kind == "create"
    name = (new_file or file).path if change.adds is not None else ""
    flags, hidden = _flags(name + (change.text if created else ""), sensitive=sensitive)
    return ProposedHunk(
        id=change.id,
        turn_id=turn_id,
        file=file,
        old_text="" if created else change.text,
        new_text=change.text if created else "",
        kind=change.kind,
        change=change,
        new_file=new_file,
        flags=(*gaps, *flags),
        code_points=hidden,
        was_open=False,
    )


def _flags(text: str, *, sensitive: bool) -> tuple[tuple[HunkFlag, ...], tuple[str, ...]]:
    hidden = invisible_characters(text)
    flags: list[HunkFlag] = ["sensitive"] if sensitive else []
    if hidden:
        flags.append("invisibleCharacters")
    return tuple(flags), hidden


@dataclass
class ChangeSet:
    """All edits proposed in one turn."""

    id: str
    turn_id: str
    hunks: dict[str, ProposedHunk] = field(default_factory=dict[str, ProposedHunk])

    @property
    def state(self) -> ChangeSetState:
        """`decided` when nothing waits; hunks that others took over do not count."""
        live = [hunk for hunk in self.hunks.values() if hunk.state != "superseded"]
        waiting = sum(hunk.state == "proposed" for hunk in live)
        if not waiting:
            return "decided"
        return "proposed" if waiting == len(live) else "partly_decided"


def by_file(hunks: Iterable[ProposedHunk]) -> dict[FileName, list[ProposedHunk]]:
    """Hunks grouped by file, both in the order given."""
    groups: dict[FileName, list[ProposedHunk]] = {}
    for hunk in hunks:
        groups.setdefault(hunk.file, []).append(hunk)
    return groups


def verdict_line(hunk: ProposedHunk) -> str:
    """What became of a decided hunk, for the model."""
    return f"- {hunk.file.path}, {_name(hunk)}: {_verdict(hunk)}"


def _verdict(hunk: ProposedHunk) -> str:
    match hunk.state:
        case "undone":
            return "undone by the user: what was there before is there again."
        case "applied" if hunk.unconfirmed:
            return "accepted and sent to the editor, unconfirmed: the file is not open there."
        case "applied":
            again = "put back by the user: it is applied again."
            return again if hunk.undone_from else "accepted and applied."
        case "replaced":
            sent = " (sent, unconfirmed: the file is not open)" if hunk.unconfirmed else ""
            text = hunk.replaced_by or ""
            return f"the user replaced it{sent}. The text is now:{_quoted(text)}"
        case "rejected":
            comment = (hunk.comment or "").strip()[:MAX_COMMENT_CHARS]
            return f"rejected by the user: {comment}" if comment else "rejected by the user."
        case "stale" if hunk.reason is not None:
            return f"not applied: {hunk.reason}"
        case "stale":
            return "not applied: the file was closed, deleted or is out of step with the editor."
        case "diverged":
            return f"sent, but the text there is another one now:{_quoted(hunk.found)}"
        case "conflict" if hunk.change is not None:
            return "not done: there is another file, or another text, by now. Look again first."
        case "superseded":
            return "replaced by a later edit of yours."
        case _:
            return "not applied: the text there changed meanwhile. Read it again before you go on."


def _name(hunk: ProposedHunk) -> str:
    """A hunk by the first line that it changes, as a model remembers it."""
    match hunk.kind:
        case "create":
            return "the new file"
        case "delete":
            return "the deletion of the file"
        case "rename":
            return f"the move to {hunk.new_file.path if hunk.new_file else ''}"
        case "modify":
            pass
    old, new = _first_line(hunk.old_text), _first_line(hunk.new_text)
    if not hunk.old_text:
        return f"the added lines from `{new}`"
    return f"the change at `{old}`" if hunk.new_text else f"the deletion of `{old}`"


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= MAX_NAME_CHARS else line[:MAX_NAME_CHARS] + "…"


def _quoted(text: str) -> str:
    if not text:
        return " (nothing)"
    cut = text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + "…\n"
    fence = "```" if "```" not in cut else "~~~~"
    return f"\n{fence}\n{cut}{'' if cut.endswith(chr(10)) else chr(10)}{fence}"
