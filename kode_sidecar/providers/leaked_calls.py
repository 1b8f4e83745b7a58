"""Tool calls that a host left in the text as the model's own tokens. Sans-IO.

Kimi K2 writes `<|tool_calls_section_begin|>`, then per call `<|tool_call_begin|>`
`functions.NAME:INDEX` `<|tool_call_argument_begin|>` JSON `<|tool_call_end|>`, then
`<|tool_calls_section_end|>` (tool call guide of the Kimi K2 model card). A host should parse
this; some let it through, in the answer or in the reasoning.
"""

import json
import re
from typing import NamedTuple

_BEGIN_MARKERS = ("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
_BEGIN = re.compile("|".join(map(re.escape, _BEGIN_MARKERS)))
_CALL = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[\w-]+?)(?::\d+)?)\s*"
    r"<\|tool_call_argument_begin\|>(?P<arguments>.*?)(?P<end><\|tool_call_end\|>|\Z)",
    re.DOTALL,
)
_SECTION = re.compile(r"<\|tool_calls_section_(?:begin|end)\|>")


class LeakedCall(NamedTuple):
    """A call as the model wrote it; the id is kept verbatim."""

    tool_use_id: str
    name: str
    arguments: str


class LeakedCallScanner:
    """Lets text pass and holds back what may be a tool call, even when it comes in pieces."""

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._tool_names = tool_names
        self._held = ""
        self._captured: list[str] = []

    def feed(self, text: str) -> str:
        """The part of the text that is certainly text."""
        if self._captured:
            self._captured.append(text)
            return ""
        text, self._held = self._held + text, ""
        if "<" not in text:
            return text
        if begin := _BEGIN.search(text):
            self._captured.append(text[begin.start() :])
            return text[: begin.start()]
        # A marker holds one "<" only, so nothing before the last one can still become one.
        at = text.rfind("<")
        if any(marker.startswith(text[at:]) for marker in _BEGIN_MARKERS):
            text, self._held = text[:at], text[at:]
        return text

    def release(self) -> str:
        """The start of a marker that was held back, now that something else follows it."""
        held, self._held = self._held, ""
        return held

    def finish(self, *, take_calls: bool) -> tuple[list[LeakedCall], str]:
        """The calls that were held back, and the text that was none.

        With `take_calls` False, with a call cut off or a tool not on offer, all of it is text.
        """
        captured = "".join(self._captured) or self._held
        self._held, self._captured = "", []
        found = list(_CALL.finditer(captured)) if take_calls else []
        rest = _SECTION.sub("", _CALL.sub("", captured))
        whole = all(
            match["name"] in self._tool_names and (match["end"] or _is_object(match["arguments"]))
            for match in found
        )
        if not found or not whole or "<|tool_call" in rest:
            return [], captured
        calls = [LeakedCall(match["id"], match["name"], match["arguments"]) for match in found]
        return calls, rest.strip()


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False
