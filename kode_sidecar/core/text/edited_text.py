"""A text that many edits are done to, one after the other. Pure; works on text with LF line ends.

Writing a large text anew for each of them costs more than all the rest. So edits are kept beside
the text for as long as one look at it tells where a quote stands.
"""

from bisect import bisect_left
from collections.abc import Sequence

from kode_sidecar.core.text.text_edit import Edit, apply_edits

LARGE_CHARS = 100_000
"""A shorter text is written anew in no time."""


class EditedText:
    """Knows a text with all edits done so far, and writes it when somebody asks for it."""

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
        """Replace `old`, if it stands in the text once and apart from all edits so far.

        False, and nothing is done, where that takes a closer look at `text`.
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
