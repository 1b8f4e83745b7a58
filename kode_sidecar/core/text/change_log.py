"""Successive changes of a text as disjoint edits of the text before them. Pure."""

from collections.abc import Sequence

from kode_sidecar.core.text.text_edit import Change, Edit


class ChangeLog:
    """Many small changes, such as keys or the entries of a `didChange`, without copying the text.

    `edits` are ascending and disjoint and do all at once what the changes did one after the other.
    """

    def __init__(self) -> None:
        self._edits: list[Edit] = []
        self._last = (0, 0)  # changes mostly come in order: where the last one was, what lay before

    @property
    def edits(self) -> Sequence[Edit]:
        """All changes of the text since the beginning."""
        return self._edits

    def __len__(self) -> int:
        return len(self._edits)

    def clear(self) -> None:
        """Start again from the present text."""
        self._edits, self._last = [], (0, 0)

    def add(self, change: Change) -> None:
        """Add one change; its offsets are those of the text after all changes before it."""
        first, growth = self._last = self._before(change)
        last, end, text = first, change.end - growth, change.text
        start = change.start - growth
        while last < len(self._edits):
            edit = self._edits[last]
            at, done = edit.start + growth, edit.start + growth + len(edit.text)
            if at > change.end or (at == change.end and not _typed_on(edit, done, change)):
                break
            growth += len(edit.text) - (edit.end - edit.start)
            if at < change.start:
                start, text = edit.start, edit.text[: change.start - at] + text
            elif last == first:
                start = min(start, edit.start)
            end = change.end - growth
            if done > change.end:
                end, text = edit.end, text + edit.text[change.end - at :]
            last += 1
        kept = [Edit(start, end, text)] if start < end or text else []
        self._edits[first:last] = kept

    def _before(self, change: Change) -> tuple[int, int]:
        """Return how many edits lie before a change, and by how much they moved it."""
        at, growth = self._last
        if at >= len(self._edits) or self._edits[at].start + growth >= change.start:
            at = growth = 0
        for index in range(at, len(self._edits)):
            edit = self._edits[index]
            done = edit.start + growth + len(edit.text)
            if done > change.start or (done == change.start and _typed_on(edit, done, change)):
                return index, growth
            growth += len(edit.text) - (edit.end - edit.start)
        return len(self._edits), growth


def _typed_on(edit: Edit, done: int, change: Change) -> bool:
    """Return whether a change continues the line that an edit has begun, key by key."""
    return done == change.start and bool(edit.text) and not edit.text.endswith(("\n", "\r"))
