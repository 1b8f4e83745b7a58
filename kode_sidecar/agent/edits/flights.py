"""An edit of one document on its way to the editor, and the document it is looked for in."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kode_sidecar.agent.edits.hunks import EditResult, HunkLedger
from kode_sidecar.agent.edits.verification import SentEdit
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.domain.hunk_state import UNSETTLED, HunkState
from kode_sidecar.core.text.change_log import ChangeLog
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, ending_like, with_ends_of
from kode_sidecar.infrastructure.workspace.document import Document

UNSEEN = (
    "an earlier edit was sent to the editor, which does not say whether the file still has it. "
    "Somebody must save the file, or open it."
)
UNANSWERED = (
    "an earlier edit was sent to the editor and not answered when the file was closed. "
    "Somebody must open the file: then it is seen what it holds."
)
LOST = "the file was closed, or went out of step with the editor, while the edit was on its way."


Late = Callable[[Mapping[str, EditResult]], None]
"""Receives what the text shows of hunks whose edit was given up, by their ids."""


@dataclass(eq=False)
class Order:
    """Hunks of one document that shall be sent, and what became of them so far.

    `texts` says by hunk id what to put there, None for the hunk's own new text. `states` are those
    they had before. `late` receives what comes once the order is `over`. `undo`: they are taken
    back, or put back.
    """

    uri: str
    label: str
    texts: Mapping[str, str | None]
    states: Mapping[str, HunkState]
    late: Late
    undo: bool = False
    results: dict[str, EditResult] = field(default_factory=dict[str, EditResult])
    over: bool = False

    def came(self, results: Mapping[str, EditResult]) -> None:
        """The text shows what became of hunks of an attempt that was given up."""
        if self.over:
            self.late(results)
        else:
            self.results |= results

    def todo(self, ledger: HunkLedger) -> dict[str, str | None]:
        """Return what is still to be sent.

        An edit of an earlier order may have come meanwhile: what is followed now takes it back.
        """
        others = (ledger[key] for key in self.texts if ledger[key].state != self.states[key])
        for hunk in others:
            state = "diverged" if hunk.state in UNSETTLED else "applied"
            came = EditResult(state, hunk.found or "", by_earlier=True)
            self.results.setdefault(hunk.id, came)
        return {key: text for key, text in self.texts.items() if key not in self.results}


@dataclass(eq=False)
class Flight:
    """One edit on its way: `edits` of `text`, by hunk id.

    `lost`: its document was closed or went out of step, with `last_text`. `answered`: the editor
    replied, or its `didChange` proved the edit before a reply came. `late`: nobody waits any more.
    """

    order: Order
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    document: Document | None = None
    text: str = ""
    last_text: str = ""
    sent: SentEdit | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict[str, Edit])
    answer: ApplyAnswer | None = None
    lost: bool = False
    answered: bool = False
    late: bool = False

    @property
    def refused(self) -> bool:
        """Whether the editor said that it did nothing."""
        return self.answer is not None and not self.answer.applied

    @property
    def accepted(self) -> bool:
        """Whether the editor said that it did it."""
        return self.answer is not None and self.answer.applied

    def patience(self, seconds: float) -> float:
        """Return how long the text may take to show it; nobody reports much after a no."""
        if self.answer is None:
            return 0.0
        return seconds if self.answer.applied else seconds / 8

    def why_not(self, *, diverged: bool) -> str:
        """Return why it is not seen as it was sent, as far as the editor says."""
        if diverged:
            return "the text that didChange then tells is not what the edit makes"
        if self.accepted:
            return "the editor answered that it is applied, but no didChange shows it"
        return refused(self.answer)


@dataclass
class Followed:
    """A document with edits on their way: the text they are compared with, and what came since."""

    text: str
    flights: list[Flight] = field(default_factory=list[Flight])
    log: ChangeLog = field(default_factory=ChangeLog)


def refused(answer: ApplyAnswer | None) -> str:
    """Return why the editor did not do it, in its own words where it has some."""
    if answer is None:
        return "the editor did not answer in time"
    return f"the editor did not apply it: {answer.reason or 'it gave no reason'}"


def whole(hunk: Hunk, text: str, eol: str) -> str:
    """Return the user's own text for a hunk as whole lines, as the hunk's are."""
    text = ending_like(text, hunk.old_text, hunk.new_text)
    return with_ends_of(text, split_lines(hunk.old_text), eol)
