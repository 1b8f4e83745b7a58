"""What requests may cost: limits, prices, and what is left of each limit. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from msgspec import Struct

from kode_sidecar.core.domain.message import Cost, Usage

BudgetScope = Literal["turn", "session", "day"]
NEAR = 0.8
"""The share of a limit at which the user is notified."""
_PER = 1_000_000
AMOUNT = r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]{3})\s*$"
"""How people write an amount: `20CNY`."""


def read_amount(text: str) -> Cost:
    """Parse an amount such as `20CNY`. Raises ValueError for anything else and for zero."""
    found = re.match(AMOUNT, text)
    if found is None or float(found[1]) <= 0:
        raise ValueError(f"{text}: write an amount, such as 20CNY.")
    return Cost(float(found[1]), found[2].upper())


class Budget(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn, a session, and all sessions of a day may cost; a missing limit is no limit.

    `currency` is three capital letters, such as `USD`; limits are above zero.
    """

    currency: str
    turn: float | None = None
    session: float | None = None
    day: float | None = None

    def limits(self) -> Mapping[BudgetScope, float]:
        """Return the limits that are given."""
        found: dict[BudgetScope, float | None] = {
            "turn": self.turn,
            "session": self.session,
            "day": self.day,
        }
        return {scope: limit for scope, limit in found.items() if limit is not None}


class Prices(NamedTuple):
    """Prices of a million tokens; `written` is for those written to the host's cache."""

    currency: str
    fresh: float
    cached: float
    output: float
    written: float

    def most(self, prompt: int, output: int) -> float:
        """Return the highest possible cost of a request."""
        dearest = max(self.fresh, self.written, self.cached)
        return (prompt * dearest + output * self.output) / _PER

    def likely(self, prompt: int, cached: int, output: int) -> float:
        """Return the likely cost of a request with `cached` of its tokens in the cache."""
        fresh = max(self.fresh, self.written) * (prompt - cached)
        return (fresh + cached * self.cached + output * self.output) / _PER


@dataclass
class Quota:
    """One limit. `reserved` is for requests under way."""

    limit: float
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def room(self) -> float:
        """What is left."""
        return self.limit - self.spent - self.reserved

    def share(self, more: float) -> float:
        """Return the share of the limit that would be used with `more`; 1.0 is all."""
        return (self.spent + self.reserved + more) / self.limit


@dataclass
class AnswerRates:
    """Token rates of a session's answers so far, used to forecast the next one."""

    outputs: int = 0
    answers: int = 0
    last_size: int = 0
    cached_share: float = 0.0
    _first_guess: int = field(default=500, repr=False)

    def learn(self, usage: Usage) -> None:
        """Add the usage that a host counted."""
        self.outputs += usage.written_tokens
        self.answers += 1
        if self.last_size:
            self.cached_share = min(usage.cached_tokens / self.last_size, 1.0)
        self.last_size = usage.input_tokens

    def forecast(self, prompt: int, prices: Prices) -> float:
        """Return the likely cost of a request with `prompt` tokens."""
        output = round(self.outputs / self.answers) if self.answers else self._first_guess
        cached = min(round(self.last_size * self.cached_share), prompt)
        return prices.likely(prompt, cached, output)
