"""Enforce budgets: each request reserves the most it may cost before it is sent.

For the prompt that is several times the estimate if the host has not counted it yet; for the answer
it is `max_tokens`, lowered to what the budget allows. If too little is left for a useful answer,
nothing is sent.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from math import inf

import msgspec

from kode_sidecar.core.domain.agent_event import BudgetUpdated, Event, Notice
from kode_sidecar.core.domain.budget import NEAR, AnswerRates, Budget, BudgetScope, Prices, Quota
from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.event_parts import BudgetUse
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ResponseFailed,
    ResponseStarted,
    RetryPlanned,
    TextDelta,
    ThinkingDelta,
    ToolUseDelta,
    UsageReported,
)
from kode_sidecar.core.kernel.contracts import ModelClient, ModelRequest
from kode_sidecar.errors import invalid_at

SMALLEST_ANSWER = 256
USUAL_ANSWER = 32_768

PricesOf = Callable[[str], Prices | None]
"""Returns a model's prices, of the most expensive that may answer; None: unknown."""
SpentToday = Callable[[str], Awaitable[float]]
"""Returns what all stored sessions have cost today in a currency."""


@dataclass
class BudgetLedger:
    """The limits that the requests of one turn must meet, all of them at once."""

    currency: str
    quotas: Mapping[BudgetScope, Quota]
    rates: AnswerRates
    report: Callable[[Event], int]
    turn_id: str = ""
    reached: bool = False
    _near: set[BudgetScope] = field(default_factory=set[BudgetScope])

    @property
    def tightest(self) -> BudgetScope:
        """The scope with the least money left."""
        return min(self.quotas, key=lambda scope: self.quotas[scope].room)

    @property
    def room(self) -> float:
        """The most that a request may cost."""
        return self.quotas[self.tightest].room

    def reserve(self, amount: float) -> None:
        """Reserve an amount for a request; a negative one releases it."""
        for quota in self.quotas.values():
            quota.reserved += amount

    def pay(self, amount: float) -> None:
        """Record what a request has cost."""
        for quota in self.quotas.values():
            quota.spent += amount

    def announce(self, forecast: float = 0.0, *, last: bool = False, reached: bool = False) -> None:
        """Report the use of the budget; warn once per turn and scope that a limit is near.

        `last`: after this request, a similar one will hardly fit.
        """
        self.reached = self.reached or reached
        quotas = self.quotas
        near: list[BudgetScope] = [one for one in quotas if quotas[one].share(forecast) >= NEAR]
        if last and self.tightest not in near:
            near.append(self.tightest)
        state = "reached" if reached else "near" if near else "within"
        self.report(
            BudgetUpdated(
                turn_id=self.turn_id,
                currency=self.currency,
                state=state,
                uses=tuple(
                    BudgetUse(scope=scope, limit=quota.limit, spent=quota.spent)
                    for scope, quota in self.quotas.items()
                ),
                forecast=forecast,
            )
        )
        for scope in near:
            if scope not in self._near and not reached:
                self._near.add(scope)
                self.report(self._warning(scope, forecast))

    def _warning(self, scope: BudgetScope, forecast: float) -> Notice:
        quota = self.quotas[scope]
        text = (
            f"The budget of this {scope} is nearly used up: {quota.spent:.4f} of {quota.limit:g} "
            f"{self.currency}, and the next request will cost about {forecast:.4f}."
        )
        return Notice(turn_id=self.turn_id, code="BudgetNear", message=text, level="warning")


class BudgetedModel:
    """`ModelClient` that passes requests to another one, within the budget of their session."""

    def __init__(self, model: ModelClient, prices: PricesOf, spent_today: SpentToday) -> None:
        self._model = model
        self._prices = prices
        self._spent_today = spent_today
        self._ledgers: dict[str, BudgetLedger] = {}
        self._sessions: dict[str, tuple[Quota, AnswerRates]] = {}
        self._day = Quota(0.0)
        self._date = ""

    def missing(self, model: str) -> ErrorInfo | None:
        """See `ModelClient`."""
        return self._model.missing(model)

    def prices(self, model: str) -> Prices | None:
        """Return the prices of a model; None: unknown."""
        return self._prices(model)

    async def look_up(self, budget: Budget | None, today: str) -> None:
        """Read the cost of today if a daily limit is set. Raises KodeError `Storage`."""
        if budget is None or budget.day is None:
            return
        known = await self._spent_today(budget.currency)
        # The newest costs may not be on disk yet.
        self._day.spent = max(known, self._day.spent if today == self._date else 0.0)
        self._date = today

    def open(
        self,
        session_id: str,
        turn_id: str,
        budget: Budget | None,
        spent: Sequence[Cost],
        report: Callable[[Event], int],
    ) -> None:
        """Apply a budget to the requests of a session; `spent` is its cost so far."""
        if budget is None:
            return
        quota, rates = self._sessions.setdefault(session_id, (Quota(0.0), AnswerRates()))
        known = (cost.amount for cost in spent if cost.currency == budget.currency)
        quota.spent = max(quota.spent, sum(known))
        quotas: dict[BudgetScope, Quota] = {"turn": Quota(0.0), "session": quota, "day": self._day}
        limits = budget.limits()
        kept: dict[BudgetScope, Quota] = {}
        for scope, limit in limits.items():
            kept[scope] = quotas[scope]
            kept[scope].limit = limit
        self._ledgers[session_id] = BudgetLedger(budget.currency, kept, rates, report, turn_id)

    def sum_up(self, session_id: str) -> None:
        """Report what is spent at the end of a turn, unless a limit that was reached ended it."""
        ledger = self._ledgers.get(session_id)
        if ledger is not None and not ledger.reached:
            ledger.announce()

    def close(self, session_id: str) -> None:
        """Stop applying a budget to the requests of a session, until `open`."""
        self._ledgers.pop(session_id, None)

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `ModelClient`; a request that exceeds the budget fails with `BudgetReached`."""
        ledger = self._ledgers.get(request.cache_key)
        if ledger is None or not ledger.quotas:
            return self._model.stream(request)
        return self._stream_within(request, ledger)

    async def _stream_within(
        self, request: ModelRequest, ledger: BudgetLedger
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        prices = self._prices(request.model)
        if prices is None or prices.currency != ledger.currency:
            yield [ResponseFailed(_unknown(request.model, ledger.currency))]
            return
        cost = _RequestCost(request, prices, ledger.rates)
        ledger.announce(
            cost.forecast,
            last=not cost.fits(ledger.room - cost.forecast),
            reached=not cost.fits(ledger.room),
        )
        if not cost.fits(ledger.room):
            yield [ResponseFailed(_reached(ledger))]
            return
        async with aclosing(self._paid(request, cost, ledger)) as batches:
            async for batch in batches:
                yield batch

    async def _paid(
        self, request: ModelRequest, cost: "_RequestCost", ledger: BudgetLedger
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        reserved = cost.reserve(ledger.room)
        ledger.reserve(reserved)
        reached = False
        try:
            asked = replace(request, max_tokens=cost.max_tokens)
            async with aclosing(self._model.stream(asked)) as batches:
                async for batch in batches:
                    cost.read(batch)
                    again = any(isinstance(event, RetryPlanned) for event in batch)
                    if again and cost.so_far > 0 and not cost.fits(ledger.room + reserved):
                        reached = True
                        yield [ResponseFailed(_reached(ledger))]
                        return
                    yield batch
        finally:
            ledger.reserve(-reserved)
            ledger.pay(cost.total)
            if reached:
                ledger.announce(cost.forecast, reached=True)


class _RequestCost:
    """What one request may cost, and its cost so far, including failed attempts."""

    def __init__(self, request: ModelRequest, prices: Prices, rates: AnswerRates) -> None:
        self._prices = prices
        self._rates = rates
        size = len(msgspec.json.encode((request.system, request.messages)))
        size += sum(len(msgspec.json.encode(tool.schema)) for tool in request.tools)
        size += sum(len(tool.description) for tool in request.tools)
        self._most = request.prompt_at_most or size
        self._likely = min(request.prompt_likely or size // 4, self._most)
        self._wanted = request.max_tokens or USUAL_ANSWER
        self.forecast = rates.forecast(self._likely, prices)
        self.max_tokens = self._wanted
        self.so_far = 0.0
        self._started = False
        self._reported = False
        self._received = 0

    def fits(self, room: float) -> bool:
        """True if the budget allows an answer of useful length."""
        return self._prices.most(self._most, min(SMALLEST_ANSWER, self._wanted)) <= (
            room - self.so_far
        )

    def reserve(self, room: float) -> float:
        """Limit the answer to the room that is left; return the most the request may cost."""
        left = room - self._prices.most(self._most, 0)
        if self._prices.output > 0:
            most = int(left / self._prices.output * 1_000_000)
            self.max_tokens = min(self._wanted, most)
        return self._prices.most(self._most, self.max_tokens)

    def read(self, batch: Sequence[ModelEvent]) -> None:
        """Add the cost of arriving events."""
        for event in batch:
            match event:
                case ResponseStarted():
                    self._started = True
                case TextDelta(text) | ThinkingDelta(text) | ToolUseDelta(_, text):
                    self._received += len(text)
                case UsageReported(usage, cost):
                    self._rates.learn(usage)
                    self._reported = True
                    self.so_far += cost.amount if cost else self._estimated(usage)
                case AttemptDropped() | RetryPlanned():
                    self._drop()
                case _:
                    pass

    @property
    def total(self) -> float:
        """The final cost; estimated for attempts whose usage the host did not report."""
        self._drop()
        return self.so_far

    def _estimated(self, usage: Usage) -> float:
        """Return what it likely cost where the model that answered has no known price."""
        return self._prices.likely(usage.input_tokens, usage.cached_tokens, usage.written_tokens)

    def _drop(self) -> None:
        if self._started and not self._reported:
            self.so_far += self._prices.likely(self._likely, 0, self._received // 2)
        self._started = self._reported = False
        self._received = 0


def stricter(own: Budget | None, asked: Budget | None) -> Budget | None:
    """Combine both budgets. Raises KodeError `InvalidParams` for bad limits or currencies."""
    if asked is not None and not re.fullmatch("[A-Z]{3}", asked.currency):
        raise invalid_at("$.budget.currency", "write three capital letters, such as USD.")
    for scope, limit in asked.limits().items() if asked is not None else ():
        if not 0 < limit < inf:
            raise invalid_at(f"$.budget.{scope}", "not above 0.")
    if own is None or asked is None:
        return own or asked
    if own.currency != asked.currency:
        text = f"the budget of the user's settings is in {own.currency}."
        raise invalid_at("$.budget.currency", text)
    limits = dict(own.limits())
    for scope, limit in asked.limits().items():
        limits[scope] = min(limit, limits.get(scope, limit))
    return Budget(currency=own.currency, **limits)


def _reached(ledger: BudgetLedger) -> ErrorInfo:
    scope = ledger.tightest
    quota = ledger.quotas[scope]
    return failure(
        "BudgetReached",
        f"The budget of this {scope} has no room for another request: {quota.spent:.4f} of "
        f"{quota.limit:g} {ledger.currency} are spent. Raise `budget` in your config.yaml to "
        "go on.",
        reason=scope,
    )


def _unknown(model: str, currency: str) -> ErrorInfo:
    return failure(
        "BudgetReached",
        f"A budget in {currency} is set, and what {model} costs in {currency} is not known, so it "
        "is not asked. Set the model's `price` in your config.yaml, or a budget in its currency.",
        reason="no_price",
    )
