"""What refusals mean, and that their texts are fit to be shown."""

import json
from typing import Any

import pytest

from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.providers.error_words import MAX_EXCERPT
from kode_sidecar.providers.provider_config import ProviderConfig
from kode_sidecar.providers.provider_errors import ProviderErrors

KEY = "live-key-3141592653"
HOST = "api.moonshot.cn"


def read(status: int, body: Any = b"", **headers: str) -> ErrorInfo:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProviderErrors(HOST, KEY).response(status, names, data, "kimi-k2.6")


def moonshot(kind: str, message: str = "boom") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message}}


TABLE: list[tuple[int, Any, str, bool]] = [
    (400, moonshot("content_filter", "high risk"), "ContentFiltered", False),
    (400, moonshot("invalid_request_error", "text content is empty"), "Provider", False),
    (
        400,
        moonshot("invalid_request_error", "Input token length too long"),
        "ContextOverflow",
        False,
    ),
    (
        400,
        moonshot(
            "invalid_request_error", "Your request exceeded model token limit : 8 (requested: 9)"
        ),
        "ContextOverflow",
        False,
    ),
    (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, "ContextOverflow", False),
    (
        400,
        {"error": {"message": "moonshotai/kimi-x is not a valid model ID", "code": 400}},
        "ModelNotFound",
        False,
    ),
    (401, moonshot("invalid_authentication_error"), "AuthRequired", False),
    (401, b"", "AuthRequired", False),
    (402, moonshot("payment"), "QuotaExceeded", False),
    (403, moonshot("permission_denied_error"), "Provider", False),
    (
        403,
        moonshot("forbidden", "Your account balance is insufficient, please recharge"),
        "QuotaExceeded",
        False,
    ),
    (
        404,
        moonshot("resource_not_found_error", "Not found the model kimi-x or Permission denied"),
        "ModelNotFound",
        False,
    ),
    (
        404,
        {
            "object": "error",
            "message": "The model `x` does not exist.",
            "type": "NotFoundError",
            "code": 404,
        },
        "ModelNotFound",
        False,
    ),
    (404, b"404 page not found", "ConfigInvalid", False),
    (404, {"code": 5, "error": "url.not_found", "message": "x"}, "ConfigInvalid", False),
    (408, b"", "Provider", True),
    (413, moonshot("invalid_request_error", "Request exceeds the maximum size"), "TooLarge", False),
    (422, moonshot("x"), "Provider", False),
    (
        429,
        moonshot("rate_limit_reached_error", "max RPM: 3, try again after 1 seconds"),
        "RateLimited",
        True,
    ),
    (
        429,
        moonshot("rate_limit_reached_error", "request reached max TPD limit"),
        "RateLimited",
        False,
    ),
    (429, moonshot("engine_overloaded_error"), "RateLimited", True),
    (429, moonshot("exceeded_current_quota_error"), "QuotaExceeded", False),
    (429, b"Too many requests", "RateLimited", True),
    (302, b"", "ConfigInvalid", False),
    (499, moonshot("client_closed_request"), "Provider", True),
    (500, {"error": "boom"}, "Provider", True),
    (502, b"<html><head><title>502 Bad Gateway</title></head></html>", "Provider", True),
    (503, [{"error": {"message": "boom", "code": 503}}], "Provider", True),
    (529, b"\xff\xfe", "Provider", True),
]


@pytest.mark.parametrize(("status", "body", "code", "retryable"), TABLE)
def test_the_table(status: int, body: Any, code: str, retryable: bool) -> None:  # A12
    error = read(status, body)
    assert (error.code, error.retryable, error.http_status) == (code, retryable, status)


def test_a_refused_key_says_what_to_set() -> None:
    refused = json.dumps(moonshot("invalid_authentication_error")).encode()
    errors = ProviderConfig("https://api.moonshot.cn/v1", KEY).errors()
    text = errors.response(401, {}, refused, "m").message
    for part in (
        HOST,
        "KIMI_API_KEY",
        "KIMI_BASE_URL",
        "https://api.moonshot.ai/v1",
        "not interch",
    ):
        assert part in text
    other = ProviderErrors("llm.example", KEY).response(401, {}, b"", "m").message
    assert "KIMI_API_KEY" in other
    assert "moonshot" not in other


def test_no_key_in_any_text() -> None:  # W14
    echoed = f"Incorrect API key provided: {KEY}; also sk-AbCdEf0123456789 and Bearer abcdefgh12345"
    for found in (
        read(401, moonshot(f"type-{KEY}", echoed)),
        read(500, ("x" * (MAX_EXCERPT - 60) + echoed).encode()),
        ProviderErrors(HOST, KEY).in_stream({"message": echoed, "code": KEY}),
        ProviderErrors(HOST, KEY).in_stream(echoed),
    ):
        shown = f"{found.message} {found.details}"
        for part in (KEY, KEY[:10], "AbCdEf", "abcdefgh"):
            assert part not in shown


def test_texts_are_bounded_and_clean() -> None:  # W13
    text = read(500, "a\x1b[31m\x00b\u202ec\u2028d".encode() + b"x" * 9_000).message
    assert len(text) < 2 * MAX_EXCERPT
    assert all(char.isprintable() for char in text)
    page = read(502, b"<html><title>502 Bad\nGateway</title><body>secret page</body>").message
    assert "502 Bad Gateway" in page
    assert "secret page" not in page


WAITS: list[tuple[dict[str, str], str, int | None]] = [
    ({"retry_after": "2"}, "", 2_000),
    ({"retry_after": "1.5"}, "", 1_500),
    ({"retry_after_ms": "250", "retry_after": "9"}, "", 250),
    (
        {"retry_after": "Fri, 20 Nov 2026 10:00:30 GMT", "date": "Fri, 20 Nov 2026 10:00:00 GMT"},
        "",
        30_000,
    ),
    (
        {"retry_after": "Fri, 20 Nov 2026 09:00:00 GMT", "date": "Fri, 20 Nov 2026 10:00:00 GMT"},
        "",
        0,
    ),
    ({"retry_after": "Fri, 20 Nov 2026 10:00:30 GMT"}, "", None),
    ({"retry_after": "soon"}, "", None),
    ({}, "please try again after 7 seconds", 7_000),
    ({}, "", None),
]


@pytest.mark.parametrize(("headers", "message", "milliseconds"), WAITS)
def test_how_long_to_wait(headers: dict[str, str], message: str, milliseconds: int | None) -> None:
    error = read(429, moonshot("rate_limit_reached_error", message), **headers)
    assert error.retry_after_ms == milliseconds


def test_the_trace_id_is_kept() -> None:
    assert (read(500, b"", x_trace_id="t-1").details or {})["traceId"] == "t-1"
