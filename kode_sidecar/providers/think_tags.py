"""Reasoning that a host left in the text, as `<think>…</think>` before the answer. Sans-IO.

Only at the very beginning: further on it may be text about such tags.
"""

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits the growing text of an answer; feed it all text until `passed`."""

    def __init__(self) -> None:
        self._held: str = ""
        self._inside = False
        self._thought = False
        self.passed = False

    def feed(self, text: str) -> tuple[str, str]:
        """What is reasoning and what is text of that which is certain by now."""
        text = self._held + text
        self._held = ""
        if not self._inside:
            begin = text.lstrip()
            if not begin.startswith(_OPEN):
                if _OPEN.startswith(begin):
                    self._held = text
                    return "", ""
                self.passed = True
                return "", text
            self._inside = True
            text = begin[len(_OPEN) :]
        thought, found, rest = text.partition(_CLOSE)
        if found:
            self.passed = True
        else:
            thought, self._held = _without_start_of_close(thought)
        if not self._thought:
            thought = thought.lstrip()
            self._thought = bool(thought)
        return thought, rest

    def finish(self) -> tuple[str, str]:
        """What was held back, now that nothing follows."""
        held = self._held
        self._held, self.passed = "", True
        return (held, "") if self._inside else ("", held)


def _without_start_of_close(text: str) -> tuple[str, str]:
    at = text.rfind("<")
    if at >= 0 and _CLOSE.startswith(text[at:]):
        return text[:at], text[at:]
    return text, ""
