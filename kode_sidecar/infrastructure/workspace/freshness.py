"""Remembers what one session's model was shown of the user's files, and what changed since (C13).

Each file has two texts. The model reads the one with its pending edits; `was_shown` answers for
that text, by revision. Others change the editor's text, without those edits; the lines of it that
the model knows are moved along with every change.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kode_sidecar.core.domain.seen_lines import Gap, SeenLines, Span, covers
from kode_sidecar.core.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.core.text.notebook import NotebookError, read_notebook
from kode_sidecar.core.text.text_edit import Change, line_runs, to_lf
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.infrastructure.workspace.disk import FileStatus
from kode_sidecar.infrastructure.workspace.document import LARGE_CHARS, Document, text_rev

Loss = Literal["", "deleted", "unreadable"]
"""Why the text of a file is not available any more, or ""."""

MAX_FILES = 1_000
MAX_REVISIONS = 8
MAX_KEPT_CHARS = 50_000_000
"""Above these limits the least recently used file or revision is dropped, and counts as unread."""


@dataclass
class _Revision:
    """A text and the lines of it that the model was shown; `rev` is computed on demand.

    `was_read`: a read showed it last, and no edit made it.
    """

    text: str
    lines: SeenLines = field(default_factory=SeenLines)
    was_read: bool = False
    rev: str = ""

    def matches(self, rev: str) -> bool:
        self.rev = self.rev or text_rev(self.text)
        return bool(rev) and self.rev.startswith(rev)


@dataclass
class FileRecord:
    """The record of one file that was read or edited.

    `text` (LF) is the editor's when last compared, `lines` are the lines of it that the model
    knows, and `reported` is the text last reported to the model. `status` is that of the file when
    its text was read from disk. `read_at` and `edited_at` are RFC 3339, "" for never. `changed` is
    True once somebody else changed the file since the last read or own edit, `announced` once the
    user was notified. `lost` says why the text is gone; `lost_untold` is True until the model is
    notified. `earlier` holds changes by others, as pairs of texts, that were not reported to the
    model before it edited the file itself.
    """

    key: str
    uri: str
    path: Path | None
    text: str
    reported: str
    lines: SeenLines = field(default_factory=SeenLines)
    status: FileStatus | None = None
    read_at: str = ""
    edited_at: str = ""
    changed: bool = False
    announced: bool = False
    lost: Loss = ""
    lost_unreported: bool = False
    earlier: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    revisions: list[_Revision] = field(default_factory=list[_Revision])

    @property
    def has_news(self) -> bool:
        """True while changes by others are not yet reported to the model."""
        return self.lost_unreported or bool(self.earlier) or self.reported != self.text

    @property
    def size(self) -> int:
        """The number of characters stored for the file."""
        return len(self.text) + sum(len(revision.text) for revision in self.revisions)


@dataclass(frozen=True)
class ForeignChange:
    """A change by somebody else: the texts (LF) before and after each step."""

    key: str
    steps: tuple[tuple[str, str], ...]
    lost: Loss = ""


class Freshness:
    """The files that one session read or edited, the most recently used last. One thread.

    `current` returns a document as the editor holds it, as far as we know (`Overlay.current`);
    `now` returns the time.
    """

    def __init__(self, current: Callable[[Document], Document], now: Callable[[], str]) -> None:
        self._current = current
        self._now = now
        self._files: dict[str, FileRecord] = {}

    def __iter__(self) -> Iterator[FileRecord]:
        return iter(list(self._files.values()))

    def find(self, key: str) -> FileRecord | None:
        """Return the record of a file that was read or edited."""
        return self._files.get(key)

    def note(self, document: Document, text: str, start: int, end: int) -> None:
        """Note that the model was shown lines `start` to `end` (from 1, inclusive) of `text` (LF).

        `text` is that of `document` with the session's pending edits in it.
        """
        current = self._current(document)
        record = self._use(current)
        revision = self._revision(record, text)
        revision.lines = revision.lines.show(start - 1, end)
        revision.was_read = True
        for first, last in _beneath(current.shown(current.lf_text), text, (start - 1, end)):
            record.lines = record.lines.show(*_held(current, first, last))
        record.read_at = self._now()
        record.status = document.status
        if not record.lines.stale and self._all_seen(record):
            record.reported = record.text
            record.changed = record.announced = False
        self._forget()

    def note_edit(
        self, document: Document, before: str, after: str, runs: Sequence[Run] | None = None
    ) -> None:
        """Note that the model turned `before` into `after`: it knows the lines that it wrote.

        Both are LF, the document's text with the session's pending edits in it. Given the `runs` of
        changed lines, the texts are not compared.
        """
        record = self._use(self._current(document))
        record.status = document.status
        known = next((one.lines for one in record.revisions if one.text == before), SeenLines())
        changed = _runs(before, after) if runs is None else runs
        written = self._revision(record, after)
        written.lines = known.write(changed)
        written.was_read = False
        record.edited_at = self._now()
        self._forget()

    def was_shown(self, key: str, rev: str, start: int, end: int) -> bool:
        """Return whether all lines from `start` to `end` (maybe none) were shown in a revision.

        `rev` is the SHA-256 of the text, or the prefix of it that the model was given.
        """
        revision = self._shown(key, rev)
        return revision is not None and covers(revision.lines.seen, start - 1, end)

    def text_of(self, key: str, rev: str) -> str | None:
        """Return the text (LF) of a revision of which lines were shown; None if dropped."""
        revision = self._shown(key, rev)
        return revision.text if revision else None

    def last_read(self, key: str) -> str:
        """Return the revision that the model was shown last; "" if it edited the file since."""
        record = self._files.get(key)
        newest = record.revisions[-1] if record and record.revisions else None
        return text_rev(newest.text) if newest is not None and newest.was_read else ""

    def meet(self, document: Document) -> FileRecord | None:
        """Update a file's record to its text now; return None for a file without a record."""
        record = self._files.get(document.key)
        if record is not None:
            self._meet(record, self._current(document))
            record.status = document.status
        return record

    async def catch_up(self, document: Document) -> FileRecord | None:
        """As `meet`, but compare a large text in a thread."""
        record = self._files.get(document.key)
        known, text = record.text if record else "", self._current(document).lf_text
        if record is not None and len(text) >= LARGE_CHARS and known != text:
            runs = await asyncio.to_thread(_runs, known, text)
            if record.text is known:
                self._change(record, text, runs)
        return self.meet(document)

    def lose(self, key: str, how: Loss) -> None:
        """Note that the file is gone or cannot be read."""
        record = self._files[key]
        if record.lost != how:
            record.lost = how
            record.lost_unreported = record.changed = True
            record.announced = False

    def gaps(self, document: Document, start: int, end: int) -> tuple[Gap, ...]:
        """Return the gaps in what the model knows of `[start, end)`, offsets in `document`."""
        record = self._files.get(document.key)
        if record is None:
            return ("unread",) if document.text else ()
        self._meet(record, document)
        if not document.text:
            return ()
        starts = document.line_starts
        return record.lines.gaps(bisect_left(starts, start), bisect_left(starts, end))

    def gaps_in_all(self, key: str) -> tuple[Gap, ...]:
        """Return the gaps in what the model knows of a whole file, by the text last compared."""
        record = self._files.get(key)
        if record is None:
            return ("unread",)
        lines = len(split_lines(record.text))
        return record.lines.gaps(0, lines) if lines else ()

    def differs(self, document: Document) -> bool:
        """Return whether a file's text differs from its record, without updating the record."""
        record = self._files.get(document.key)
        return record is not None and record.text != self._current(document).lf_text

    def applied(
        self, key: str, before: str, after: str, edits: Sequence[Change] | None = None
    ) -> None:
        """Note that the session's own edits turned the editor's text `before` into `after` (raw).

        Given these `edits` of whole lines, the texts are not compared.
        """
        record = self._files.get(key)
        if record is None:
            return
        runs = None if edits is None else line_runs(before, edits)
        before, after = to_lf(before), to_lf(after)
        self._change(record, before)
        if record.reported != record.text:
            record.earlier.append((record.reported, record.text))
        record.lines = record.lines.write(_runs(before, after) if runs is None else runs)
        record.text = record.reported = after
        record.changed = record.announced = record.lost_unreported = False
        record.lost = ""
        record.edited_at = self._now()

    def moved(self, key: str, uri: str, path: Path) -> None:
        """Note that the session renamed the file; its record moves along."""
        record = self._files.pop(key, None)
        if record is not None:
            record.key, record.uri, record.path = canonical_key(uri), uri, path
            record.status, record.edited_at = None, self._now()
            self._files[record.key] = record

    def removed(self, key: str) -> None:
        """Note that the session deleted the file."""
        record = self._files.get(key)
        if record is not None:
            self.lose(key, "deleted")
            record.changed = record.lost_unreported = False
            record.edited_at = self._now()

    def created(self, uri: str, path: Path, text: str) -> None:
        """Note that the session created the file with this text (LF)."""
        key = canonical_key(uri)
        record = self._files.pop(key, None)
        if record is None:
            lines = SeenLines().show(0, len(split_lines(text)))
            record = FileRecord(key, uri, path, text, text, lines)
        record.edited_at = self._now()
        self._files[key] = record
        self._forget()

    def unreported(self, key: str) -> ForeignChange | None:
        """Return the changes by others to a file that are not yet reported to the model."""
        record = self._files[key]
        last = [(record.reported, record.text)] if record.reported != record.text else []
        lost: Loss = record.lost if record.lost_unreported else ""
        steps = (*record.earlier, *last)
        return ForeignChange(key, steps, lost) if steps or lost else None

    def report(self, key: str) -> None:
        """Note that the changes by others were reported to the model."""
        record = self._files[key]
        record.earlier.clear()
        record.reported = record.text
        record.lost_unreported = record.announced = False

    def _use(self, current: Document) -> FileRecord:
        """Return a document's record, updated to its text now, as the most recently used."""
        record = self._files.pop(current.key, None)
        if record is None:
            text = current.lf_text
            record = FileRecord(current.key, current.uri, current.path, text, text)
        else:
            self._meet(record, current)
        self._files[current.key] = record
        return record

    def _meet(self, record: FileRecord, current: Document) -> None:
        record.lost = ""
        record.lost_unreported = False
        self._change(record, current.lf_text)

    def _change(self, record: FileRecord, text: str, runs: Sequence[Run] | None = None) -> None:
        if record.text != text:
            changed = _runs(record.text, text) if runs is None else runs
            record.lines = record.lines.follow(changed)
            record.text = text
            record.changed = True

    def _all_seen(self, record: FileRecord) -> bool:
        """Return whether all lines that others changed since were shown in their present form."""
        if record.reported == record.text:
            return True
        seen = record.lines.seen
        return all(covers(seen, b0, b1) for _, _, b0, b1 in _runs(record.reported, record.text))

    def _revision(self, record: FileRecord, text: str) -> _Revision:
        for at, revision in enumerate(record.revisions):
            if revision.text == text:
                record.revisions.append(record.revisions.pop(at))
                return revision
        record.revisions.append(_Revision(text))
        del record.revisions[:-MAX_REVISIONS]
        return record.revisions[-1]

    def _shown(self, key: str, rev: str) -> _Revision | None:
        record = self._files.get(key)
        revisions = record.revisions if record else []
        return next((one for one in reversed(revisions) if one.matches(rev)), None)

    def _forget(self) -> None:
        kept = sum(record.size for record in self._files.values())
        while len(self._files) > 1 and (len(self._files) > MAX_FILES or kept > MAX_KEPT_CHARS):
            kept -= self._files.pop(next(iter(self._files))).size


def _runs(old: str, new: str) -> list[Run]:
    return diff_lines(split_lines(old), split_lines(new))


def _beneath(current: str, text: str, span: Span) -> Iterator[Span]:
    """Yield the lines of `current` that `text`, which has more edits in it, shows within `span`."""
    start, end = span
    at_text = at_current = 0
    for a0, a1, b0, b1 in [] if current is text or current == text else _runs(text, current):
        yield _part(at_text, a0, at_current, start, end)
        at_text, at_current = a1, b1
        del b0
    yield _part(at_text, end, at_current, start, end)


def _held(current: Document, first: int, last: int) -> Span:
    """Return the lines of a document's text that hold the lines `first..last` as shown."""
    if not current.is_notebook:
        return first, last
    try:
        return read_notebook(current.lf_text).json_lines(first, last)
    except NotebookError:
        return first, last


def _part(first: int, last: int, target: int, start: int, end: int) -> Span:
    """Cut `[first, last)` to `[start, end)`, and move it so that `first` is at `target`."""
    low, high = max(first, start), min(last, end)
    return (low - first + target, max(high, low) - first + target)
