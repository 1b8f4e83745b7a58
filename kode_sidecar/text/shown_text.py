"""Text as a model is shown it: harmless characters, stated cuts."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """The text without control characters, except newline and tab (W13)."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """A text that cannot look like another line of a prompt, nor hide anything; single blanks."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(shown.split())


def is_text(name: str) -> bool:
    """Whether a name is Unicode; on Linux it may be any bytes, which Python hides in surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def cut_line(line: str, limit: int, around: int = 0) -> str:
    """A line of at most `limit` characters near the index `around`, saying how much is left out."""
    if len(line) <= limit:
        return line
    start = max(0, min(around - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{start} characters cut] " if start else ""
    after = f" [{len(line) - end} characters cut]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"
