"""Change sets as an editor reads them: one with its texts, or all in a line each."""

from collections import Counter
from collections.abc import Collection, Sequence

from kode_sidecar.domain.change_set import FileView, HunkState
from kode_sidecar.domain.hunk import overlay_text
from kode_sidecar.edits.announcer import Announcer, text_base
from kode_sidecar.edits.proposed_hunk import ChangeSet, FileName, ProposedHunk, by_file
from kode_sidecar.edits.session_files import SessionFiles
from kode_sidecar.protocol.change_set import (
    ChangeSetSummary,
    ChangeSetView,
    FileSummary,
    HunkCount,
)
from kode_sidecar.text.line_diff import split_lines, unified_diff
from kode_sidecar.text.text_edit import to_lf
from kode_sidecar.workspace.overlay import Overlay


class ChangeSetViews:
    """Reads hunks where they stand now."""

    def __init__(self, overlay: Overlay, files: SessionFiles, announcer: Announcer) -> None:
        self._overlay = overlay
        self._files = files
        self._announcer = announcer

    def whole(self, session_id: str, change_set: ChangeSet) -> ChangeSetView:
        """All of it, with a unified diff of what waits."""
        files: list[FileView] = []
        diffs: list[str] = []
        for file, hunks in by_file(change_set.hunks.values()).items():
            view, diff = self._file_now(file, hunks)
            files.append(view)
            diffs.append(diff)
        return ChangeSetView(
            change_set_id=change_set.id,
            session_id=session_id,
            turn_id=change_set.turn_id,
            state=change_set.state,
            files=tuple(files),
            diff="".join(diffs),
        )

    def summary(self, change_set: ChangeSet, turns_on_head: Collection[str]) -> ChangeSetSummary:
        """Without texts."""
        files = (
            FileSummary(uri=file.uri, path=file.path, hunks=_counts(hunks))
            for file, hunks in by_file(change_set.hunks.values()).items()
        )
        return ChangeSetSummary(
            change_set_id=change_set.id,
            turn_id=change_set.turn_id,
            state=change_set.state,
            on_head=change_set.turn_id in turns_on_head,
            files=tuple(files),
        )

    def _file_now(self, file: FileName, hunks: Sequence[ProposedHunk]) -> tuple[FileView, str]:
        """A file's hunks where they stand now, and the diff of those that wait."""
        whole = "".join(map(_file_diff, hunks))
        document = self._files.find(file.uri)
        if document is None:
            views = tuple(hunk.whole_view(None) for hunk in hunks)
            return FileView(uri=file.uri, path=file.path, hunks=views), whole
        current = self._overlay.current(document)
        waiting = {hunk.id for hunk in hunks if hunk.state == "proposed"}
        spans = {key: self._overlay.find(document, key) for key in waiting}
        views = tuple(
            hunk.whole_view(self._announcer.range_of(current, span) if span else None)
            for hunk in hunks
            for span in [spans.get(hunk.id)]
        )
        clean = sorted(
            (span for span in spans.values() if span and not span.touched),
            key=lambda span: (span.start, span.end),
        )
        after = to_lf(overlay_text(current.text, clean))
        diff = unified_diff(split_lines(current.lf_text), split_lines(after), file.path)
        view = FileView(
            uri=file.uri,
            path=file.path,
            hunks=views,
            version=current.version,
            base=text_base(current),
        )
        return view, diff + whole


def _counts(hunks: Sequence[ProposedHunk]) -> tuple[HunkCount, ...]:
    counts: Counter[HunkState] = Counter(hunk.state for hunk in hunks)
    return tuple(HunkCount(state=state, count=count) for state, count in counts.items())


def _file_diff(hunk: ProposedHunk) -> str:
    """The diff of a file that waits to be created, renamed or deleted."""
    if hunk.state != "proposed" or hunk.kind == "modify":
        return ""
    if hunk.kind == "rename" and hunk.new_file is not None:
        return f"rename from {hunk.file.path}\nrename to {hunk.new_file.path}\n"
    old, new = split_lines(to_lf(hunk.old_text)), split_lines(to_lf(hunk.new_text))
    return unified_diff(old, new, hunk.file.path)
