"""Pending hunks of an earlier process: where they stand today, if anywhere.

A hunk holds as far as its base does: the text it was made for is still the same, or the lines it
replaces are still there, once.
"""

from collections.abc import Sequence
from itertools import accumulate

from kode_sidecar.domain.hunk import Hunk
from kode_sidecar.edits.hunk_ledger import HunkLedger
from kode_sidecar.edits.proposed_hunk import ChangeSet, FileName, ProposedHunk, by_file
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import EventHistory, ToldChangeSet, ToldHunk
from kode_sidecar.text.line_diff import split_lines
from kode_sidecar.text.text_edit import between_lines, to_lf
from kode_sidecar.text.uris import canonical_key
from kode_sidecar.workspace.documents import Document
from kode_sidecar.workspace.file_changes import FileChange, FileChanges
from kode_sidecar.workspace.overlay import Overlay
from kode_sidecar.workspace.workspace import Workspace

_GONE = "the file is not there any more."
_CHANGED = "the text there changed while no sidecar looked after it."


class RestoredHunks:
    """Takes over the change sets of earlier processes; what waits is found in today's texts.

    A hunk whose base does not hold any more is stale. An edit in a file outside the folders that
    are open now waits on.
    """

    def __init__(
        self, workspace: Workspace, overlay: Overlay, changes: FileChanges, ledger: HunkLedger
    ) -> None:
        self._workspace = workspace
        self._overlay = overlay
        self._changes = changes
        self._ledger = ledger

    def restore(self, history: EventHistory) -> None:
        """All of them."""
        for told in history.change_sets.values():
            change_set = told_change_set(told)
            self._ledger.restore(change_set, history.decided_since_turn)
            waiting = [hunk for hunk in change_set.hunks.values() if hunk.state == "proposed"]
            for hunk in waiting:
                if hunk.kind != "modify":
                    self._find_file(hunk)
            edits = [hunk for hunk in waiting if hunk.kind == "modify"]
            for file, hunks in by_file(edits).items():
                self._find_edits(file, [told.hunks[hunk.id] for hunk in hunks], told.turn_id)

    def _find_edits(self, file: FileName, hunks: Sequence[ToldHunk], turn_id: str) -> None:
        try:
            document = self._workspace.document(file.uri, purpose="edit")
        except KodeError as error:
            if error.code == "NotFound":
                self._ledger.go_stale(dict.fromkeys((hunk.view.hunk_id for hunk in hunks), _GONE))
            return
        lost: dict[str, str] = {}
        found: list[Hunk] = []
        for told in hunks:
            hunk = find_hunk(told, document)
            if hunk is None or overlaps(hunk, found):
                lost[told.view.hunk_id] = _CHANGED
            else:
                found.append(hunk)
        self._overlay.add(document, found, turn_id)
        self._ledger.go_stale(lost)

    def _find_file(self, hunk: ProposedHunk) -> None:
        """A file to create, move or delete: what it begins with must be as it was."""
        try:
            change = self._file_change(hunk)
        except KodeError as error:
            self._ledger.go_stale({hunk.id: error.message})
            return
        if change is None:
            self._ledger.go_stale({hunk.id: _CHANGED})
            return
        hunk.change = change
        self._changes.add(change, hunk.turn_id)

    def _file_change(self, hunk: ProposedHunk) -> FileChange | None:
        """None where it does not fit any more. Raises KodeError where a file cannot be read."""
        place = self._workspace.locate(hunk.file.uri)
        if hunk.kind == "create":
            if place.real.exists():
                return None
            return FileChange(hunk.id, "create", hunk.file.uri, place, text=to_lf(hunk.new_text))
        text = self._workspace.document(hunk.file.uri, purpose="edit").text
        if hunk.kind == "delete":
            if to_lf(text) != to_lf(hunk.old_text):
                return None
            return FileChange(hunk.id, "delete", hunk.file.uri, place, text=text)
        if hunk.new_file is None:
            return None
        target = self._workspace.locate(hunk.new_file.uri)
        if target.real.exists():
            return None
        return FileChange(hunk.id, "rename", hunk.file.uri, place, target)


def told_change_set(told: ToldChangeSet) -> ChangeSet:
    """A change set as its events have told it."""
    hunks = {hunk_id: _proposed_hunk(told.turn_id, hunk) for hunk_id, hunk in told.hunks.items()}
    return ChangeSet(told.id, told.turn_id, hunks)


def find_hunk(told: ToldHunk, document: Document) -> Hunk | None:
    """The hunk in today's text; None where its base does not hold any more."""
    text, view = document.text, told.view
    old, new = view.old_text or "", view.new_text or ""
    starts = list(accumulate(map(len, split_lines(text)), initial=0))
    base, span = told.file.base, view.range
    places: list[int] = []
    if base is not None and span is not None and base.sha256 == document.rev:
        places = starts[span.start.line : span.start.line + 1]
    elif old:
        places = starts
    found = [
        start
        for start in places
        if text.startswith(old, start) and between_lines(text, start + len(old))
    ]
    if len(found) != 1:
        return None
    return Hunk(view.hunk_id, found[0], found[0] + len(old), old, new)


def overlaps(hunk: Hunk, others: list[Hunk]) -> bool:
    """Whether it takes the place of one of the others."""
    return any(hunk.start < other.end and other.start < hunk.end for other in others)


def _proposed_hunk(turn_id: str, told: ToldHunk) -> ProposedHunk:
    view, file = told.view, told.file
    new_file = None
    if view.new_uri is not None:
        new_file = FileName(view.new_uri, canonical_key(view.new_uri), view.new_path or "")
    return ProposedHunk(
        id=view.hunk_id,
        turn_id=turn_id,
        file=FileName(file.uri, canonical_key(file.uri), file.path),
        old_text=view.old_text or "",
        new_text=view.new_text or "",
        kind=view.kind or "modify",
        new_file=new_file,
        repairs=view.repairs,
        diff=view.diff,
        flags=view.flags,
        code_points=view.code_points,
        was_open=False,
        announced=told.announced,
        state=view.state,
        superseded_by=view.superseded_by,
        reason=view.reason,
    )
