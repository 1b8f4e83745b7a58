"""What refusals mean, and that their texts are fit to be shown."""

import json
from typing import Any

import pytest

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.infrastructure.providers.error_words import MAX_EXCERPT, ErrorWords
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors

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


# What hosts say of a request that is too long, and the window they name.
OVERFLOWS: list[tuple[str, str, int | None]] = [
    (
        "llama.cpp",
        "request (5120 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
    ),
    ("llama.cpp, older", "the request exceeds the available context size", None),
    (
        "LM Studio",
        "Trying to keep the first 4521 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens, which is not enough.",
        4096,
    ),
    (
        "Gemini",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
    ),
    ("GLM", "Prompt exceeds max length", None),
    ("GLM in Chinese", "Prompt 超长", None),
    ("Qwen", "Range of input length should be [1, 129024]", 129_024),
    ("Bedrock", "Input is too long for requested model.", None),
    (
        "Bedrock, Anthropic",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        200_000,
    ),
    (
        "OpenRouter",
        "This endpoint's maximum context length is 131,072 tokens. However, you requested 140000",
        131_072,
    ),
    (
        "Mistral",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context",
        32_768,
    ),
    (
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 200000",
        131_072,
    ),
    (
        "SGLang",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        8_192,
    ),
    ("Kimi", "Your request exceeded model token limit : 262144 (requested: 300000)", 262_144),
]


@pytest.mark.parametrize(("host", "said", "window"), OVERFLOWS)
def test_a_request_that_is_too_long(host: str, said: str, window: int | None) -> None:
    error = read(400, {"error": {"message": said, "type": "invalid_request_error"}})
    assert (error.code, error.retryable) == ("ContextOverflow", False), host
    assert (error.details or {}).get("window") == window
    assert ProviderErrors(HOST, KEY).in_stream({"message": said}).code == "ContextOverflow"


def test_a_limit_of_tokens_a_minute_is_no_long_request() -> None:
    said = "Too many tokens, please wait before trying again."
    assert read(429, {"message": said}).code == "RateLimited"
    assert ProviderErrors(HOST).in_stream({"message": said}).code != "ContextOverflow"


EMPTY_ACCOUNTS = [
    (429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}),
    (429, {"error": {"code": "1113", "message": "您的账户已欠费，请充值后重试"}}),
    (
        400,
        {
            "error": {
                "code": "Arrearage",
                "message": "Access denied, please make sure your account is in good standing.",
            }
        },
    ),
    (403, {"code": 30001, "message": "账户余额不足", "data": None}),
    (402, {"error": {"message": "Insufficient Balance"}}),
    (429, {"error": {"message": "当日免费额度已用尽"}}),
]


@pytest.mark.parametrize(("status", "body"), EMPTY_ACCOUNTS)
def test_an_empty_account(status: int, body: Any) -> None:
    error = read(status, body)
    assert (error.code, error.retryable) == ("QuotaExceeded", False)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("您当前使用该API的并发数过高，请降低并发", "concurrency"),
        ("您已达到今日调用次数限额", "day"),
        ("当前服务繁忙，请稍后再试", "overload"),
    ],
)
def test_limits_in_chinese(said: str, limit: str) -> None:
    assert (read(429, {"error": {"message": said}}).details or {})["limit"] == limit


def test_a_gateway_tells_what_the_host_behind_it_said() -> None:
    def behind(raw: Any, status: int = 400) -> ErrorInfo:
        metadata = {"provider_name": "Acme", "raw": raw}
        error = {"message": "Provider returned error", "code": status, "metadata": metadata}
        return read(status, {"error": error})

    quota = behind(json.dumps({"error": {"message": "Insufficient balance"}}), 429)
    assert quota.code == "QuotaExceeded"
    long = behind(
        json.dumps({"error": {"message": "prompt is too long: 9000 tokens > 8192 maximum"}})
    )
    assert (long.code, (long.details or {})["window"]) == ("ContextOverflow", 8192)
    plain = behind("the tool schema is not accepted")
    assert "the tool schema is not accepted" in plain.message
    assert behind(7).code == behind("{" * 9_000).code == "Provider"


def test_nobody_behind_a_gateway() -> None:
    none = read(404, {"error": {"message": "No endpoints found for acme/large.", "code": 404}})
    assert none.code == "ModelNotFound"
    for said in (
        'No endpoints found that support tool use. Try disabling "read_file".',
        "No endpoints found matching your data policy (Free model publication).",
        "No allowed providers are available for the selected model.",
    ):
        error = read(404, {"error": {"message": said, "code": 404}})
        assert (error.code, error.retryable) == ("Provider", False)
        assert "address" not in error.message


@pytest.mark.parametrize(
    ("seconds", "said"),
    [("86400", "24 hours"), ("61", "61 seconds"), ("1800", "30 minutes"), ("604800", "7 days")],
)
def test_a_long_wait_is_said_as_such(seconds: str, said: str) -> None:
    error = read(429, moonshot("rate_limit_reached_error"), retry_after=seconds)
    assert f"in {said}" in error.message
    assert "a little" not in error.message


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


@pytest.mark.parametrize("cut", [(0, 0), (1, 0), (0, 5), (3, 3)])
def test_a_piece_of_the_key_is_masked_too(cut: tuple[int, int]) -> None:
    # W14: a host may repeat the key without its first letters
    key = "Zq7-1b2c3d4e5f6g7h8i9j"
    piece = key[cut[0] : len(key) - cut[1]]
    words = ErrorWords("x", f"wrong key '{piece}', try another", 401).without(key)
    assert piece not in words.message
    assert words.message == "wrong key '***', try another"
