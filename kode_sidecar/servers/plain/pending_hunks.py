"""Pending hunks as plain LSP shows them: diagnostics, with their places held for code actions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.sessions import SessionRegistry
from kode_sidecar.core.domain.change_set import FileView, HunkView, Position, Range
from kode_sidecar.core.domain.hunk_state import DONE
from kode_sidecar.core.protocol.change_set import (
    ChangeSetView,
    DecideAction,
    DecideParams,
    DecideResult,
    HunkDecision,
    UndoParams,
    UndoResult,
)
from kode_sidecar.core.text.shown_text import clipped, visible
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.infrastructure.workspace.documents import DocumentChange, Documents
from kode_sidecar.servers.lsp import PacedRefresh, PublishedDiagnostics
from kode_sidecar.servers.plain.texts import Texts

SOURCE = "kode"
_HINT = 4  # LSP DiagnosticSeverity
_SHOWN_CHARS = 1_500
_TOP = Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True)
class PendingHunk:
    """A hunk that waits for the user, with its place in the present text."""

    change_set_id: str
    file: FileView
    hunk: HunkView

    @property
    def range(self) -> Range:
        """Where it stands; the top of the file for one that concerns the whole file."""
        return self.hunk.range or _TOP

    @property
    def is_sensitive(self) -> bool:
        """Whether it needs an explicit yes."""
        return "sensitive" in self.hunk.flags


class PendingHunks:
    """The pending hunks of some sessions, refreshed after events and after the user's changes.

    Everything asked for by a code action is answered from memory.
    """

    def __init__(
        self,
        sessions: SessionRegistry,
        documents: Documents,
        texts: Texts,
        published: PublishedDiagnostics,
        refreshed: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._texts = texts
        self._published = published
        self._refreshed = refreshed
        self._session_ids: list[str] = []
        self._by_file: dict[str, list[PendingHunk]] = {}
        self._paced = PacedRefresh(self._read)
        self.schedule, self.close = self._paced.schedule, self._paced.close
        documents.subscribe(self._document_changed)

    def include(self, session_id: str) -> None:
        """Show the hunks of a session from now on."""
        if session_id not in self._session_ids:
            self._session_ids.append(session_id)
        self.schedule()

    def refresh(self) -> None:
        """Read where the hunks stand now, and publish what has changed."""
        self._paced.now()

    def _read(self) -> None:
        self._by_file = {}
        for view in self._views():
            for file in view.files:
                found = [
                    PendingHunk(view.change_set_id, file, hunk)
                    for hunk in file.hunks
                    if hunk.state == "proposed"
                ]
                if found:
                    self._by_file.setdefault(canonical_key(file.uri), []).extend(found)
        wanted = {
            hunks[0].file.uri: [self._diagnostic(one) for one in hunks]
            for hunks in self._by_file.values()
        }
        if self._published.set(SOURCE, wanted):
            self._refreshed()

    def all(self) -> list[PendingHunk]:
        """Return all pending hunks."""
        return [one for hunks in self._by_file.values() for one in hunks]

    def of_file(self, uri: str) -> Sequence[PendingHunk]:
        """Return those of one file."""
        return self._by_file.get(canonical_key(uri), ())

    def at(self, uri: str, first: int, last: int) -> list[PendingHunk]:
        """Return those of one file that touch these lines."""
        return [
            one
            for one in self.of_file(uri)
            if one.range.start.line <= last and max(_last_line(one.range), 0) >= first
        ]

    def named(self, hunk_id: str) -> list[PendingHunk]:
        """Return the hunk of this id, if it waits."""
        return [one for one in self.all() if one.hunk.hunk_id == hunk_id]

    async def decide(
        self, hunks: Iterable[PendingHunk], action: DecideAction
    ) -> Sequence[DecideResult]:
        """Accept or reject hunks. Raises KodeError as `ChangeSets.decide` does."""
        by_set: dict[str, list[HunkDecision]] = {}
        for one in hunks:
            decision = HunkDecision(hunk_id=one.hunk.hunk_id, action=action)
            by_set.setdefault(one.change_set_id, []).append(decision)
        results: list[DecideResult] = []
        for change_set_id, decisions in by_set.items():
            change_sets = self._sessions.change_sets_of(change_set_id)
            params = DecideParams(change_set_id=change_set_id, decisions=tuple(decisions))
            results.append(await change_sets.decide(params))
        self.schedule()
        return results

    async def undo_last(self) -> UndoResult | None:
        """Take back what the newest turn with applied edits did; None if there is none."""
        for view in reversed(self._views()):
            if any(hunk.state in DONE for file in view.files for hunk in file.hunks):
                change_sets = self._sessions.change_sets_of(view.change_set_id)
                params = UndoParams(
                    change_set_id=view.change_set_id, direction="undo", skip_conflicts=True
                )
                return await change_sets.undo(view.change_set_id, params)
        return None

    def has_applied(self) -> bool:
        """Whether there is something to undo."""
        return any(
            count.state in DONE
            for session in self._open()
            for summary in session.change_sets.list().change_sets
            for file in summary.files
            for count in file.hunks
        )

    def _open(self) -> list[Any]:
        found = (self._sessions.get_now(session_id) for session_id in self._session_ids)
        return [session for session in found if session is not None]

    def _views(self) -> list[ChangeSetView]:
        return [view for session in self._open() for view in session.change_sets.all_views()]

    def _document_changed(self, change: DocumentChange) -> None:
        if change.last and change.document.key in self._by_file:
            self.schedule()

    def _diagnostic(self, one: PendingHunk) -> Mapping[str, Any]:
        return {
            "range": one.range,
            "severity": _HINT,
            "source": SOURCE,
            "code": one.hunk.hunk_id,
            "message": self._message(one.hunk),
        }

    def _message(self, hunk: HunkView) -> str:
        new = clipped(visible(hunk.new_text or ""), _SHOWN_CHARS)
        match hunk.kind:
            case "rename":
                return self._texts("file_rename", text=hunk.new_path or "")
            case "delete":
                return self._texts("file_delete")
            case "create":
                return self._texts("file_create", text=new)
            case _:
                return self._texts("proposed", text=new) if new else self._texts("deletes")


def _last_line(span: Range) -> int:
    """Return the last line that belongs to a range of whole lines."""
    ends_before = span.end.character == 0 and span.end.line > span.start.line
    return span.end.line - ends_before
