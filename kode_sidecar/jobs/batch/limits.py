"""What holds a batch back: the rate limits of its hosts, and its budget."""

from collections.abc import Callable, Iterable

from kode_sidecar.core.domain.budget import read_amount
from kode_sidecar.core.domain.message import Cost
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch.task_log import Outcome

_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 900.0


class Pace:
    """How many runs of one model go side by side: fewer after a refusal, slowly more again.

    Each run keeps to what its host says while it lasts; this is for limits that outlast a run, and
    for what runs cannot know of each other.
    """

    def __init__(self, jobs: int, now: Callable[[], float]) -> None:
        self._jobs = jobs
        self._now = now
        self._at_once = float(jobs)
        self._not_before = now()
        self._pause = _FIRST_PAUSE
        self.running = 0

    def begun(self) -> None:
        """Count one that begins."""
        self.running += 1

    def ended(self, code: str) -> bool:
        """Count one that ended with that error, or ""; return whether it was refused alone."""
        self.running -= 1
        if code != "RateLimited":
            self._at_once = min(self._jobs, self._at_once + 1 / max(1.0, self._at_once))
            self._pause = _FIRST_PAUSE
            return False
        alone = self._at_once <= 1
        if self._now() >= self._not_before:  # others were refused at the same time: that is one
            self._at_once = max(1.0, self._at_once / 2)
            self._not_before = self._now() + self._pause
            self._pause = min(_LONGEST_PAUSE, self._pause * 2)
        return alone

    def seconds_to_go(self) -> float | None:
        """Return how long the next one must wait; None while the others must end first."""
        if self.running >= int(self._at_once):
            return None
        return max(0.0, self._not_before - self._now())


class BatchBudget:
    """An amount that a batch may cost.

    Nobody knows what a run will cost, so each that is begun is counted with the most that one has
    cost so far, and the first one runs alone. What the runs of a moment cost beyond that is the
    most by which the budget can be passed.
    """

    def __init__(self, limit: Cost | None, outcomes: Iterable[Outcome] = ()) -> None:
        self._limit = limit
        self._spent = self._most = 0.0
        self.unknown = False
        self._billed = set[str]()
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: Outcome) -> None:
        """Count what a run cost."""
        if self._limit is None:
            return
        amount = amount_in(self._limit.currency, outcome)
        self._billed |= {cost.currency for cost in outcome.costs}
        self.unknown = self.unknown or (amount is None and outcome.usage is not None)
        self._spent += amount or 0.0
        self._most = max(self._most, amount or 0.0)

    def allows(self, running: int) -> bool:
        """Return whether one more may begin beside those that run."""
        if self._limit is None:
            return True
        if self.unknown:
            return False
        if self._most == 0.0:
            return running == 0
        return self._spent + self._most * (running + 1) <= self._limit.amount

    def told(self) -> str:
        """Return why nothing more may begin."""
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
    """Return what a run cost in a currency; None where a part has no price in it."""
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
