"""Joins the deltas of one read: neighbours of one kind become one event. Sans-IO."""

from kode_sidecar.domain.model_event import (
    ModelEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.providers.leaked_calls import LeakedCall, LeakedCallScanner
from kode_sidecar.providers.think_tags import ThinkTags

TEXT = -1
THINKING = -2
_NOTHING = -3


class DeltaRuns:
    """Collects events in order. A kind is `TEXT`, `THINKING` or the index of a tool call.

    Tool calls for one of `tool_names` that leaked into text are held back until `end_leaks`.
    With `think_tags` reasoning in front of the text is told apart.
    Set `torn` once a text may hold lone surrogates: then halves of characters are joined.
    `growth` counts the characters that came, held back or not.
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
        self._tags = ThinkTags() if self._think_tags else None
        self._last = _NOTHING
        self._half = ""
        self.has_any = False
        self.has_text = False

    def restart(self) -> None:
        """The answer begins anew; what was said is to be taken back."""
        self._close()
        self._begin()

    def add(self, kind: int, text: str) -> None:
        """Growth of what is open, or the start of something of another kind."""
        if kind != self._kind:
            self._close()
            if kind != self._last:
                self._release()
                self._last = kind
            self._kind = kind
            self.has_any = True
        self._run.append(text)

    def put(self, event: ModelEvent) -> None:
        """An event of its own."""
        if isinstance(event, ToolUseDelta):
            self.add(event.index, event.json)
            return
        self._close()
        self._release()
        self._last = _NOTHING
        self._events.append(event)
        self.has_any = self.has_any or isinstance(event, ToolUseStarted)

    def take(self) -> list[ModelEvent]:
        """What was collected since the last time."""
        self._close()
        events, self._events = self._events, []
        return events

    def end_leaks(self, *, take_calls: bool) -> list[LeakedCall]:
        """The calls that leaked; what was held back but is none becomes text again."""
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
            text = self._mend(text)
        if self._tags is not None and kind < 0:
            text = self._without_thought(self._tags, kind, text)
        self._pass(kind, text, opens_empty=opens_empty)

    def _pass(self, kind: int, text: str, *, opens_empty: bool = False) -> None:
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
            # Who sends reasoning apart does not tag it in the text as well.
            self._release_tags()
        return text

    def _release_tags(self) -> None:
        if self._tags is not None:
            thought, text = self._tags.finish()
            self._tags = None
            if thought:
                self._pass(THINKING, thought)
            if text:
                self._pass(TEXT, text)

    def _release(self) -> None:
        """Something else follows, or nothing: what was held back for its rest gets none."""
        if self._last == TEXT:
            self._release_tags()
        if self._half:
            self._half = ""
            self._pass(self._last, "\ufffd")
        if self._last in self._scanners and (held := self._scanners[self._last].release()):
            self._show(self._last, held)

    def _show(self, kind: int, text: str) -> None:
        if kind == TEXT:
            self.has_text = self.has_text or not text.isspace()
            self._events.append(TextDelta(text))
        elif kind == THINKING:
            self._events.append(ThinkingDelta(text))
        else:
            self._events.append(ToolUseDelta(kind, text))

    def _mend(self, text: str) -> str:
        """Join the halves of characters that were cut in two; lone halves become U+FFFD."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
