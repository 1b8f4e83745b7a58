"""Text made safe and fit for a terminal."""

import re
import unicodedata

from kode_sidecar.text.invisible import invisible_characters

# W13: what could move the cursor, recolour or retitle the terminal: C0 but newline and tab, C1.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """`text` without control characters except newline and tab."""
    return _CONTROL.sub("", text)


def with_code_points(text: str) -> str:
    """`text` with hidden characters written out, such as `<U+202E>`."""
    for name in invisible_characters(text):
        text = text.replace(chr(int(name.removeprefix("U+"), 16)), f"<{name}>")
    return text


def one_line(text: str) -> str:
    """`text` on one line, runs of blanks as one."""
    return " ".join(without_controls(text).split())


def columns(text: str) -> int:
    """How many terminal columns `text` takes (Unicode Standard Annex 11)."""
    return sum(_columns(char) for char in text)


def clipped(text: str, limit: int) -> str:
    """`text`, cut to at most `limit` columns with an ellipsis."""
    if columns(text) <= limit:
        return text
    used = 0
    for index, char in enumerate(text):
        used += _columns(char)
        if used > limit - 1:
            return text[:index] + "…"
    return text


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
