"""Reads the channels of gpt-oss where a host left their marks in the text. Sans-IO.

An answer is a row of messages: `<|channel|>analysis<|message|>` thoughts `<|end|>`, then
`<|start|>assistant<|channel|>final<|message|>` the answer, or a call in `commentary to=…`.
A host that prints marks as nothing leaves `analysis` thoughts `assistantfinal` answer.
"""

import re
from typing import Literal, NamedTuple

_OPENINGS = ("<|channel|>", "<|start|>assistant")
_HEADER = re.compile(
    r"\s*(?:<\|start\|>assistant)?(?P<to>[^<]*)<\|channel\|>(?P<channel>\w+)(?P<more>[^<]*)"
    r"(?:<\|constrain\|>[^<]*)?<\|message\|>"
)
_MARK = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_MARKS = ("<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>")
# No header is longer; what does not become one in so many letters is text.
_LONGEST_HEADER = 300
# Without marks, a thought begins in the middle of a word: `analysisWe need`.
_BARE = re.compile(r"analysis(?=[^\W\d_a-z])")
_BARE_END = re.compile(r"assistant(?=final|commentary to=)")


class ChannelPart(NamedTuple):
    """A part of the text of a channel, and what it is."""

    kind: Literal["thinking", "text"]
    text: str


class HarmonyChannels:
    """Separates the channels of a growing text that begins with one; feed until `passed`.

    From a call on, all is text with its marks, for `leaked_calls` reads it.
    """

    def __init__(self) -> None:
        self._held = ""
        self._kind: Literal["thinking", "text"] | None = None
        self._began = False
        self.passed = False

    def feed(self, text: str) -> list[ChannelPart]:
        """Return the parts that are certain by now."""
        self._held += text
        parts: list[ChannelPart] = []
        while self._held and not self.passed and self._step(parts):
            pass
        if self.passed:
            parts += self._rest()
        return parts

    def finish(self) -> list[ChannelPart]:
        """Return what was held back: nothing follows."""
        self.passed = True
        if self._began and self._held.strip() in _OPENINGS:
            self._held = ""
        return self._rest()

    def _rest(self) -> list[ChannelPart]:
        held, self._held = self._held, ""
        return [ChannelPart(self._kind or "text", held)] if held else []

    def _step(self, parts: list[ChannelPart]) -> bool:
        """Take one header or body from what is held; return whether another may follow."""
        return self._header(parts) if self._kind is None else self._body(parts)

    def _header(self, parts: list[ChannelPart]) -> bool:
        begin = self._held.lstrip()
        if not self._began and begin.startswith("analysis"):
            return self._bare(begin, parts)
        if not any(begin.startswith(one) or one.startswith(begin) for one in _OPENINGS):
            self.passed = self._began or not "analysis".startswith(begin)
            return False
        found = _HEADER.match(self._held)
        if found is None:
            self.passed = len(begin) > _LONGEST_HEADER
            return False
        self._began = True
        if "to=" in found["to"] + found["more"]:
            self.passed = True
            return False
        self._held = self._held[found.end() :]
        self._kind = "thinking" if found["channel"] == "analysis" else "text"
        return True

    def _body(self, parts: list[ChannelPart]) -> bool:
        assert self._kind is not None
        end = _MARK.search(self._held)
        at = end.start() if end else _start_of_mark(self._held)
        if at:
            parts.append(ChannelPart(self._kind, self._held[:at]))
        self._held = self._held[at:]
        if end is None:
            return False
        if end[0] not in ("<|start|>", "<|channel|>"):
            self._held = self._held[len(end[0]) :]
        self._kind = None
        return True

    def _bare(self, begin: str, parts: list[ChannelPart]) -> bool:
        """Separate a thought without marks; all is held until it ends, for else it is text."""
        if begin == "analysis":
            return False
        end = _BARE_END.search(begin)
        if not _BARE.match(begin):
            self.passed = True
        elif end is not None:
            parts.append(ChannelPart("thinking", begin[len("analysis") : end.start()]))
            self._held = begin[end.end() :].removeprefix("final")
            self.passed = True
        return False


def _start_of_mark(text: str) -> int:
    """Return where a mark may begin whose rest has not come yet; the length if there is none."""
    at = text.rfind("<")
    return at if at >= 0 and any(one.startswith(text[at:]) for one in _MARKS) else len(text)
