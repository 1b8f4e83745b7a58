"""How fast a key may ask: learnt from refusals, shared by all, fair, and never stuck."""

import asyncio
import random
from typing import Any

import pytest

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.infrastructure.providers.error_words import limit_kind, seconds_until_reset
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors
from kode_sidecar.infrastructure.providers.rate_limiter import RateLimiter
from tests.support.raw_http import HANG_CEILING


class Time:
    """A clock that only sleepers move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def limiter(time: Time) -> RateLimiter:
    return RateLimiter(time, time.sleep)


def refused(message: str, kind: str = "rate_limit_reached_error") -> ErrorInfo:
    body = f'{{"error": {{"type": "{kind}", "message": "{message}"}}}}'.encode()
    return ProviderErrors().response(429, {}, body, "m")


CONCURRENCY = (
    "Your account org-1<ak-f3t8pfk16f> request reached max organization concurrency: 2, try"
)
RPM = "Your account org-1<ak-f3t8pfk16f> request reached organization max RPM: 3, please try again"


class Crowd:
    """Requests side by side; `most` is how many there were at once."""

    def __init__(self, rate: RateLimiter) -> None:
        self._rate = rate
        self.running = self.most = 0
        self.order: list[int] = []

    async def one(self, number: int, steps: int = 3) -> None:
        async with self._rate.turn():
            self.order.append(number)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                for _ in range(steps):
                    await asyncio.sleep(0)
            finally:
                self.running -= 1


async def test_nothing_is_limited_at_first() -> None:
    crowd = Crowd(limiter(Time()))
    await asyncio.gather(*(crowd.one(n) for n in range(20)))
    assert crowd.most == 20


async def test_as_many_side_by_side_as_the_host_says() -> None:  # W9
    rate = limiter(Time())
    rate.learn(refused(CONCURRENCY))
    crowd = Crowd(rate)
    await asyncio.gather(*(crowd.one(n) for n in range(20)))
    assert crowd.most == 2
    assert crowd.order == list(range(20))


async def test_a_limit_without_a_number_is_guessed_and_tried_again_later() -> None:
    time = Time()
    rate = limiter(time)
    crowd = Crowd(rate)
    async with rate.turn(), rate.turn(), rate.turn():
        rate.learn(refused("Too many concurrent requests."))
    await asyncio.gather(*(crowd.one(n) for n in range(9)))
    assert crowd.most == 2
    time.now += 61
    crowd = Crowd(rate)
    await asyncio.gather(*(crowd.one(n) for n in range(9)))
    assert crowd.most == 9


async def test_as_many_in_a_minute_as_the_host_says() -> None:  # W9
    time = Time()
    rate = limiter(time)
    crowd = Crowd(rate)
    await asyncio.gather(*(crowd.one(n) for n in range(3)))
    rate.learn(refused(RPM))
    begun: list[float] = []
    for _ in range(4):
        async with rate.turn():
            begun.append(time.now)
    assert begun == [160.0, 160.0, 160.0, 220.0]


async def test_a_pause_is_everybodys() -> None:  # W9
    time = Time()
    rate = limiter(time)
    rate.pause(7)
    rate.pause(3)
    async with rate.turn():
        assert time.now == 107.0


async def test_giving_up_anywhere_blocks_nobody(rng: random.Random) -> None:
    rate = limiter(Time())
    rate.learn(refused(CONCURRENCY))
    crowd = Crowd(rate)
    tasks = [asyncio.create_task(crowd.one(n, rng.randrange(6))) for n in range(200)]
    for task in rng.sample(tasks, 80):
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(HANG_CEILING):
        await asyncio.gather(*tasks, return_exceptions=True)
        assert crowd.most <= 2
        async with rate.turn():
            pass


KINDS = {
    RPM: "rate",
    CONCURRENCY: "concurrency",
    "Organization Rate limit exceeded, please try again after 1 seconds": "rate",
    "request reached organization TPM rate limit, current: 9, limit: 8": "tokens",
    "request reached organization TPD rate limit, current: 9, limit: 8": "day",
    "The engine is currently overloaded": "overload",
}


@pytest.mark.parametrize(("said", "kind"), KINDS.items())
def test_the_meanings_of_429(said: str, kind: str) -> None:  # W9
    assert limit_kind(said) == kind
    error = refused(said)
    assert error.details is not None
    assert (error.code, error.details["limit"]) == ("RateLimited", kind)
    assert error.retryable is (kind != "day")
    assert "ak-f3" not in error.message  # W14


def test_an_empty_account_is_no_rate_limit() -> None:  # W9
    error = refused("You exceeded your current token quota", "exceeded_current_quota_error")
    assert (error.code, error.retryable) == ("QuotaExceeded", False)
    assert error.details is not None
    assert error.details["limit"] == "quota"


DATE = "Fri, 20 Nov 2026 10:00:00 GMT"
RESETS: list[tuple[dict[str, str], Any]] = [
    ({}, None),
    ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "9s"}, None),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, 1),
    ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "17"}, 17),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795168805", "date": DATE}, 5),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
    ({"x-ratelimit-remaining": "0"}, None),
    (
        {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-20T10:00:12Z",
            "date": DATE,
        },
        12,
    ),
]


@pytest.mark.parametrize(("headers", "seconds"), RESETS)
def test_what_headers_say(headers: dict[str, str], seconds: float | None) -> None:  # W9
    assert seconds_until_reset(headers) == seconds
