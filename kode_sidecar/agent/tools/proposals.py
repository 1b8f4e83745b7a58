"""Proposed edits: where they go, what became of them, and what the model reads about that."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kode_sidecar.core.kernel.contracts import ToolCall, ToolOutcome
from kode_sidecar.core.text.edit_tiers import Tier
from kode_sidecar.core.text.line_diff import Run, split_lines, unified_diff
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document, text_rev

T = TypeVar("T")

Rewrite = Callable[[Document, str], str]
"""`(document, text)` → new text, both LF; `text` has the session's pending edits in it.

It may be called again on a later text, and on another thread. It raises KodeError where it does not
fit.
"""


@dataclass(frozen=True)
class Proposed:
    """What became of a proposal. `before` and `after` are the session's text, LF line ends.

    `text` is the text the session sees now. `message` tells the model what was done with the
    hunks, `summary` says it in a few words. A file that was created has no text before, one that
    was deleted none after; `path` of a moved one is its new name. `runs` are the lines that change,
    where they are known.
    """

    path: str
    before: str
    after: str
    text: str
    summary: str
    message: str
    change_set_id: str = ""
    hunk_ids: tuple[str, ...] = ()
    runs: Sequence[Run] | None = None


async def apart(chars: int, work: Callable[[], T]) -> T:
    """Do pure work on a text of so many characters, beside the event loop where it is large."""
    return work() if chars < LARGE_CHARS else await asyncio.to_thread(work)


class Proposals(Protocol):
    """Where edits go: the change sets of a session, or the sandbox of a run.

    What exists is what `SessionFiles` says. Every method raises KodeError: `Denied` when the user
    or a rule refuses the target, and what `SessionFiles.document` raises.
    """

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """Propose what `rewrite` makes of the file, as hunks; also raises what that raises.

        A file whose creation is still pending is one like any other: the text to create it with
        changes.
        """
        ...

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """Propose a new file with this text; its lines end as most of them do, in LF or CRLF.

        Raises `ToolFailed` where there is one.
        """
        ...

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """Propose to rename a file. Raises `ToolFailed` where `target` exists."""
        ...

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """Propose to delete a file. One whose creation is pending is merely taken back."""
        ...


def text_report(proposed: Proposed, notes: Sequence[str] = (), tiers: Sequence[Tier] = ()) -> str:
    """Return what the model reads of a changed text: what was done, the new revision, the diff.

    `tiers` say how exactly the quoted texts were found.
    """
    before, after = split_lines(proposed.before), split_lines(proposed.after)
    diff = unified_diff(before, after, proposed.path, runs=proposed.runs).rstrip("\n")
    return "\n".join([proposed.message, head(proposed, tiers), *notes, diff])


def head(proposed: Proposed, tiers: Sequence[Tier] = ()) -> str:
    """Return the file and the revision that the model may name from now on."""
    facts = [proposed.path, f"base_rev {text_rev(proposed.text)[:12]}"]
    if tiers:
        facts.append("matched: " + ", ".join(dict.fromkeys(tiers)))
    return "[" + " · ".join(facts) + "]"


def outcome(proposed: Sequence[Proposed], content: str, repairs: Sequence[str]) -> ToolOutcome:
    """Return the outcome of a call that proposed something in one change set."""
    if repairs:
        content += f"\n[Your arguments were mended: {'; '.join(repairs)}.]"
    return ToolOutcome(
        ok=True,
        summary=without_controls("; ".join(one.summary for one in proposed)),
        content=without_controls(content),
        data={
            "changeSetId": proposed[0].change_set_id,
            "hunkIds": [hunk_id for one in proposed for hunk_id in one.hunk_ids],
        },
    )
