"""Judges a provider's refusal, and advises the user what to do about it. Sans-IO.

The rules follow Moonshot's error table and the errors of other OpenAI-compatible hosts. Texts
first say what to do, then quote the host, cut and cleaned.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.error_words import (
    ErrorWords,
    LimitKind,
    error_payload,
    error_words,
    excerpt,
    how_long,
    limit_kind,
    limits_in,
    overflow_in,
    seconds_to_wait,
    seconds_until_reset,
)

_QUOTA = re.compile(
    r"exceeded_current_quota|exceeded your current|insufficient.{0,10}(balance|quota|credit)"
    r"|recharge|billing|out of credits|account.{0,20}suspended|more credits|arrearage"
    r"|account is in good standing|余额不足|欠费|充值|无可用资源包"
    r"|(?:额度|配额)(?:不足|已?用[完尽光])",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content_filter|high risk|content management policy|data_?inspection_?failed|敏感内容"
    r"|invalid_prompt|policy_violation|bio_policy",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"not found the model|model_not_found|no such model|unknown model"
    r"|models?\b.{0,120}?(not found|not exist|not a valid|no longer available|deprecated|retired)"
    r"|(invalid|unsupported|not a valid) model|not_found_error model:|no endpoints found for"
    r"|no models? (?:is |are )?(?:currently )?loaded|模型.{0,80}?(不存在|已下线|未找到)",
    re.IGNORECASE | re.DOTALL,
)
_LOADING = re.compile(
    r"loading (?:the )?model|model\b.{0,120}?\bloading|模型.{0,12}加载中", re.IGNORECASE | re.DOTALL
)
# OpenRouter has the model, but no provider behind it accepts this request.
_NO_ENDPOINT = re.compile(r"no endpoints found|no allowed providers", re.IGNORECASE)

# The HTTP statuses of Anthropic's error types, for errors without one (Errors page of its API
# reference).
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
_TRACE_HEADERS = (
    "x-trace-id",
    "x-msh-trace-id",
    "x-request-id",
    "request-id",
    "msh-request-id",
    "cf-ray",
)
# The host's own header on whether to retry counts for errors whose code does not decide it.
_TOLD = {"true": True, "false": False}
_HOST_DECIDES = frozenset({"Provider", "RateLimited", "IncompleteAnswer"})
# Longer waits than this are reported, not waited for (`rate_limiter.MAX_RETRY_AFTER`).
_SAID_AS_A_TIME = 60.0
_BUSY = (0, 425, 429, 500, 503)
_SLOW_DOWN: dict[LimitKind, str] = {
    "rate": "The provider's limit of requests is reached: wait a little, then ask again",
    "concurrency": (
        "The account may not ask so often at once: wait for other turns to end, then ask again"
    ),
    "tokens": "The provider's limit of tokens a minute is reached: wait a minute, then ask again",
    "day": "The account's limit for today is used up: go on tomorrow, or raise its tier",
    "overload": "The provider is overloaded: try again in a while, or choose another model",
}


@dataclass(frozen=True)
class ProviderErrors:
    """Reads the errors of one host. `secret` is the key in use; it is masked in every text.

    `key_name` and `url_name` name the settings of key and address, `console` is the web page for
    keys, `sibling` an address whose keys are mistaken for this host's.
    """

    host: str = "The host"
    secret: str = field(default="", repr=False)
    key_name: str = "KIMI_API_KEY"
    url_name: str = "KIMI_BASE_URL"
    console: str = ""
    sibling: str = ""

    def response(
        self, status: int, headers: Mapping[str, str], body: bytes, model: str
    ) -> ErrorInfo:
        """Return the failure for an HTTP status other than 200. Header names are in lower case."""
        words = error_words(error_payload(body)).without(self.secret)
        after = seconds_to_wait(headers, words)
        if after is None and status == 429:
            after = seconds_until_reset(headers)
        found = self._info(status, words, model, after)
        said = _TOLD.get(headers.get("x-should-retry", "").strip().lower())
        if said is not None and found.code in _HOST_DECIDES:
            found = replace(found, retryable=said)
        return self.traced(found, headers)

    def traced(self, error: ErrorInfo, headers: Mapping[str, str]) -> ErrorInfo:
        """Return `error` with the host's id of the request, which its support will ask for."""
        found = next((headers[name] for name in _TRACE_HEADERS if name in headers), "")
        if not found:
            return error
        masked = found.replace(self.secret, "***") if self.secret else found
        return replace(error, details={**(error.details or {}), "traceId": excerpt(masked)})

    def in_stream(self, error: object) -> ErrorInfo:
        """Return the failure for an error inside a stream: an object, or just a text."""
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
    ) -> ErrorInfo:
        code, advice = self._judge(status, words, model)
        if code == "RateLimited" and after is not None and after > _SAID_AS_A_TIME:
            advice = f"{self.host} wants to be left alone: ask again in {how_long(after)}"
        said = excerpt(words.message)
        details: dict[str, object] = {"type": excerpt(words.kind)} if words.kind else {}
        if code in ("RateLimited", "QuotaExceeded"):
            details.update(_limit(code, words))
        elif status in _BUSY and _LOADING.search(words.all):
            details["limit"] = "loading"
        if code == "ContextOverflow" and (found := overflow_in(words.all)) and found.window:
            details["window"] = found.window
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

    def _judge(self, status: int, words: ErrorWords, model: str) -> tuple[str, str]:
        """Return our error code, and the advice to give before the host's words."""
        said = words.all
        if _FILTERED.search(said) and status in (0, 400, 403):
            return (
                "ContentFiltered",
                "The provider refused this text as risky: change it and ask again",
            )
        if status in (0, 400, 413, 422, 500) and overflow_in(said):
            return "ContextOverflow", (
                "The conversation is longer than the model can read: start a new session, "
                "or go on from an earlier message"
            )
        if status == 402 or (_QUOTA.search(said) and status in (0, 400, 403, 429)):
            return (
                "QuotaExceeded",
                "The account is empty: recharge it with the provider, then go on",
            )
        unknown_model = _UNKNOWN_MODEL.search(said) and status in (0, 400, 403, 404)
        if unknown_model or "resource_not_found" in said:
            return "ModelNotFound", (
                f"{self.host} does not serve the model {model} to this key: choose another model"
            )
        if _NO_ENDPOINT.search(said):
            return "Provider", (
                f"{self.host} has nobody who serves {model} the way it is asked: choose another "
                "model, or look at the account's settings of privacy and providers"
            )
        if status == 401 or re.search(r"invalid_authentication|incorrect_api_key", said):
            return "AuthRequired", self._wrong_key()
        if "tool_use_failed" in words.kind:
            return "IncompleteAnswer", "The model wrote a tool call that cannot be read: ask again"
        if "access_terminated" in said or "only available for coding agents" in said.lower():
            return "Provider", (
                f"{self.host} admits only clients that its owner has approved, and not this one: "
                "use a key of platform.kimi.com with the provider `kimi`, or another host"
            )
        kind = limit_kind(said)
        if status in _BUSY and _LOADING.search(said):
            return (
                "Provider",
                f"{self.host} is still loading the model: it is asked again until then",
            )
        if status == 429 or "rate_limit" in words.kind or kind == "overload":
            return "RateLimited", _SLOW_DOWN[kind]
        return self._by_status(status)

    def _by_status(self, status: int) -> tuple[str, str]:
        if 300 <= status < 400:
            return "ConfigInvalid", (
                f"{self.host} sends requests on to another address, which is not followed: "
                f"set {self.url_name} to the final address"
            )
        if status == 404:
            return "ConfigInvalid", (
                f"{self.host} has no chat API at this address: check {self.url_name}, "
                "it usually ends in /v1"
            )
        if status == 413:
            return (
                "TooLarge",
                "The request is too large for the provider: send fewer or smaller files",
            )
        if status == 403:
            return (
                "Provider",
                f"{self.host} does not allow this to the key: check its rights and region",
            )
        if status and status < 499 and status not in (408, 409, 425):
            return "Provider", f"{self.host} did not accept the request"
        return "Provider", f"{self.host} has trouble answering: try again in a while"

    def _wrong_key(self) -> str:
        hint = "check that it is complete and belongs to this host"
        if self.console:
            hint += f"; its keys are made at {self.console}"
        if self.sibling:
            hint = (
                f"use a key from {self.console}, or set {self.url_name} to {self.sibling} "
                "if the key is from there; keys of the two hosts are not interchangeable"
            )
        return f"{self.host} did not accept the API key in {self.key_name}: {hint}"


def _limit(code: str, words: ErrorWords) -> dict[str, object]:
    """Return which limit was reached, with the numbers the host named."""
    if code == "QuotaExceeded":
        return {"limit": "quota"}
    said = limits_in(words.message)
    found: dict[str, object] = {"limit": limit_kind(words.all)}
    if said.at_once is not None:
        found["atOnce"] = said.at_once
    if said.per_minute is not None:
        found["perMinute"] = said.per_minute
    return found


def _retryable(code: str, status: int, words: ErrorWords) -> bool | None:
    """Return whether the same request may succeed later; None: by the default of the code."""
    if code == "RateLimited":
        return limit_kind(words.all) != "day"
    if code != "Provider":
        return None
    if _NO_ENDPOINT.search(words.message):
        return False
    if not status:
        # Without a status, only the host's type for a client's mistake rules out a retry.
        return "invalid_request" not in words.kind
    return status in (408, 409, 425) or status >= 499
