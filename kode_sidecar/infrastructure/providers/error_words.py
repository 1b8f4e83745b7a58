"""Reads a host's words for a failure or a limit, in bodies, streams and headers. Sans-IO."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, cast

_MOST_GATEWAYS = 3  # in a chain
MAX_EXCERPT = 300
"""Characters of a host's own words that are shown."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_KEY_PIECE = 8
_KEY = re.compile(r"\b[as]k-[\w*-]{6,}|(?<=[Bb]earer )\S{8,}")
_TRY_AFTER = re.compile(r"(?:try again|retry) (?:after|in) (\d+(?:\.\d+)?) ?(ms|s)", re.IGNORECASE)
LimitKind = Literal["rate", "concurrency", "tokens", "day", "overload", "quota"]
"""Which limit a refusal names. `day` and `quota` do not end within minutes."""
_CONCURRENCY = re.compile(r"(?:concurren(?:cy|t)|并发)(?:[^.:\d]{0,20}:\s*(\d+))?", re.IGNORECASE)
_PER_MINUTE = re.compile(r"\bRPM\b(?:\s*:?\s*(\d+))?|requests per minute", re.IGNORECASE)
_TOKENS = re.compile(r"\bTPM\b|tokens per minute", re.IGNORECASE)
_PER_DAY = re.compile(
    r"\b[TR]PD\b|tokens per day|requests per day|per-day"
    r"|(?:今日|当日|每日|每天).{0,12}(?:限|次数|额)",
    re.IGNORECASE,
)
_OVERLOADED = re.compile(
    r"overloaded|over capacity|at capacity|过载|繁忙|负载(?:过高|较高)", re.IGNORECASE
)
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


class ErrorWords(NamedTuple):
    """A host's error: type and code as text, message, and the HTTP status that it contains."""

    kind: str
    message: str
    status: int | None

    @property
    def all(self) -> str:
        """All words of the error, to search in."""
        return f"{self.kind} {self.message}"

    def without(self, secret: str) -> "ErrorWords":
        """Return these words with a key masked wherever the host repeated it."""
        if not secret:
            return self
        kind, message = (_masked(text, secret) for text in (self.kind, self.message))
        return ErrorWords(kind, message, self.status)


def _masked(text: str, secret: str) -> str:
    """Mask every piece of a secret in a text that is long enough to be of use."""
    count = min(len(secret), _KEY_PIECE)
    pieces = {secret[at : at + count] for at in range(len(secret) - count + 1)}
    covered = bytearray(len(text))
    for at in range(len(text) - count + 1):
        if text[at : at + count] in pieces:
            covered[at : at + count] = b"\1" * count
    shown = (char if not hidden else "\0" for char, hidden in zip(text, covered, strict=True))
    return re.sub("\0+", "***", "".join(shown))


def excerpt(text: str) -> str:
    """Clean a host's words: one line, no control or invisible characters, no key, bounded."""
    text = " ".join(_KEY.sub("***", _CONTROL.sub(" ", text[: 4 * MAX_EXCERPT])).split())
    return text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…"


def seconds_to_wait(headers: Mapping[str, str], words: ErrorWords) -> float | None:
    """Return the seconds the host asks us to wait (RFC 9110 section 10.2.3, and other headers)."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        given = headers.get("retry-after", "").strip()
        if given.replace(".", "", 1).isdigit():
            return float(given)
        if given:
            # Both times come from the host, so its clock may be wrong.
            return max(0.0, (_date(given) - _date(headers.get("date", ""))).total_seconds())
    except (ValueError, OverflowError):
        pass
    if match := _TRY_AFTER.search(words.message):
        return float(match[1]) / (1000 if match[2].lower() == "ms" else 1)
    return None


def how_long(seconds: float) -> str:
    """Return a duration in days, hours, minutes or seconds, for people."""
    for size, name, least in ((86_400, "days", 2), (3_600, "hours", 2), (60, "minutes", 2)):
        if seconds >= least * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    if date.tzinfo is None:
        raise ValueError("a date without a zone")
    return date


def error_payload(body: bytes) -> object:
    """Return the error in a body: an object, the title of an HTML page, or other text."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        # An HTML page comes from something in between; only its title is of use.
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        return title[1] if title else "" if text.startswith("<") else text
    if isinstance(value, list):
        value = next(iter(cast(list[object], value)), "")
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, object], value)
    return fields.get("error", fields)


def error_words(error: object, *, depth: int = 0) -> ErrorWords:
    """Read an error as hosts write it: an object, or just a text; codes as text or number.

    A gateway puts the error of the host behind it, the real reason, into `metadata.raw`.
    """
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
    if depth < _MOST_GATEWAYS and (raw := _raw_of(fields)):
        inner = error_words(error_payload(raw.encode("utf-8", "replace")), depth=depth + 1)
        names += [inner.kind] if inner.kind else []
        message = f"{message}: {inner.message}" if inner.message else message
    return ErrorWords(" ".join(names), message, status if status and 300 <= status < 600 else None)


def _raw_of(fields: Mapping[str, Any]) -> str:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    raw = cast(dict[str, Any], metadata).get("raw")
    if isinstance(raw, dict):
        return json.dumps(raw)
    return raw if isinstance(raw, str) else ""


class Limits(NamedTuple):
    """The known limits of a key: parallel requests, and requests per minute."""

    at_once: int | None = None
    per_minute: int | None = None


def limit_kind(said: str) -> LimitKind:
    """Return which limit the words of a refusal name."""
    if _PER_DAY.search(said):
        return "day"
    if _OVERLOADED.search(said):
        return "overload"
    if _CONCURRENCY.search(said):
        return "concurrency"
    return "tokens" if _TOKENS.search(said) else "rate"


def limits_in(said: str) -> Limits:
    """Return the numbers in the words of a refusal."""
    at_once, minute = _CONCURRENCY.search(said), _PER_MINUTE.search(said)
    return Limits(
        int(at_once[1]) if at_once and at_once[1] else None,
        int(minute[1]) if minute and minute[1] else None,
    )


def seconds_until_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all used-up allowances are renewed; None if none is used up.

    `headers` has names in lower case.
    """
    waits = [
        _seconds(headers.get(name.replace("remaining", "reset"), ""), headers.get("date", ""))
        for name in _REMAINING
        if headers.get(name, "").strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str, date: str) -> float | None:
    """Return a duration (`1s`, `6m0s`, `20`), or a time (RFC 3339, or seconds since 1970)."""
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
        # Both times come from the host, so its clock may be wrong.
        until = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return max(0.0, (until - parsedate_to_datetime(date)).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


# Hosts' words for a request beyond the context window, from their source code or documentation.
_SAID = (
    # OpenAI, copied by vLLM, DeepSeek, OpenRouter and most others.
    r"context_length_exceeded|maximum context length(?: is| of)? ?(?P<openai>[\d,]+)?",
    r"exceeds the context window|context window exceeds|context window",
    r"reduce the length of the (?:messages|input|prompt)",
    # Moonshot
    r"model token limit(?: ?: ?(?P<kimi>[\d,]+))?|input token length too long",
    # Anthropic, and Bedrock
    r"prompt is too long(?:: [\d,]+ tokens > (?P<anthropic>[\d,]+))?",
    r"exceed context limit(?:: [\d,]+ \+ [\d,]+ > (?P<claude>[\d,]+))?",
    r"input is too long|too many (?:input )?tokens(?!.{0,20}wait)",
    # llama.cpp
    r"exceed_context_size|available context size(?: \((?P<llama>[\d,]+))?",
    r"input is too large to process",
    # LM Studio
    r"context length of (?:only )?(?P<lmstudio>[\d,]+)|context the overflows|context overflow",
    r"greater than the context length",
    # Gemini
    r"token count.{0,60}exceeds the maximum number of tokens(?: allowed)?"
    r"(?: ?\(?(?P<gemini>[\d,]+))?",
    # GLM
    r"prompt exceeds max length|(?:prompt|输入).{0,12}(?:超长|过长)|超出.{0,12}(?:上下文|最大长度)",
    # Qwen
    r"range of input length should be \[\d+, ?(?P<qwen>[\d,]+)",
    # Mistral, xAI, SGLang, TGI
    r"too large for model with (?P<mistral>[\d,]+) maximum context",
    r"maximum prompt length is (?P<xai>[\d,]+)",
    r"longer than the model's context length(?: \((?P<sglang>[\d,]+))?",
    r"inputs`? (?:tokens .{0,40})?must (?:have less than|be <=) (?P<tgi>[\d,]+)",
)
_OVERFLOW = re.compile("|".join(_SAID), re.IGNORECASE | re.DOTALL)
# No context window is smaller than this: a smaller number means something else.
_SMALLEST_WINDOW = 512


class Overflow(NamedTuple):
    """A refusal for the length of a request; `window` in tokens, if the host names it."""

    window: int | None


def overflow_in(said: str) -> Overflow | None:
    """Return the overflow that the words report; None if they are about something else."""
    found = False
    for match in _OVERFLOW.finditer(said):
        found = True
        for number in filter(None, match.groups()):
            digits = number.replace(",", "")[:12]
            if digits and int(digits) >= _SMALLEST_WINDOW:
                return Overflow(int(digits))
    return Overflow(None) if found else None
