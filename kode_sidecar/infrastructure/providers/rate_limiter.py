"""Decides when to send requests: within the host's rate limits, and again after a failure."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.infrastructure.http.request import STALLED

# A limit that we guessed, not the host named, is dropped after this long.
_GUESS_HOLDS = 60.0
_MINUTE = 60.0
_WORTH_SAYING = 1.0
_MOST_REMEMBERED = 10_000
MAX_RETRIES = 3
MAX_RETRY_AFTER = 60.0
"""Seconds; a host that asks for more is reported instead of waited for."""
# Seconds between two requests to a host that is loading its model.
_LEAST_POLL, _MOST_POLL = 1.0, 10.0
_SHORTEST_WAIT = 10.0
# An empty answer is usually empty again, and each one costs money.
_MAX_RETRIES_OF = {"EmptyAnswer": 2}


@dataclass(frozen=True)
class RequestDelay:
    """Why a request has to wait: for `seconds` if that is known, for one of `at_once` slots."""

    seconds: float | None = None
    per_minute: int | None = None
    at_once: int | None = None


class RateLimiter:
    """Lets requests go in order, as many in parallel and per minute as the host allows.

    There is no limit before the host's first refusal. `now` and `sleep` count seconds.
    """

    def __init__(
        self, now: Callable[[], float], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._running = self._answering = 0
        self._at_once: int | None = None
        self._guessed_until: float | None = None
        self._per_minute: int | None = None
        self._begun: deque[float] = deque(maxlen=_MOST_REMEMBERED)
        self._not_before = now()
        self._line: deque[asyncio.Event] = deque()

    def hold(self) -> RequestDelay | None:
        """Return why a request that comes now has to wait; None if it goes at once."""
        if not self._has_room():
            return RequestDelay(at_once=self._at_once)
        if (seconds := self._seconds_to_go()) >= _WORTH_SAYING:
            return RequestDelay(seconds, self._per_minute)
        return RequestDelay() if self._line else None

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Callable[[], None]]:
        """Wait for this request's turn, and hold its slot until its answer has ended.

        Call what it yields once the answer has begun.
        """
        await self._wait_in_line()
        self._running += 1
        begun = 0

        def begin() -> None:
            nonlocal begun
            begun = 1
            self._answering += 1

        try:
            yield begin
        finally:
            self._running -= 1
            self._answering -= begun
            self._wake_first()

    def learn_queue(self) -> bool:
        """Learn the limit from a request that got no answer while others did; True if new."""
        if not self._answering or self._at_once == self._answering:
            return False
        self._at_once, self._guessed_until = self._answering, None
        return True

    def learn(self, error: ErrorInfo) -> None:
        """Learn the host's limits from the refusal of a request that holds a slot."""
        said = error.details or {}
        if per_minute := said.get("perMinute"):
            self._per_minute = per_minute
        if at_once := said.get("atOnce"):
            self._at_once, self._guessed_until = at_once, None
        elif said.get("limit") == "concurrency":
            # `_running` includes the refused request; the others were not refused.
            self._at_once = max(1, min(self._running - 1, self._at_once or self._running))
            self._guessed_until = self._now() + _GUESS_HOLDS

    def pause(self, seconds: float) -> None:
        """RequestDelay all requests back for so many seconds."""
        self._not_before = max(self._not_before, self._now() + seconds)

    async def _wait_in_line(self) -> None:
        """Wait first come, first served; a cancelled wait lets the next one go."""
        place = asyncio.Event()
        self._line.append(place)
        try:
            while True:
                if self._line[0] is not place or not self._has_room():
                    place.clear()
                    await place.wait()
                elif (seconds := self._seconds_to_go()) > 0:
                    await self._sleep(seconds)
                else:
                    break
            self._begun.append(self._now())
        finally:
            self._line.remove(place)
            self._wake_first()

    def _has_room(self) -> bool:
        if self._guessed_until is not None and self._now() > self._guessed_until:
            self._at_once = self._guessed_until = None
        return self._at_once is None or self._running < self._at_once

    def _seconds_to_go(self) -> float:
        seconds = self._not_before - self._now()
        count = self._per_minute
        if count is not None and len(self._begun) >= count:
            seconds = max(seconds, self._begun[-count] + _MINUTE - self._now())
        return seconds

    def _wake_first(self) -> None:
        if self._line:
            self._line[0].set()


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential delays with full jitter, in seconds; `random` returns numbers in [0, 1).

    No attempt begins later than `budget` after the first one. A silent host is given up `stalled`
    seconds after the request.
    """

    random: Callable[[], float]
    base: float = 0.5
    overloaded_base: float = 4.0
    longest: float = 20.0
    budget: float = 300.0
    stalled: float = 120.0

    def waiting(self, seconds: float) -> "RetryPolicy":
        """Return the policy for a host that may be silent for `seconds`."""
        return replace(self, stalled=max(self.stalled, seconds))

    def next_delay(
        self, attempt: int, error: ErrorInfo, shown: int, elapsed: float = 0.0
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None for no further attempt.

        `attempt` counts the failed attempts, `shown` those of which the user saw something: after
        the second of those there is no further attempt. `elapsed` is the time since the first
        attempt began.
        """
        if is_loading(error):
            delay = max(_LEAST_POLL, min(elapsed / 5, _MOST_POLL))
        else:
            delay = self._delay(attempt, error, shown)
        if delay is None or elapsed + delay > self.budget:
            return None
        if is_stall(error) and elapsed + delay + _SHORTEST_WAIT > self.stalled:
            return None
        return delay

    def patience(self, error: ErrorInfo | None, elapsed: float) -> float | None:
        """Return the seconds the next attempt may be silent after this failure; None: as usual."""
        if error is None or not is_stall(error):
            return None
        return self.stalled - elapsed

    def _delay(self, attempt: int, error: ErrorInfo, shown: int) -> float | None:
        most = min(MAX_RETRIES, _MAX_RETRIES_OF.get(error.code, MAX_RETRIES))
        if not error.retryable or attempt > most or shown > 1:
            return None
        if error.retry_after_ms is not None:
            seconds = error.retry_after_ms / 1000
            return seconds if seconds <= MAX_RETRY_AFTER else None
        overloaded = bool(error.details and error.details.get("limit") == "overload")
        base = self.overloaded_base if overloaded else self.base
        return self.random() * min(self.longest, base * 2 ** (attempt - 1))


def is_stall(error: ErrorInfo) -> bool:
    """Return whether an attempt failed because its host was silent."""
    return STALLED in (error.details or {})


def is_loading(error: ErrorInfo) -> bool:
    """Return whether an attempt failed because its host is still loading the model."""
    return (error.details or {}).get("limit") == "loading"
