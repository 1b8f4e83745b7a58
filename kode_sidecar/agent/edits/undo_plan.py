"""What can be taken back now, and what it would come to."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kode_sidecar.agent.edits.file_edits import FileEdits
from kode_sidecar.agent.edits.recovery import Recovery
from kode_sidecar.agent.edits.services import EditServices
from kode_sidecar.core.domain.change_set import ChangeSet, ProposedHunk, by_file
from kode_sidecar.core.domain.hunk import Hunk
from kode_sidecar.core.protocol.change_set import UndoConflict, UndoResult
from kode_sidecar.core.text.line_diff import Run, split_lines, unified_diff
from kode_sidecar.core.text.text_edit import apply_edits, line_runs, to_lf
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.overlay import Overlay


@dataclass
class UndoPlan:
    """What can be undone now. `diffs` are by hunk id, of those that cannot be.

    `texts` are those of each file before and after the rest, with the lines that change.
    """

    hunks: list[ProposedHunk] = field(default_factory=list[ProposedHunk])
    diffs: dict[str, str] = field(default_factory=dict[str, str])
    texts: list[tuple[str, str, str, Sequence[Run]]] = field(
        default_factory=list[tuple[str, str, str, Sequence[Run]]]
    )

    def diff(self) -> str:
        """Return the unified diff of all files."""
        return "".join(
            unified_diff(split_lines(before), split_lines(after), path, runs=runs)
            for path, before, after, runs in self.texts
        )

    async def result(
        self, change_set: ChangeSet, done: Sequence[str], *, back: bool, verified: bool | None
    ) -> UndoResult:
        """Return its report: `done` were taken back, or put back; the diff is of these."""
        return UndoResult(
            change_set_id=change_set.id,
            state=change_set.state,
            undone=tuple(done) if back else (),
            restored=() if back else tuple(done),
            conflicts=tuple(
                UndoConflict(hunk_id=key, diff=diff) for key, diff in self.diffs.items()
            ),
            diff=await asyncio.to_thread(self.diff) if done else "",
            verified=verified,
        )


class UndoPlanner:
    """Plans on the texts of this moment; nothing is sent."""

    def __init__(self, services: EditServices, file_edits: FileEdits, recovery: Recovery) -> None:
        self._services = services
        self._overlay = services.overlay
        self._file_edits = file_edits
        self._recovery = recovery

    def find_done(
        self, hunks: Sequence[ProposedHunk], documents: Mapping[str, Document | None]
    ) -> None:
        """Look in today's text for what an earlier process applied."""
        for hunk in hunks:
            document = documents[hunk.file.uri]
            if not hunk.recalled:
                continue
            if hunk.kind != "modify" and self._services.changes.find(hunk.id) is None:
                self._recovery.find_file_done(hunk)
            elif document is not None and self._span(hunk, document) is None:
                self._recovery.find_done(document, [hunk])

    def plan(
        self, hunks: Sequence[ProposedHunk], documents: Mapping[str, Document | None]
    ) -> UndoPlan:
        plan = UndoPlan()
        for file, group in by_file(hunks).items():
            document = documents[file.uri]
            whole = [hunk for hunk in group if hunk.kind != "modify"]
            comes = any(self._file_edits.creates(hunk.id) for hunk in whole)
            spans: list[Hunk] = []
            for hunk in group:
                span = self._span(hunk, document)
                if span is not None and not span.touched:
                    spans.append(span)
                if hunk.kind == "modify" and (comes or (span is not None and not span.touched)):
                    plan.hunks.append(hunk)
                elif hunk.kind == "modify":
                    plan.diffs[hunk.id] = self.diff_of(hunk, documents)
            before = after = None
            if document is not None:
                current = self._overlay.current(document)
                edits = sorted((s.edit for s in spans), key=lambda edit: (edit.start, edit.end))
                before, after = current.lf_text, to_lf(apply_edits(current.text, edits))
                runs = line_runs(current.text, edits)
                plan.texts.append((file.path, before, after, runs))
            for hunk in whole:
                if self._file_edits.fits(hunk.id, after, [one.id for one in whole]):
                    plan.hunks.append(hunk)
                else:
                    plan.diffs[hunk.id] = self.diff_of(hunk, documents, after or "")
        return plan

    def _span(self, hunk: ProposedHunk, document: Document | None) -> Hunk | None:
        return None if document is None else self._overlay.find(document, hunk.id)

    def diff_of(
        self, hunk: ProposedHunk, documents: Mapping[str, Document | None], text: str = ""
    ) -> str:
        """Return the diff from what stands in a hunk's place to what would stand there."""
        change = self._services.changes.find(hunk.id)
        if change is not None:
            wanted = change.lf_text if change.kind != "rename" else text
            return unified_diff(split_lines(text), split_lines(wanted), hunk.file.path)
        document = documents.get(hunk.file.uri)
        span = self._span(hunk, document)
        if document is None or span is None:
            return ""
        return place_diff(self._overlay, document, span, hunk.file.path)


def chosen_of(
    scope: Iterable[ProposedHunk], direction: Literal["undo", "redo"] | None
) -> tuple[list[ProposedHunk], bool]:
    """Return the hunks that are meant, and whether they are to be taken back."""
    hunks = list(scope)
    applied = [hunk for hunk in hunks if hunk.is_done]
    if direction == "undo" or (applied and direction is None):
        return applied, True
    undone = [hunk for hunk in hunks if hunk.state == "undone"]
    newest = max((hunk.undone_by for hunk in undone), default=0)
    return [hunk for hunk in undone if hunk.undone_by == newest], False


def place_diff(overlay: Overlay, document: Document, span: Hunk, path: str) -> str:
    """Return the diff from what stands in a hunk's place to its new text, with true numbers."""
    text = overlay.current(document).text
    above = text[: span.start].count("\n")
    found, wanted = to_lf(text[span.start : span.end]), to_lf(span.new_text)
    return unified_diff(split_lines(found), split_lines(wanted), path, above=above)
