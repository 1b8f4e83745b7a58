"""A text that many edits are applied to in turn. Pure; works on text with LF line ends.

Rebuilding a large text for each edit costs more than everything else. So edits are collected
beside the text as long as one search of it finds the place of a quote.
"""

from bisect import bisect_left
from collections.abc import Sequence

from kode_sidecar.core.text.text_edit import Edit, apply_edits

LARGE_CHARS = 100_000
"""A shorter text is written anew in no time."""


class EditedText:
    """A text with all edits so far, built only when it is read."""

    def __init__(self, text: str, large_chars: int = LARGE_CHARS) -> None:
        self._base, self._large_chars = text, large_chars
        self._edits: list[Edit] = []
        self._starts: list[int] = []

    @property
    def text(self) -> str:
        """The text as it is now."""
        if self._edits:
            self._base = apply_edits(self._base, self._edits)
            self._edits, self._starts = [], []
        return self._base

    def do(self, edits: Sequence[Edit]) -> None:
        """Do edits of the present `text`, ascending and disjoint."""
        self._base = apply_edits(self.text, edits)

    def replace_only(self, old: str, new: str) -> bool:
        """Replace `old` if it occurs once and apart from all edits so far.

        Return False and change nothing if that cannot be decided without building `text`.
        """
        start = self._base.find(old) if old and len(self._base) >= self._large_chars else -1
        if start < 0 or self._base.find(old, start + 1) >= 0:
            return False
        edit = Edit(start, start + len(old), new)
        at = bisect_left(self._starts, start)
        near = self._edits[max(at - 1, 0) : at + 1]
        if any(one.start <= edit.end and edit.start <= one.end for one in near):
            return False
        if any(old in seam for seam in self._seams(len(old) - 1)):
            return False
        self._edits.insert(at, edit)
        self._starts.insert(at, start)
        return True

    def _seams(self, reach: int) -> list[str]:
        """Return the new texts, each with so many characters around it; neighbours in one."""
        seams: list[str] = []
        parts: list[str] = []
        at = 0
        for edit in self._edits:
            if parts and edit.start - at <= reach:
                parts += (self._base[at : edit.start], edit.text)
            else:
                if parts:
                    seams.append("".join((*parts, self._base[at : at + reach])))
                parts = [self._base[max(at, edit.start - reach) : edit.start], edit.text]
            at = edit.end
        if parts:
            seams.append("".join((*parts, self._base[at : at + reach])))
        return seams
