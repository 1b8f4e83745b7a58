"""Proposed hunks from announcement to decision, and how they look on the wire and to the model."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from kode_sidecar.domain.change_set import ChangeSetState, HunkFlag, HunkState, HunkView, Range
from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.domain.invisible import invisible_characters

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
    """One hunk. Its texts never change; `state` and what goes with it do, once.

    `announced` is the `seq` of the event that carried it whole. `was_open`: proposed on a text
    that the editor synced. `claimed`: somebody has accepted it and it is on its way.
    `waiter` is set while a tool call waits for the decision and will tell the model itself.
    """

    id: str
    turn_id: str
    file: FileName
    old_text: str
    new_text: str
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
    claimed: bool = False
    waiter: asyncio.Future[None] | None = None

    def whole_view(self, span: Range | None) -> HunkView:
        """All of it; `span` is where it stands, None once it is decided."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            kind="modify",
            range=span,
            old_text=self.old_text,
            new_text=self.new_text,
            flags=self.flags,
            code_points=self.code_points,
            superseded_by=self.superseded_by,
            reason=self.reason,
        )

    def state_view(self) -> HunkView:
        """What changes after the announcement."""
        return HunkView(
            hunk_id=self.id,
            state=self.state,
            superseded_by=self.superseded_by,
            reason=self.reason,
        )


def new_hunk(
    span: Hunk, turn_id: str, file: FileName, *, sensitive: bool, is_open: bool
) -> ProposedHunk:
    """A proposed hunk, flagged for what a user should look at (W11, W13)."""
    hidden = invisible_characters(span.new_text)
    flags: list[HunkFlag] = ["sensitive"] if sensitive else []
    if hidden:
        flags.append("invisibleCharacters")
    return ProposedHunk(
        id=span.id,
        turn_id=turn_id,
        file=file,
        old_text=span.old_text,
        new_text=span.new_text,
        flags=tuple(flags),
        code_points=hidden,
        was_open=is_open,
    )


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
        case "applied" if hunk.unconfirmed:
            return "accepted and sent to the editor, unconfirmed: the file is not open there."
        case "applied":
            return "accepted and applied."
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
        case "superseded":
            return "replaced by a later edit of yours."
        case _:
            return "not applied: the text there changed meanwhile. Read it again before you go on."


def _name(hunk: ProposedHunk) -> str:
    """A hunk by the first line that it changes, as a model remembers it."""
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
