"""What a host says of its rate limits, in words and in headers. Sans-IO.

Words as Moonshot writes them ("request reached organization max RPM: 3", "... max organization
concurrency: 1"); headers as OpenAI, Anthropic and their followers name them.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

LimitKind = Literal["rate", "concurrency", "tokens", "day", "overload", "quota"]
"""Which limit a refusal speaks of. `day` and `quota` are not over within minutes."""

_CONCURRENCY = re.compile(r"concurren(?:cy|t)(?:[^.:\d]{0,20}:\s*(\d+))?", re.IGNORECASE)
_PER_MINUTE = re.compile(r"\bRPM\b(?:\s*:?\s*(\d+))?|requests per minute", re.IGNORECASE)
_TOKENS = re.compile(r"\bTPM\b|tokens per minute", re.IGNORECASE)
_PER_DAY = re.compile(r"\b[TR]PD\b|tokens per day|requests per day|per-day", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded|over capacity|at capacity", re.IGNORECASE)

_REMAINING = (
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining",
    "anthropic-ratelimit-requests-remaining",
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-tokens-remaining",
)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
# A number this large is a point in time, not a duration.
_EPOCH = 1_000_000_000


class Limits(NamedTuple):
    """What is known of a key's limits: requests side by side and in a minute."""

    at_once: int | None = None
    per_minute: int | None = None


def limit_kind(said: str) -> LimitKind:
    """Which limit the words of a refusal speak of."""
    if _PER_DAY.search(said):
        return "day"
    if _OVERLOADED.search(said):
        return "overload"
    if _CONCURRENCY.search(said):
        return "concurrency"
    return "tokens" if _TOKENS.search(said) else "rate"


def limits_in(said: str) -> Limits:
    """The numbers in the words of a refusal."""
    at_once, minute = _CONCURRENCY.search(said), _PER_MINUTE.search(said)
    return Limits(
        int(at_once[1]) if at_once and at_once[1] else None,
        int(minute[1]) if minute and minute[1] else None,
    )


def seconds_until_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until an allowance that is used up is filled again; None when there is some left.

    `headers` has names in lower case.
    """
    waits = [
        _seconds(headers.get(name.replace("remaining", "reset"), ""), headers.get("date", ""))
        for name in _REMAINING
        if headers.get(name, "").strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str, date: str) -> float | None:
    """A duration (`1s`, `6m0s`, `20`), or a time (RFC 3339, or seconds since 1970)."""
    text = text.strip()
    try:
        if re.fullmatch(r"\d+(\.\d+)?", text):
            number = float(text)
            if number < _EPOCH:
                return number
            return max(0.0, number - parsedate_to_datetime(date).timestamp())
        match = _DURATION.fullmatch(text)
        if text and match:
            hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
            return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
        # Both times are the host's, so its clock need not be right.
        until = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return max(0.0, (until - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None
