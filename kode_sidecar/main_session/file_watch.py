"""Notices when others change files that a session's model has read, and tells user and model."""

import os
from collections.abc import Callable, Iterable

from kode_sidecar.context.file_changes import FileChange, file_changes_note
from kode_sidecar.domain.agent_event import ChangedFile, Event, FreshnessChanged
from kode_sidecar.errors import KodeError
from kode_sidecar.workspace.documents import DocumentChange
from kode_sidecar.workspace.freshness import FileRecord, Freshness
from kode_sidecar.workspace.workspace import Workspace


class FileWatch:
    """Open files are followed as the editor reports them; closed ones are looked at by `look`.

    Nothing polls: `look` runs before each step of the model and whenever somebody asks. An edit of
    the session's own is announced by `sending`, `landed` and `applied`: nobody else's change.
    """

    def __init__(
        self, workspace: Workspace, freshness: Freshness, emit: Callable[[Event], int]
    ) -> None:
        self._workspace = workspace
        self._freshness = freshness
        self._emit = emit
        self._in_flight: set[str] = set()
        self._unsubscribe = workspace.documents.subscribe(self._changed)

    def close(self) -> None:
        """Stop following the documents."""
        self._unsubscribe()

    def sending(self, key: str) -> None:
        """An edit of this file is on its way: nothing is concluded from its text until `landed`."""
        self._in_flight.add(key)

    def landed(self, key: str) -> None:
        """The edit is over, whatever became of it; `applied` follows at once if it is known."""
        self._in_flight.discard(key)

    def applied(self, key: str, before: str, after: str) -> None:
        """An own edit made `after` of the editor's text `before`, the same text for nothing."""
        if before != after:
            self._freshness.applied(key, before, after)
        record = self._freshness.find(key)
        if record is not None:
            self._look_at([record])

    def look(self) -> None:
        """Compare every file that was used with the editor's text, or with the disk."""
        self._look_at(self._freshness)

    def look_on_disk(self, keys: Iterable[str]) -> None:
        """The editor says that these files changed on disk."""
        records = map(self._freshness.find, keys)
        self._look_at([record for record in records if record is not None])

    def take_reminder(self) -> str | None:
        """What changed since the model read it; each change once."""
        self.look()
        changes: list[FileChange] = []
        for record in self._freshness:
            change = None
            if record.key not in self._in_flight:
                change = self._freshness.take_changes(record.key)
            if change is not None:
                path = self._workspace.display_path(record.key)
                changes.append(FileChange(path, change.steps, change.lost))
        return file_changes_note(changes) if changes else None

    def _changed(self, change: DocumentChange) -> None:
        record = self._freshness.find(change.document.key)
        silent = change.kind in ("saved", "unsynced") or not change.last
        if record is not None and not record.announced and not silent:
            self._look_at([record])

    def _look_at(self, records: Iterable[FileRecord]) -> None:
        found: list[ChangedFile] = []
        for record in records:
            if record.key not in self._in_flight:
                self._compare(record)
                if record.changed and not record.announced and record.has_news:
                    record.announced = True
                    path = self._workspace.display_path(record.key)
                    change = record.lost or "changed"
                    found.append(ChangedFile(uri=record.uri, path=path, change=change))
        if found:
            self._emit(FreshnessChanged(files=tuple(found)))

    def _compare(self, record: FileRecord) -> None:
        document = self._workspace.documents.get(record.key)
        if document is not None:
            if document.synced:
                self._freshness.meet(document)
            return
        if record.path is None:
            return  # an untitled buffer that was closed
        try:
            if record.status is not None and record.status.still_holds(record.path):
                return
        except OSError:
            if record.lost == "deleted":
                return
        self._reread(record, os.fspath(record.path))

    def _reread(self, record: FileRecord, path: str) -> None:
        """Through the guard, as if the model read it again."""
        try:
            self._freshness.meet(self._workspace.document(path, purpose="read"))
        except KodeError as error:
            gone = error.code == "NotFound"
            self._freshness.lose(record.key, "deleted" if gone else "unreadable")
