"""A host's error as it comes: in a body, in a stream, in headers. Sans-IO."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

MAX_EXCERPT = 300
"""Characters of a host's own words that are shown."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_KEY = re.compile(r"\b[as]k-[\w*-]{6,}|(?<=[Bb]earer )\S{8,}")
_TRY_AFTER = re.compile(r"(?:try again|retry) (?:after|in) (\d+(?:\.\d+)?) ?(ms|s)", re.IGNORECASE)


class ErrorWords(NamedTuple):
    """A host's error: its type and code as text, its message, and the extra status in it."""

    kind: str
    message: str
    status: int | None

    @property
    def all(self) -> str:
        """All that the host said, to search in."""
        return f"{self.kind} {self.message}"

    def without(self, secret: str) -> "ErrorWords":
        """The same with a key masked wherever the host repeated it."""
        if not secret:
            return self
        kind, message = (text.replace(secret, "***") for text in (self.kind, self.message))
        return ErrorWords(kind, message, self.status)


def excerpt(text: str) -> str:
    """A host's words: one line, no control or invisible characters, no key, of bounded length."""
    text = " ".join(_KEY.sub("***", _CONTROL.sub(" ", text[: 4 * MAX_EXCERPT])).split())
    return text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…"


def seconds_to_wait(headers: Mapping[str, str], words: ErrorWords) -> float | None:
    """Seconds that the host asks us to wait (RFC 9110 section 10.2.3, and what hosts add)."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        given = headers.get("retry-after", "").strip()
        if given.replace(".", "", 1).isdigit():
            return float(given)
        if given:
            # Both times are the host's, so its clock need not be right.
            return max(0.0, (_date(given) - _date(headers.get("date", ""))).total_seconds())
    except (ValueError, OverflowError):
        pass
    if match := _TRY_AFTER.search(words.message):
        return float(match[1]) / (1000 if match[2].lower() == "ms" else 1)
    return None


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    if date.tzinfo is None:
        raise ValueError("a date without a zone")
    return date


def error_payload(body: bytes) -> object:
    """The error object of a body; an HTML page is worth its title, other text itself."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        # An HTML page comes from something in between: only its title says anything.
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        return title[1] if title else "" if text.startswith("<") else text
    if isinstance(value, list):
        value = next(iter(cast(list[object], value)), "")
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, object], value)
    return fields.get("error", fields)


def error_words(error: object) -> ErrorWords:
    """An error as hosts write it: an object, or just a text; codes as text or number."""
    if not isinstance(error, dict):
        return ErrorWords("", error if isinstance(error, str) else "", None)
    fields = cast(dict[str, Any], error)
    message = fields.get("message") or fields.get("detail") or fields.get("msg") or ""
    code, kind = fields.get("code"), fields.get("type")
    status = code if isinstance(code, int) and not isinstance(code, bool) else None
    if isinstance(code, str) and code.isdigit():
        status = int(code[:9])
    if not isinstance(message, str):
        message = json.dumps(message)
    names = [name for name in (kind, code) if isinstance(name, str) and not name.isdigit()]
    return ErrorWords(" ".join(names), message, status if status and 300 <= status < 600 else None)
