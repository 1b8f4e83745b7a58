"""Notices when others change files that a session's model has read, and notifies user and model."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from kode_sidecar.agent.context.reminders import ReportedChange, elsewhere_note, file_changes_note
from kode_sidecar.core.domain.agent_event import ChangedFile, Event, FreshnessChanged
from kode_sidecar.core.domain.seen_lines import Spans
from kode_sidecar.core.protocol.documents import (
    FileFreshness,
    FreshnessGetResult,
    ImportantFile,
    LineRange,
)
from kode_sidecar.core.protocol.session import page_limit
from kode_sidecar.core.text.text_edit import Change
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.documents import DocumentChange
from kode_sidecar.infrastructure.workspace.freshness import FileRecord, ForeignChange, Freshness
from kode_sidecar.infrastructure.workspace.globs import is_dependency
from kode_sidecar.infrastructure.workspace.workspace import Workspace

MAX_IMPORTANT = 100


class FileWatch:
    """Open files are followed as the editor reports them; closed ones are looked at by `look`.

    `known` gives the document at a path (`SessionFiles.known`). Nothing polls: `look` runs before
    each step of the model and whenever somebody asks. Nothing is concluded from the text of a
    document while an edit of the session's own is `in_flight`; what it did is reported by `applied`
    then, and is nobody else's change. `edited` receives the URI of each file that an own edit has
    changed; what peers edited comes by `notify`.
    """

    def __init__(
        self,
        workspace: Workspace,
        known: Callable[[str], Document],
        freshness: Freshness,
        emit: Callable[[Event], int],
        in_flight: Collection[str],
        edited: Callable[[str], None] = lambda _uri: None,
    ) -> None:
        self._workspace = workspace
        self._known = known
        self._freshness = freshness
        self._noted: list[ForeignChange] = []
        self._emit = emit
        self._in_flight = in_flight
        self._edited = edited
        self._by: dict[str, set[str]] = {}
        self._elsewhere: dict[str, str] = {}

    def applied(
        self, key: str, before: str, after: str, edits: Sequence[Change] | None = None
    ) -> None:
        """An own edit made `after` of the editor's text `before`, the same text for nothing.

        `edits` are what it did, where that is known.
        """
        if before != after:
            self._freshness.applied(key, before, after, edits)
            self._edited(key)
        record = self._freshness.find(key)
        if record is not None and self._workspace.documents.get(key) is not None:
            self._look_at([record])

    async def catch_up(self, document: Document) -> None:
        """Compare a document with what the model has read, before it is edited."""
        record = await self._freshness.catch_up(document)
        if record is not None:
            self._look_at([record])

    def moved(self, key: str, uri: str, path: Path) -> None:
        """The session had a file renamed."""
        self._freshness.moved(key, uri, path)
        self._edited(uri)

    def removed(self, key: str) -> None:
        """The session had a file deleted."""
        self._freshness.removed(key)
        self._edited(key)

    def created(self, uri: str, path: Path, text: str) -> None:
        """The session had a file created with a text (LF)."""
        self._freshness.created(uri, path, text)
        self._edited(uri)

    def notify(self, key: str, title: str) -> None:
        """Another session of that title edited a document, maybe one of another project."""
        if self._freshness.find(key) is not None:
            self._by.setdefault(key, set()).add(title)
        elif self._workspace.holds(key):
            self._elsewhere[key] = title

    def look(self) -> None:
        """Compare every file that was used with the editor's text, or with the disk."""
        self._look_at(self._freshness)

    def look_on_disk(self, keys: Iterable[str]) -> None:
        """The editor says that these files changed on disk."""
        records = map(self._freshness.find, keys)
        self._look_at([record for record in records if record is not None])

    def reminder(self) -> str | None:
        """What changed since the model read it; it stays unreported until `reminder_reported`."""
        self.look()
        self._noted = self._unreported()
        return self._note(self._noted)

    def reminder_reported(self) -> None:
        """Note that the model got what `reminder` said last: each change is reported once."""
        noted, self._noted = self._noted, []
        for change in noted:
            self._freshness.report(change.key)
            self._by.pop(change.key, None)
        self._elsewhere.clear()

    def report(self, limit: int) -> FreshnessGetResult:
        """Every file that was used, and the `limit` most important ones, the latest first.

        Raises KodeError `InvalidParams` for a limit out of bounds.
        """
        limit = page_limit(limit, MAX_IMPORTANT)
        self.look()
        records = list(self._freshness)[::-1]
        important = (
            ImportantFile(uri=record.uri, path=path, used_at=max(record.read_at, record.edited_at))
            for record in records
            for path in [self._workspace.display_path(record.key)]
            if not record.lost and not is_dependency(path)
        )
        return FreshnessGetResult(
            files=tuple(map(self._view, records)), important=tuple(islice(important, limit))
        )

    def _view(self, record: FileRecord) -> FileFreshness:
        status = record.status
        return FileFreshness(
            uri=record.uri,
            path=self._workspace.display_path(record.key),
            sha256=text_rev(record.text),
            lines=_ranges(record.lines.seen),
            stale_lines=_ranges(record.lines.stale),
            read_at=record.read_at or None,
            edited_at=record.edited_at or None,
            mtime=_timestamp(status.mtime_ns) if status else None,
            size=status.size if status else None,
            changed=record.changed,
            lost=record.lost or None,
        )

    def _unreported(self) -> list[ForeignChange]:
        keys = (record.key for record in self._freshness)
        found = (self._freshness.unreported(key) for key in keys if key not in self._in_flight)
        return [change for change in found if change is not None]

    def _note(self, changes: Sequence[ForeignChange]) -> str | None:
        changed = [
            ReportedChange(
                self._workspace.display_path(change.key),
                steps,
                change.lost,
                tuple(sorted(self._by.get(change.key, ()))),
            )
            for change in changes
            if (steps := _shown_steps(change)) or change.lost
        ]
        unread = {self._workspace.display_path(key): by for key, by in self._elsewhere.items()}
        notes = (file_changes_note(changed) if changed else None, elsewhere_note(unread))
        return "\n\n".join(filter(None, notes)) or None

    def changed(self, change: DocumentChange) -> None:
        """Announce the first change by others of a file that the model has read."""
        record = self._freshness.find(change.document.key)
        silent = change.kind in ("saved", "unsynced") or not change.last
        if record is None or record.announced or silent or record.key in self._in_flight:
            return
        if change.kind != "changed" or record.lost:
            self._look_at([record])
        elif self._freshness.differs(change.document):  # a key: the lines are compared later
            record.changed = record.announced = True
            self._emit(FreshnessChanged(files=(self._changed_file(record),)))

    def _look_at(self, records: Iterable[FileRecord]) -> None:
        found: list[ChangedFile] = []
        for record in records:
            if record.key not in self._in_flight:
                self._compare(record)
                if record.changed and not record.announced and record.has_news:
                    record.announced = True
                    found.append(self._changed_file(record))
        if found:
            self._emit(FreshnessChanged(files=tuple(found)))

    def _changed_file(self, record: FileRecord) -> ChangedFile:
        path = self._workspace.display_path(record.key)
        return ChangedFile(uri=record.uri, path=path, change=record.lost or "changed")

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
            self._freshness.meet(self._known(path))
        except KodeError as error:
            gone = error.code == "NotFound"
            self._freshness.lose(record.key, "deleted" if gone else "unreadable")


def _shown_steps(change: ForeignChange) -> Sequence[tuple[str, str]]:
    """Return the steps as the model reads them: new outputs of a notebook are none."""
    shown = Document(change.key, "").shown
    pairs = [(shown(old), shown(new)) for old, new in change.steps]
    return [(old, new) for old, new in pairs if old != new]


def _ranges(spans: Spans) -> tuple[LineRange, ...]:
    return tuple(LineRange(start + 1, end) for start, end in spans)


def _timestamp(nanoseconds: int) -> str:
    """RFC 3339 in UTC with milliseconds."""
    when = datetime.fromtimestamp(nanoseconds // 1_000_000 / 1000, UTC)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03d}Z"
