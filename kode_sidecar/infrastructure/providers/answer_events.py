"""Builds the events of one answer, whatever the dialect. Sans-IO.

Neighbouring deltas of one read become one event. Reasoning that a host left in the text, as
`<think>…</think>` before the answer or in channels, is separated, and so are tool calls in it
(`leaked_calls`).
"""

import re

from msgspec.structs import replace

from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.infrastructure.providers.harmony_channels import ChannelPart, HarmonyChannels
from kode_sidecar.infrastructure.providers.leaked_calls import (
    BARE_HARMONY,
    BEGIN,
    BRACKETED,
    PLAIN,
    LeakedCall,
    known_name,
    read_calls,
)

_THINK_BEGIN, _THINK_END = "<think>", "</think>"
TEXT = -1
THINKING = -2
_NOTHING = -3


class ThinkTags:
    """Separates `<think>…</think>` at the start of a growing text; feed it until `passed`."""

    def __init__(self) -> None:
        self._held: str = ""
        self._inside = False
        self._thought = False
        self.passed = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return the reasoning and the text that are certain by now."""
        text = self._held + text
        self._held = ""
        if not self._inside:
            begin = text.lstrip()
            if not begin.startswith(_THINK_BEGIN):
                if _THINK_BEGIN.startswith(begin):
                    self._held = text
                    return "", ""
                self.passed = True
                return "", text
            self._inside = True
            text = begin[len(_THINK_BEGIN) :]
        thought, found, rest = text.partition(_THINK_END)
        if found:
            self.passed = True
        else:
            thought, self._held = _without_start_of_close(thought)
        if not self._thought:
            thought = thought.lstrip()
            self._thought = bool(thought)
        return thought, rest

    def finish(self) -> tuple[str, str]:
        """Return the reasoning and the text that were held back: nothing follows."""
        held = self._held
        self._held, self.passed = "", True
        return (held, "") if self._inside else ("", held)


def _without_start_of_close(text: str) -> tuple[str, str]:
    at = text.rfind("<")
    if at >= 0 and _THINK_END.startswith(text[at:]):
        return text[:at], text[at:]
    return text, ""


class StrayEnd:
    """Removes one unopened `</think>` from a growing text: the model's template opened it.

    The tag stands on a line of its own, or at the start; empty lines after it are removed, too.
    Text before it was already shown and stays text.
    """

    def __init__(self) -> None:
        self._held: str = ""
        self._in_line = False
        self._skips_lines = True
        self.done = False

    def feed(self, text: str) -> str:
        """Return the part that is certainly text."""
        if self.done:
            rest = text.lstrip("\r\n") if self._skips_lines else text
            self._skips_lines = self._skips_lines and not rest
            return rest
        text, self._held = self._held + text, ""
        begin = text.find(_THINK_END)
        while begin >= 0:
            if self._begins_line(text, begin):
                rest = text[begin + len(_THINK_END) :]
                if not rest:
                    break
                if rest[0] in "\r\n":
                    self.done = True
                    return text[:begin] + self.feed(rest)
            begin = text.find(_THINK_END, begin + 1)
        at = text.rfind("<")
        if at >= 0 and _THINK_END.startswith(text[at:]) and self._begins_line(text, at):
            text, self._held = text[:at], text[at:]
        if text:
            self._in_line = text[-1] != "\n"
        return text

    def finish(self) -> str:
        """Return the held-back text: nothing follows. A complete tag is dropped."""
        held, self._held = self._held, ""
        return "" if held == _THINK_END else held

    def _begins_line(self, text: str, at: int) -> bool:
        return text[at - 1] == "\n" if at else not self._in_line


class LeakedCallScanner:
    """Passes text on and holds back what may be a tool call, even if it comes in pieces."""

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._tool_names = tool_names
        self._held = ""
        self._in_line = False
        self._captured: list[str] = []

    def feed(self, text: str) -> str:
        """Return the part of the text that is certainly text."""
        if self._captured:
            self._captured.append(text)
            return ""
        text, self._held = self._held + text, ""
        marked = "<" in text or "[" in text or " to=" in text
        if marked and (begin := self._begin(text)):
            self._captured.append(text[begin.start() :])
            return text[: begin.start()]
        at = self._may_begin(text)
        text, self._held = text[:at], text[at:]
        self._passed(text)
        return text

    def release(self) -> str:
        """Return a held-back start of a marker: something else follows, so it is text."""
        held, self._held = self._held, ""
        return held

    def finish(self, *, take_calls: bool) -> tuple[list[LeakedCall], str]:
        """Return the calls that were held back, and the rest as text.

        All of it is text if `take_calls` is False, a call is cut off or a tool is not on offer.
        """
        captured = "".join(self._captured) or self._held
        self._held, self._captured = "", []
        if not take_calls or not captured:
            return [], captured
        return read_calls(captured, self._tool_names)

    def _begin(self, text: str) -> re.Match[str] | None:
        """Return the first marker; a plain one counts only at the beginning of a line."""
        for found in BEGIN.finditer(text):
            if found.start() or not self._in_line or found[0] not in PLAIN:
                return found
        return None

    def _may_begin(self, text: str) -> int:
        """Return where a marker may begin whose rest has not come yet; the length if nowhere."""
        # A marker has its only bracket in front, so nothing before the last one can become one.
        at = max(text.rfind("<"), text.rfind("["))
        if at >= 0 and any(marker.startswith(text[at:]) for marker in BRACKETED):
            return at
        line = text.rfind("\n") + 1
        opens = line < len(text) and bool(line or not self._in_line)
        if opens and any(one.startswith(text[line:]) for one in BARE_HARMONY):
            return line
        return len(text)

    def _passed(self, text: str) -> None:
        if text:
            self._in_line = text[-1] != "\n"


class DeltaRuns:
    """Collects events in order. A kind is `TEXT`, `THINKING` or the index of a tool call.

    Tool calls for one of `tool_names` that leaked into text are held back until `end_leaks`.
    With `think_tags`, reasoning at the start of the text is separated.
    Set `torn` once a text may hold lone surrogates: then halves of characters are joined.
    `growth` counts the characters received, held back or not. `call_is_torn`: the arguments of a
    call contain only half of a character.
    """

    def __init__(self, tool_names: frozenset[str], *, think_tags: bool = False) -> None:
        self._tool_names = tool_names
        self._think_tags = think_tags
        self._events: list[ModelEvent] = []
        self._kind = _NOTHING
        self._run: list[str] = []
        self.torn = False
        self.growth = 0
        self._begin()

    def _begin(self) -> None:
        names = self._tool_names
        self._scanners = {kind: LeakedCallScanner(names) for kind in (THINKING, TEXT) if names}
        self._channels = HarmonyChannels() if self._think_tags else None
        self._tags = ThinkTags() if self._think_tags else None
        self._stray = StrayEnd() if self._think_tags else None
        self._last = _NOTHING
        self._half = ""
        self.call_is_torn = False
        self.has_any = False
        self.has_text = False

    def restart(self) -> None:
        """Begin a new answer; its caller reports the old one as dropped."""
        self._close()
        self._begin()

    def add(self, kind: int, text: str) -> None:
        """Append text of a kind: to the open run, or as the start of a new one."""
        if kind != self._kind:
            self._close()
            if kind != self._last:
                self._release()
                self._last = kind
            self._kind = kind
            self.has_any = True
        self._run.append(text)

    def put(self, event: ModelEvent) -> None:
        """Add an event; the delta of a call is joined with its neighbours."""
        if isinstance(event, ToolUseDelta):
            self.add(event.index, event.json)
            return
        self._close()
        self._release()
        self._last = _NOTHING
        if isinstance(event, ToolUseStarted) and event.name not in self._tool_names:
            event = replace(event, name=known_name(event.name, self._tool_names))
        self._events.append(event)
        self.has_any = self.has_any or isinstance(event, ToolUseStarted)

    def take(self) -> list[ModelEvent]:
        """Return the events collected since the last call."""
        self._close()
        events, self._events = self._events, []
        return events

    def end_leaks(self, *, take_calls: bool) -> list[LeakedCall]:
        """Return the leaked calls; other held-back text is shown."""
        self._close()
        self._release()
        calls: list[LeakedCall] = []
        for kind, scanner in self._scanners.items():
            found, rest = scanner.finish(take_calls=take_calls)
            calls += found
            if rest:
                self._show(kind, rest)
        return calls

    def _close(self) -> None:
        kind = self._kind
        if kind == _NOTHING:
            return
        text = "".join(self._run)
        opens_empty = not self._run[0]
        self._kind, self._run = _NOTHING, []
        self.growth += len(text)
        if self.torn:
            text = self._join_halves(kind, text)
        if self._channels is not None and kind == TEXT:
            parts = self._channels.feed(text)
            self._channels = None if self._channels.passed else self._channels
            text = self._text_of(parts)
        if self._tags is not None and kind < 0:
            text = self._without_thought(self._tags, kind, text)
        self._pass(kind, text, opens_empty=opens_empty)

    def _text_of(self, parts: list[ChannelPart]) -> str:
        """Return the text at the end of some parts; what stands before it is passed on."""
        last = parts.pop().text if parts and parts[-1].kind == "text" else ""
        for part in parts:
            self._pass(THINKING if part.kind == "thinking" else TEXT, part.text)
        return last

    def _pass(self, kind: int, text: str, *, opens_empty: bool = False) -> None:
        if kind == TEXT and self._stray is not None:
            text = self._stray.feed(text)
        if self._scanners and kind < 0:
            text = self._scanners[kind].feed(text)
        if text or opens_empty:
            self._show(kind, text)

    def _without_thought(self, tags: ThinkTags, kind: int, text: str) -> str:
        if kind == TEXT:
            thought, text = tags.feed(text)
            if thought:
                self._pass(THINKING, thought)
        if kind == THINKING or tags.passed:
            # A host that sends reasoning in a field does not tag it in the text as well.
            self._release_tags()
        return text

    def _release_channels(self) -> None:
        if self._channels is not None:
            parts = self._channels.finish()
            self._channels = None
            if text := self._text_of(parts):
                self._pass(TEXT, text)

    def _release_tags(self) -> None:
        if self._tags is not None:
            thought, text = self._tags.finish()
            self._tags = None
            if thought:
                self._pass(THINKING, thought)
            if text:
                self._pass(TEXT, text)

    def _release_stray(self) -> None:
        stray, self._stray = self._stray, None
        if stray is not None:
            if held := stray.finish():
                self._pass(TEXT, held)
            self._stray = stray

    def _release(self) -> None:
        """Show what was held back: another kind follows, or nothing, so it stays incomplete."""
        if self._last == TEXT:
            self._release_channels()
            self._release_tags()
            self._release_stray()
        if self._half:
            self._half = ""
            self.call_is_torn = self.call_is_torn or self._last >= 0
            self._pass(self._last, "\ufffd")
        if self._last in self._scanners and (held := self._scanners[self._last].release()):
            self._show(self._last, held)

    def _show(self, kind: int, text: str) -> None:
        if kind == TEXT:
            self.has_text = self.has_text or bool(text.strip())
            self._events.append(TextDelta(text))
        elif kind == THINKING:
            self._events.append(ThinkingDelta(text))
        else:
            self._events.append(ToolUseDelta(kind, text))

    def _join_halves(self, kind: int, text: str) -> str:
        """Join the halves of characters that were cut in two; lone halves become U+FFFD."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        joined = fix_surrogates(text)
        if kind >= 0 and joined.count("\ufffd") > text.count("\ufffd"):
            self.call_is_torn = True
        return joined
