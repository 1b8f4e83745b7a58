"""When a failed attempt is tried again."""

import pytest

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors
from kode_sidecar.infrastructure.providers.rate_limiter import RetryPolicy

LONGEST = RetryPolicy(random=lambda: 1.0)


def error(code: str = "Provider", **fields: object) -> ErrorInfo:
    given: dict[str, object] = {"category": "provider", "retryable": True, **fields}
    return ErrorInfo(code=code, message="boom", **given)  # type: ignore[arg-type]


def test_three_retries_with_growing_delays() -> None:  # W9
    delays = [LONGEST.next_delay(attempt, error(), 0) for attempt in range(1, 5)]
    assert delays == [0.5, 1.0, 2.0, None]


def test_full_jitter() -> None:
    assert RetryPolicy(random=lambda: 0.0).next_delay(3, error(), 0) == 0.0
    assert RetryPolicy(random=lambda: 0.5).next_delay(3, error(), 0) == 1.0


def test_an_overloaded_host_gets_more_time() -> None:
    overloaded = error("RateLimited", details={"limit": "overload"})
    assert [LONGEST.next_delay(n, overloaded, 0) for n in (1, 2, 3)] == [4.0, 8.0, 16.0]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_never_for_what_stays_wrong(status: int) -> None:  # W9
    refused = ProviderErrors().response(status, {}, b"boom", "m")
    assert LONGEST.next_delay(1, refused, 0) is None


def test_a_call_that_nobody_could_read_is_asked_for_again() -> None:
    body = b'{"error":{"code":"tool_use_failed","message":"Failed to call a function."}}'
    refused = ProviderErrors().response(400, {}, body, "m")
    assert (refused.code, refused.retryable) == ("IncompleteAnswer", True)
    assert LONGEST.next_delay(1, refused, 0) == 0.5


@pytest.mark.parametrize(
    ("status", "body", "said", "again"),
    [
        (500, b"boom", "false", False),
        (429, b"boom", "false", False),
        (400, b"boom", "true", True),
        (400, b"boom", "perhaps", False),
        (401, b"boom", "true", False),
        (402, b"boom", "true", False),
    ],
)
def test_the_host_says_whether_to_ask_again(
    status: int, body: bytes, said: str, again: bool
) -> None:
    refused = ProviderErrors().response(status, {"x-should-retry": said}, body, "m")
    assert refused.retryable is again
    assert (LONGEST.next_delay(1, refused, 0) is not None) is again


def test_a_silent_host_is_given_up_within_two_minutes() -> None:
    silent = failure("Network", "boom", silentSeconds=60)
    assert LONGEST.next_delay(1, silent, 0, elapsed=60.0) == 0.5
    assert LONGEST.patience(silent, 60.5) == 59.5
    assert LONGEST.next_delay(2, silent, 0, elapsed=120.0) is None
    assert LONGEST.patience(error(), 60.5) is None
    patient = RetryPolicy(random=lambda: 1.0, stalled=600.0)
    assert patient.next_delay(1, silent, 0, elapsed=120.0) == 0.5


@pytest.mark.parametrize("code", ["QuotaExceeded", "ContentFiltered", "AuthRequired", "TooLarge"])
def test_never_for_what_needs_the_user(code: str) -> None:
    assert LONGEST.next_delay(1, failure(code, "boom"), 0) is None


def test_the_host_says_how_long() -> None:  # W9
    assert LONGEST.next_delay(1, error(retry_after_ms=7_000), 0) == 7.0
    assert LONGEST.next_delay(1, error(retry_after_ms=60_000), 0) == 60.0
    assert LONGEST.next_delay(1, error(retry_after_ms=60_001), 0) is None


def test_one_more_attempt_once_something_was_shown() -> None:  # W9
    assert LONGEST.next_delay(1, error(), 1) == 0.5
    assert LONGEST.next_delay(2, error(), 2) is None


def test_an_empty_answer_is_asked_for_twice_more() -> None:  # W9
    empty = failure("EmptyAnswer", "boom")
    assert [LONGEST.next_delay(n, empty, 0) for n in (1, 2, 3)] == [0.5, 1.0, None]


def test_no_attempt_begins_after_the_budget() -> None:  # W9
    assert LONGEST.next_delay(1, error(), 0, elapsed=299.5) == 0.5
    assert LONGEST.next_delay(1, error(), 0, elapsed=299.6) is None
    assert LONGEST.next_delay(1, error(retry_after_ms=60_000), 0, elapsed=250) is None
