"""What a provider's refusal means, and what its user can do about it. Sans-IO.

The rules follow Moonshot's error table and what other OpenAI-compatible hosts send. Texts say
what to do first, then quote the host, cut and cleaned.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kode_sidecar.domain.error_info import ErrorInfo, error_info
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.error_words import (
    ErrorWords,
    error_payload,
    error_words,
    excerpt,
    seconds_to_wait,
)
from kode_sidecar.providers.profiles import KNOWN_HOSTS

_OVERFLOW = re.compile(
    r"context_length_exceeded|maximum context length|model token limit|prompt is too long"
    r"|input token length too long|too many tokens|context window",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"exceeded_current_quota|exceeded your current|insufficient.{0,10}(balance|quota|credit)"
    r"|recharge|billing|out of credits|account.{0,20}suspended",
    re.IGNORECASE,
)
_PER_DAY = re.compile(r"\bTPD\b|tokens per day|requests per day|\bRPD\b|per-day", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded|over capacity|at capacity", re.IGNORECASE)
_FILTERED = re.compile(r"content_filter|high risk|content management policy", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(
    r"not found the model|model_not_found|no such model|unknown model"
    r"|model\b.{0,120}?(not found|not exist|not a valid|no longer available|deprecated|retired)"
    r"|(invalid|unsupported|not a valid) model|not_found_error model:",
    re.IGNORECASE | re.DOTALL,
)

# The types of Anthropic's errors stand for these, also where there is no status (Errors page of
# its API reference).
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TRACE_HEADERS = ("x-trace-id", "x-request-id", "request-id")


@dataclass(frozen=True)
class ProviderErrors:
    """Reads the errors of one host. `secret` is the key in use; it is masked in every text."""

    host: str = "The host"
    secret: str = ""

    def response(
        self, status: int, headers: Mapping[str, str], body: bytes, model: str
    ) -> ErrorInfo:
        """The failure behind an HTTP answer other than 200. Header names are in lower case."""
        words = error_words(error_payload(body)).without(self.secret)
        trace_id = next((headers[name] for name in _TRACE_HEADERS if name in headers), "")
        return self._info(status, words, model, seconds_to_wait(headers, words), trace_id)

    def in_stream(self, error: object) -> ErrorInfo:
        """The failure behind an error that came inside a stream: an object, or just a text."""
        words = error_words(error).without(self.secret)
        named = (_STATUS_OF_TYPE[kind] for kind in words.kind.split() if kind in _STATUS_OF_TYPE)
        status = words.status or next(named, 0)
        return self._info(status, words, "asked for", seconds_to_wait({}, words))

    def _info(
        self,
        status: int,
        words: ErrorWords,
        model: str,
        after: float | None,
        trace_id: str = "",
    ) -> ErrorInfo:
        code, advice = _judge(status, words, self.host, model)
        said = excerpt(words.message)
        details: dict[str, object] = {"type": excerpt(words.kind)} if words.kind else {}
        if code == "RateLimited" and _OVERLOADED.search(words.all):
            details["overloaded"] = True
        if trace_id:
            details["traceId"] = excerpt(trace_id)
        return error_info(
            KodeError(
                code,
                f"{advice}. It said: {said}" if said else f"{advice}.",
                http_status=status or None,
                retryable=_retryable(code, status, words),
                retry_after_ms=None if after is None else round(after * 1000),
                details=details,
            )
        )


def _retryable(code: str, status: int, words: ErrorWords) -> bool | None:
    """Whether the same request may succeed later; None: as the table of codes says."""
    if code == "RateLimited":
        return not _PER_DAY.search(words.all)
    if code != "Provider":
        return None
    if not status:
        # Without a status only the host's word for a client's mistake tells the two apart.
        return "invalid_request" not in words.kind
    return status in (408, 409, 425) or status >= 499


def _judge(status: int, words: ErrorWords, host: str, model: str) -> tuple[str, str]:
    """The code of our table, and what to say before the host's words."""
    said = words.all
    if _FILTERED.search(said) and status in (0, 400, 403):
        return "ContentFiltered", "The provider refused this text as risky: change it and ask again"
    if _OVERFLOW.search(said) and status in (0, 400, 413, 422):
        return "ContextOverflow", (
            "The conversation is longer than the model can read: start a new session, "
            "or go on from an earlier message"
        )
    if status == 402 or (_QUOTA.search(said) and status in (0, 400, 403, 429)):
        return "QuotaExceeded", "The account is empty: recharge it with the provider, then go on"
    unknown_model = _UNKNOWN_MODEL.search(said) and status in (0, 400, 403, 404)
    if unknown_model or "resource_not_found" in said:
        return "ModelNotFound", (
            f"{host} does not serve the model {model} to this key: choose another model"
        )
    if status == 401 or re.search(r"invalid_authentication|incorrect_api_key", said):
        return "AuthRequired", _wrong_key(host)
    if "tool_use_failed" in words.kind:
        return "IncompleteAnswer", "The model wrote a tool call that cannot be read: ask again"
    if status == 429 or "rate_limit" in words.kind or _OVERLOADED.search(said):
        return "RateLimited", _slow_down(words)
    return _by_status(status, host)


def _by_status(status: int, host: str) -> tuple[str, str]:
    if 300 <= status < 400:
        return "ConfigInvalid", (
            f"{host} sends requests on to another address, which is not followed: "
            "set KIMI_BASE_URL to the final address"
        )
    if status == 404:
        return "ConfigInvalid", (
            f"{host} has no chat API at this address: check KIMI_BASE_URL, it usually ends in /v1"
        )
    if status == 413:
        return "TooLarge", "The request is too large for the provider: send fewer or smaller files"
    if status == 403:
        return "Provider", f"{host} does not allow this to the key: check its rights and region"
    if status and status < 499 and status not in (408, 409, 425):
        return "Provider", f"{host} did not accept the request"
    return "Provider", f"{host} has trouble answering: try again in a while"


def _wrong_key(host: str) -> str:
    known = KNOWN_HOSTS.get(host)
    hint = "check that it is complete and belongs to this host"
    if known is not None:
        hint = (
            f"use a key from {known.console}, or set KIMI_BASE_URL to {known.sibling} if the key "
            "is from there; keys of the .cn and .ai hosts are not interchangeable"
        )
    return f"{host} did not accept the API key in KIMI_API_KEY: {hint}"


def _slow_down(words: ErrorWords) -> str:
    if _PER_DAY.search(words.all):
        return "The account's limit for today is used up: go on tomorrow, or raise its tier"
    if _OVERLOADED.search(words.all):
        return "The provider is overloaded: try again in a while, or choose another model"
    return "The provider's rate limit is reached: wait a little, then ask again"
