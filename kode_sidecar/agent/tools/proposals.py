"""Define where proposed edits go, their outcome, and its report to the model."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kode_sidecar.core.kernel.contracts import ToolCall, ToolOutcome
from kode_sidecar.core.text.edit_tiers import Tier
from kode_sidecar.core.text.line_diff import Run, split_lines, unified_diff
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.core.text.text_edit import common_prefix
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document, text_rev

T = TypeVar("T")

MAX_LINE_CHARS = 1_000
"""The most characters of a line that a report shows."""

Rewrite = Callable[[Document, str], str]
"""`(document, text)` → new text, both LF; `text` has the session's pending edits in it.

It may be called again on a later text, and on another thread. It raises KodeError if it does not
fit.
"""


@dataclass(frozen=True)
class Proposed:
    """The outcome of a proposal. `before` and `after` are the session's text, LF line ends.

    `text` is what the session sees now. `message` reports the outcome of the hunks to the model,
    `summary` in a few words. A created file has no text before, a deleted one none after; `path`
    of a moved file is its new name. `runs` are the changed lines, if known.
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
    """Do pure work on a text of `chars` characters, on a thread if the text is large."""
    return work() if chars < LARGE_CHARS else await asyncio.to_thread(work)


class Proposals(Protocol):
    """Where edits go: the change sets of a session, or the sandbox of a run.

    `SessionFiles` defines which files exist. Every method raises KodeError: `Denied` if the user or
    a rule refuses the target, and the errors of `SessionFiles.document`.
    """

    async def propose(self, path: str, rewrite: Rewrite, call: ToolCall) -> Proposed:
        """Propose the result of `rewrite` as hunks; also raises the errors of `rewrite`.

        A file whose creation is pending can be edited, too: this changes the text to create.
        """
        ...

    async def propose_create(self, path: str, text: str, call: ToolCall) -> Proposed:
        """Propose a new file; all its lines get the most common line end, LF or CRLF.

        Raises `ToolFailed` if the file exists.
        """
        ...

    async def propose_move(self, source: str, target: str, call: ToolCall) -> Proposed:
        """Propose to rename a file. Raises `ToolFailed` where `target` exists."""
        ...

    async def propose_delete(self, path: str, call: ToolCall) -> Proposed:
        """Propose to delete a file. If its creation is pending, only withdraw that."""
        ...


def text_report(proposed: Proposed, notes: Sequence[str] = (), tiers: Sequence[Tier] = ()) -> str:
    """Return the report of a changed text for the model: the outcome, the new revision, the diff.

    `tiers` say how exactly the quoted texts matched.
    """
    before, after = split_lines(proposed.before), split_lines(proposed.after)
    diff = unified_diff(before, after, proposed.path, runs=proposed.runs).rstrip("\n")
    return "\n".join([proposed.message, head(proposed, tiers), *notes, _with_short_lines(diff)])


def _with_short_lines(diff: str) -> str:
    """Return a diff with long lines cut around what changes in them."""
    lines = diff.split("\n")
    if max(map(len, lines)) <= MAX_LINE_CHARS:
        return diff
    shown: list[str] = []
    for at, line in enumerate(lines):
        others = [*lines[max(0, at - 2) : at], *lines[at + 1 : at + 3]]
        pairs = [other for other in others if {line[:1], other[:1]} == {"-", "+"}]
        around = max((common_prefix(line[1:], other[1:]) for other in pairs), default=0)
        shown.append(line[:1] + cut_line(line[1:], MAX_LINE_CHARS, around))
    return "\n".join(shown)


def head(proposed: Proposed, tiers: Sequence[Tier] = ()) -> str:
    """Return the file and the revision that the model can refer to from now on."""
    facts = [proposed.path, f"base_rev {text_rev(proposed.text)[:12]}"]
    if tiers:
        facts.append("matched: " + ", ".join(dict.fromkeys(tiers)))
    return "[" + " · ".join(facts) + "]"


def outcome(proposed: Sequence[Proposed], content: str, repairs: Sequence[str]) -> ToolOutcome:
    """Return the outcome of a call that proposed something in one change set."""
    if repairs:
        content += f"\n[Your arguments were fixed: {'; '.join(repairs)}.]"
    return ToolOutcome(
        ok=True,
        summary=without_controls("; ".join(one.summary for one in proposed)),
        content=without_controls(content),
        data={
            "changeSetId": proposed[0].change_set_id,
            "hunkIds": [hunk_id for one in proposed for hunk_id in one.hunk_ids],
        },
    )
