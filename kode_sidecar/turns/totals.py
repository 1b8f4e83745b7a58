"""What a turn or a session has used so far."""

from collections.abc import Iterable

from kode_sidecar.domain.message import Cost, Message, Usage
from kode_sidecar.records.spending import Spent


class Totals:
    """Tokens and cost. Amounts in two currencies have no sum: `cost` is then None.

    `spent` is what scouts used, whose messages are kept elsewhere.
    """

    def __init__(self, messages: Iterable[Message] = (), spent: Iterable[Spent] = ()) -> None:
        self.usage = Usage()
        self.cost_usd: float | None = None
        self._amounts: dict[str, float] = {}
        for message in messages:
            self.add_message(message)
        for answer in spent:
            self.add_answer(answer.usage, answer.cost, answer.cost_usd)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """The sum in each currency, by its name."""
        return tuple(
            Cost(amount=self._amounts[name], currency=name) for name in sorted(self._amounts)
        )

    @property
    def cost(self) -> Cost | None:
        """The sum in the provider's currency, if there is one."""
        if len(self._amounts) != 1:
            return None
        ((currency, amount),) = self._amounts.items()
        return Cost(amount=amount, currency=currency)

    def add_message(self, message: Message) -> None:
        """Count one answer."""
        self.add_answer(message.usage, message.cost, message.cost_usd)

    def add(self, other: "Totals") -> None:
        """Count all of another."""
        self.add_answer(other.usage, None, other.cost_usd)
        for currency, amount in other._amounts.items():
            self._amounts[currency] = self._amounts.get(currency, 0.0) + amount

    def add_answer(self, usage: Usage | None, cost: Cost | None, cost_usd: float | None) -> None:
        """Count what is known of one answer."""
        if usage is not None:
            self.usage = self.usage.plus(usage)
        if cost is not None:
            self._amounts[cost.currency] = self._amounts.get(cost.currency, 0.0) + cost.amount
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
