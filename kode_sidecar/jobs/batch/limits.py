"""What holds a batch back: the rate limits of its hosts, and its budget."""

from collections.abc import Callable, Iterable

from kode_sidecar.core.domain.budget import read_amount
from kode_sidecar.core.domain.message import Cost
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch.task_log import Outcome

_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 900.0


class Pace:
    """Decides how many runs of one model go at once: fewer after a refusal, then slowly more.

    Each run itself obeys its host's limits. This class is for limits that outlast a run, and for
    runs that do not know of each other.
    """

    def __init__(self, jobs: int, now: Callable[[], float]) -> None:
        self._jobs = jobs
        self._now = now
        self._at_once = float(jobs)
        self._not_before = now()
        self._pause = _FIRST_PAUSE
        self.running = 0

    def begun(self) -> None:
        """Count a run that begins."""
        self.running += 1

    def ended(self, code: str) -> bool:
        """Count a run that ended with error `code`, or ""; return True if it was refused alone."""
        self.running -= 1
        if code != "RateLimited":
            self._at_once = min(self._jobs, self._at_once + 1 / max(1.0, self._at_once))
            self._pause = _FIRST_PAUSE
            return False
        alone = self._at_once <= 1
        if self._now() >= self._not_before:  # simultaneous refusals count as one
            self._at_once = max(1.0, self._at_once / 2)
            self._not_before = self._now() + self._pause
            self._pause = min(_LONGEST_PAUSE, self._pause * 2)
        return alone

    def seconds_to_go(self) -> float | None:
        """Return how many seconds the next run must wait; None if others must end first."""
        if self.running >= int(self._at_once):
            return None
        return max(0.0, self._not_before - self._now())


class BatchBudget:
    """The amount that a batch may cost.

    The cost of a run is unknown before its end. So each run in progress counts as much as the
    dearest run so far, and the first one runs alone. The budget can be exceeded only by what
    simultaneous runs cost beyond that.
    """

    def __init__(self, limit: Cost | None, outcomes: Iterable[Outcome] = ()) -> None:
        self._limit = limit
        self._spent = self._most = 0.0
        self.unknown = False
        self._billed = set[str]()
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Add the cost of a run."""
        if self._limit is None:
            return
        amount = amount_in(self._limit.currency, outcome)
        self._billed |= {cost.currency for cost in outcome.costs}
        self.unknown = self.unknown or (amount is None and outcome.usage is not None)
        self._spent += amount or 0.0
        self._most = max(self._most, amount or 0.0)

    def allows(self, running: int) -> bool:
        """Return whether one more run may begin beside the `running` ones."""
        if self._limit is None:
            return True
        if self.unknown:
            return False
        if self._most == 0.0:
            return running == 0
        return self._spent + self._most * (running + 1) <= self._limit.amount

    def reason(self) -> str:
        """Return why no more runs may begin."""
        assert self._limit is not None, "asked only where there is a budget"
        currency = self._limit.currency
        if self.unknown:
            others = sorted(self._billed - {currency})
            what, way = "of a model without a known price", "begin again without --budget"
            if others:
                what, way = f"billed in {' and '.join(others)}", f"give one in {others[-1]}"
            return f"a run was {what}, so a budget in {currency} cannot be kept: {way}"
        return (
            f"the budget of {self._limit.amount:g} {currency} is used up: {self._spent:.4f} spent, "
            f"and one more may cost {self._most:.4f}: give a larger one with --budget"
        )


def amount_in(currency: str, outcome: Outcome) -> float | None:
    """Return what a run cost in a currency; None if part of it has no price in that currency."""
    others = [cost for cost in outcome.costs if cost.currency != currency]
    if others or (not outcome.costs and outcome.cost_usd is not None):
        return outcome.cost_usd if currency == "USD" else None
    return sum(cost.amount for cost in outcome.costs) if outcome.costs else None


def read_budget(text: str) -> Cost:
    """Return the amount of `20CNY`. Raises KodeError `ConfigInvalid`."""
    try:
        return read_amount(text)
    except ValueError as error:
        raise KodeError("ConfigInvalid", f"--budget {error}") from None
