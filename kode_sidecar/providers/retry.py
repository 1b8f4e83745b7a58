"""When a failed attempt is tried again, and after how long. Sans-IO."""

from collections.abc import Callable
from dataclasses import dataclass

from kode_sidecar.domain.error_info import ErrorInfo

MAX_RETRIES = 3
MAX_RETRY_AFTER = 60.0
"""Seconds; a host that asks for more is reported instead of waited for."""

_NEVER = frozenset({400, 401, 402, 403, 404, 413, 422})
# An answer without content mostly comes again the same way, and every one is paid.
_MAX_RETRIES_OF = {"EmptyAnswer": 2}


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential delays with full jitter; `random` gives numbers in [0, 1). Seconds.

    `budget` is how long after the first attempt began another one may still begin.
    """

    random: Callable[[], float]
    base: float = 0.5
    overloaded_base: float = 4.0
    longest: float = 20.0
    budget: float = 300.0

    def next_delay(
        self, attempt: int, error: ErrorInfo, shown: int, elapsed: float = 0.0
    ) -> float | None:
        """Seconds to wait before the next attempt; None when there is none.

        `attempt` counts the failed attempts, `shown` those among them of which the user saw
        something: of those only the first may be followed by another. `elapsed` is the time
        since the first one began.
        """
        delay = self._delay(attempt, error, shown)
        return None if delay is None or elapsed + delay > self.budget else delay

    def _delay(self, attempt: int, error: ErrorInfo, shown: int) -> float | None:
        most = min(MAX_RETRIES, _MAX_RETRIES_OF.get(error.code, MAX_RETRIES))
        if not error.retryable or error.http_status in _NEVER or attempt > most or shown > 1:
            return None
        if error.retry_after_ms is not None:
            seconds = error.retry_after_ms / 1000
            return seconds if seconds <= MAX_RETRY_AFTER else None
        overloaded = bool(error.details and error.details.get("limit") == "overload")
        base = self.overloaded_base if overloaded else self.base
        return self.random() * min(self.longest, base * 2 ** (attempt - 1))
