"""What one session's model was shown of the user's files, and what changed since (C13).

Two kinds of text are kept apart. What the model reads has its own pending edits in it: of that,
`was_shown` knows the lines by revision. What the editor holds, without them, is what others
change: which of its lines the model knows is carried along with every change.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kode_sidecar.domain.seen_lines import Gap, SeenLines, Span, covers
from kode_sidecar.text.line_diff import Run, diff_lines, split_lines
from kode_sidecar.text.text_edit import to_lf
from kode_sidecar.text.uris import canonical_key
from kode_sidecar.workspace.disk import FileStatus
from kode_sidecar.workspace.document import Document, text_rev

Loss = Literal["", "deleted", "unreadable"]
"""Why the text of a file cannot be had any more; "" where it can."""

MAX_FILES = 1_000
MAX_REVISIONS = 8
MAX_KEPT_CHARS = 50_000_000
"""Beyond these the file, or the revision, that was used least lately is forgotten: as if unread."""


@dataclass
class _Revision:
    """A text the model was shown lines of. `rev` is worked out when somebody asks."""

    text: str
    lines: SeenLines = field(default_factory=SeenLines)
    rev: str = ""

    def matches(self, rev: str) -> bool:
        self.rev = self.rev or text_rev(self.text)
        return bool(rev) and self.rev.startswith(rev)


@dataclass
class FileRecord:
    """One file that was read or edited.

    `text` (LF) is the editor's, as last met, and `lines` are those of it that the model knows;
    `told` is the text that it believes to be there. `status` is the file's on disk when its text
    was read from there. `read_at` and `edited_at` are the latest times, RFC 3339, "" for never.
    `changed`: by somebody else since the last read or own edit, `announced` to the user.
    `lost`: its text cannot be had, which the model does not know while `lost_untold`. `earlier`
    are steps from one text to another that it was not told of before it edited the file itself.
    """

    key: str
    uri: str
    path: Path | None
    text: str
    told: str
    lines: SeenLines = field(default_factory=SeenLines)
    status: FileStatus | None = None
    read_at: str = ""
    edited_at: str = ""
    changed: bool = False
    announced: bool = False
    lost: Loss = ""
    lost_untold: bool = False
    earlier: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    revisions: list[_Revision] = field(default_factory=list[_Revision])

    @property
    def has_news(self) -> bool:
        """Whether others did something that the model was not told."""
        return self.lost_untold or bool(self.earlier) or self.told != self.text

    @property
    def size(self) -> int:
        """Characters kept for it, a text that occurs twice counted twice."""
        return len(self.text) + sum(len(revision.text) for revision in self.revisions)


@dataclass(frozen=True)
class ForeignChange:
    """What somebody else did to a file: each step from one text (LF) to the next."""

    key: str
    steps: tuple[tuple[str, str], ...]
    lost: Loss = ""


class Freshness:
    """The files of one session, the one used last at the end. Use it from one thread.

    `current` gives a document as the editor holds it, as far as anybody knows
    (`Overlay.current`); `now` the time.
    """

    def __init__(self, current: Callable[[Document], Document], now: Callable[[], str]) -> None:
        self._current = current
        self._now = now
        self._files: dict[str, FileRecord] = {}

    def __iter__(self) -> Iterator[FileRecord]:
        return iter(list(self._files.values()))

    def find(self, key: str) -> FileRecord | None:
        """The record of a file that was read or edited."""
        return self._files.get(key)

    def note(self, document: Document, text: str, start: int, end: int) -> None:
        """The model was shown lines `start` to `end` (from 1, inclusive) of `text` (LF).

        `text` is that of `document` with the session's pending edits in it.
        """
        current = self._current(document)
        record = self._use(current)
        revision = self._revision(record, text)
        revision.lines = revision.lines.show(start - 1, end)
        for first, last in _beneath(current.lf_text, text, (start - 1, end)):
            record.lines = record.lines.show(first, last)
        record.read_at = self._now()
        record.status = document.status
        if not record.lines.stale and self._all_seen(record):
            record.told = record.text
            record.changed = record.announced = False
        self._forget()

    def note_edit(self, document: Document, before: str, after: str) -> None:
        """The model turned `before` into `after`: it knows its own lines, and those it knew.

        Both are LF, the document's text with the session's pending edits in it.
        """
        record = self._use(self._current(document))
        record.status = document.status
        known = next((one.lines for one in record.revisions if one.text == before), SeenLines())
        self._revision(record, after).lines = known.write(_runs(before, after))
        record.edited_at = self._now()
        self._forget()

    def was_shown(self, key: str, rev: str, start: int, end: int) -> bool:
        """Whether every line from `start` to `end` was shown in a revision; an empty range was.

        `rev` is the SHA-256 of the text, or the beginning of it that the model was given.
        """
        revision = self._shown(key, rev)
        return revision is not None and covers(revision.lines.seen, start - 1, end)

    def text_of(self, key: str, rev: str) -> str | None:
        """The whole text (LF) of a revision of which some lines were shown; None if forgotten."""
        revision = self._shown(key, rev)
        return revision.text if revision else None

    def meet(self, document: Document) -> FileRecord | None:
        """Compare what is known of a file with its text of now; None for a file never used."""
        record = self._files.get(document.key)
        if record is not None:
            self._meet(record, self._current(document))
            record.status = document.status
        return record

    def lose(self, key: str, how: Loss) -> None:
        """The file's text cannot be had any more."""
        record = self._files[key]
        if record.lost != how:
            record.lost = how
            record.lost_untold = record.changed = True
            record.announced = False

    def gaps(self, document: Document, start: int, end: int) -> tuple[Gap, ...]:
        """What is wrong with changing `[start, end)`, offsets in a document of `current`."""
        record = self._files.get(document.key)
        if record is None:
            return ("unread",) if document.text else ()
        self._meet(record, document)
        if not document.text:
            return ()
        starts = document.line_starts
        return record.lines.gaps(bisect_left(starts, start), bisect_left(starts, end))

    def gaps_in_all(self, key: str) -> tuple[Gap, ...]:
        """The same for all of a file, as it was last met."""
        record = self._files.get(key)
        if record is None:
            return ("unread",)
        lines = len(split_lines(record.text))
        return record.lines.gaps(0, lines) if lines else ()

    def applied(self, key: str, before: str, after: str) -> None:
        """The session's own edits turned the editor's text `before` into `after` (raw)."""
        record = self._files.get(key)
        if record is None:
            return
        before, after = to_lf(before), to_lf(after)
        self._change(record, before)
        if record.told != record.text:
            record.earlier.append((record.told, record.text))
        record.lines = record.lines.write(_runs(before, after))
        record.text = record.told = after
        record.changed = record.announced = record.lost_untold = False
        record.lost = ""
        record.edited_at = self._now()

    def moved(self, key: str, uri: str, path: Path) -> None:
        """The session itself had the file renamed; what is known of it goes with it."""
        record = self._files.pop(key, None)
        if record is not None:
            record.key, record.uri, record.path = canonical_key(uri), uri, path
            record.status, record.edited_at = None, self._now()
            self._files[record.key] = record

    def removed(self, key: str) -> None:
        """The session itself had the file deleted."""
        record = self._files.get(key)
        if record is not None:
            self.lose(key, "deleted")
            record.changed = record.lost_untold = False
            record.edited_at = self._now()

    def created(self, uri: str, path: Path, text: str) -> None:
        """The session itself had the file created with this text (LF)."""
        key = canonical_key(uri)
        record = self._files.pop(key, None)
        if record is None:
            lines = SeenLines().show(0, len(split_lines(text)))
            record = FileRecord(key, uri, path, text, text, lines)
        record.edited_at = self._now()
        self._files[key] = record
        self._forget()

    def untold(self, key: str) -> ForeignChange | None:
        """What others did to a file that the model was not told yet."""
        record = self._files[key]
        last = [(record.told, record.text)] if record.told != record.text else []
        lost: Loss = record.lost if record.lost_untold else ""
        steps = (*record.earlier, *last)
        return ForeignChange(key, steps, lost) if steps or lost else None

    def tell(self, key: str) -> None:
        """The model was told all of `untold`."""
        record = self._files[key]
        record.earlier.clear()
        record.told = record.text
        record.lost_untold = record.announced = False

    def _use(self, current: Document) -> FileRecord:
        """The record of a document, brought to its text of now, as the one used last."""
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
        record.lost_untold = False
        self._change(record, current.lf_text)

    def _change(self, record: FileRecord, text: str) -> None:
        if record.text != text:
            record.lines = record.lines.follow(_runs(record.text, text))
            record.text = text
            record.changed = True

    def _all_seen(self, record: FileRecord) -> bool:
        """Whether the lines that others changed since were all shown as they are now."""
        if record.told == record.text:
            return True
        seen = record.lines.seen
        return all(covers(seen, b0, b1) for _, _, b0, b1 in _runs(record.told, record.text))

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
    """The lines of `current` that `text`, which has more edits in it, shows within `span`."""
    start, end = span
    at_text = at_current = 0
    for a0, a1, b0, b1 in [] if current is text or current == text else _runs(text, current):
        yield _part(at_text, a0, at_current, start, end)
        at_text, at_current = a1, b1
        del b0
    yield _part(at_text, end, at_current, start, end)


def _part(first: int, last: int, target: int, start: int, end: int) -> Span:
    """`[first, last)` within `[start, end)`, moved so that `first` is at `target`."""
    low, high = max(first, start), min(last, end)
    return (low - first + target, max(high, low) - first + target)
