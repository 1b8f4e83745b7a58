"""Parses the arguments of a call while they arrive: a JSON object with a list of objects. Pure.

Each character is read once, however small the pieces are.
"""

import json
import re
from typing import Any

MAX_HEAD_CHARS = 1_000_000
"""How many characters outside of the list are stored at most."""
LOOK_CHARS = 200
"""A long string is reported again when it has grown by so many characters and by a quarter, so
that all reports add up to five times its length."""

_MARK = re.compile(r'["{}\[\]]')
_STRING_END = re.compile(r'["\\]')
_STRING = r'("[^"\\]*(?:\\.[^"\\]*)*")'
_MEMBER = re.compile(rf"{_STRING}\s*:\s*{_STRING}", re.DOTALL)
_CUT_CHARS = 6
"""An escape has no more characters; one that is cut off is left out."""
_LIST, _ITEM = 2, 3


class GrowingArguments:
    """Feed it the pieces. `items` are the finished objects of lists that are members.

    `looks` counts how often enough was new that it is worth looking at once more.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.looks = 0
        self._looked_at = 0
        self._before = self._opened = 0  # where in the head the last two strings begin
        self._head: list[str] = []
        self._head_chars = 0
        self._item: list[str] = []
        self._depth = 0
        self._in_string = self._escaped = False

    @property
    def members(self) -> dict[str, Any]:
        """The members of the object that are finished strings."""
        head = "".join(self._head)
        found = _MEMBER.findall(head[: self._opened] if self._in_member else head)
        pairs = ((_parsed(name), _parsed(value)) for name, value in found)
        return {name: value for name, value in pairs if isinstance(name, str)}

    @property
    def unfinished(self) -> dict[str, str]:
        """The member whose string is still being written, as far as it has come."""
        head = "".join(self._head)
        name, colon, blank = head[max(self._before - 1, 0) : self._opened - 1].rpartition(":")
        if not self._in_member or not colon or blank.strip() or len(head) >= MAX_HEAD_CHARS:
            return {}
        known, text = _parsed(name), head[self._opened :]
        ends = (_parsed(f'"{text[: len(text) - cut]}"') for cut in range(_CUT_CHARS))
        value = next((end for end in ends if isinstance(end, str)), None)
        return {known: value} if isinstance(known, str) and value is not None else {}

    def feed(self, piece: str) -> bool:
        """Take the next piece; return whether an object or a member was finished in it.

        Or whether a string has grown by enough to be looked at.
        """
        known, start, at = self.looks, 0, 0
        while at < len(piece):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            mark = (_STRING_END if self._in_string else _MARK).search(piece, at)
            if mark is None:
                break
            at = mark.end()
            start = self._take(mark[0], piece, start, at)
        self._keep(piece[start:])
        grown = self._head_chars - self._looked_at
        if self._in_member and grown > self._looked_at // 4 + LOOK_CHARS:
            self._looked_at = self._head_chars
            self.looks += 1
        return self.looks > known

    def _take(self, mark: str, piece: str, start: int, end: int) -> int:
        """Process a mark that ends at `end`; return where the part not yet stored begins."""
        if mark == "\\":
            self._escaped = True
        elif mark == '"':
            self._in_string = not self._in_string
            if self._in_member:
                self._before, self._opened = self._opened, self._head_chars + end - start
            elif self._depth == 1:
                self.looks += 1
        elif mark in "{[":
            if self._depth == _LIST:
                self._keep(piece[start : end - 1])
                start = end - 1
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth == _LIST:
                self._keep(piece[start:end], item=True)
                start = end
                self._finish()
        return start

    @property
    def _in_member(self) -> bool:
        return self._in_string and self._depth == 1

    def _keep(self, text: str, *, item: bool = False) -> None:
        if item or self._depth >= _ITEM:
            self._item.append(text)
        elif self._head_chars < MAX_HEAD_CHARS:
            self._head.append(text)
            self._head_chars += len(text)

    def _finish(self) -> None:
        value = _parsed("".join(self._item))
        self._item.clear()
        if isinstance(value, dict):
            self.items.append(value)
            self.looks += 1


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
