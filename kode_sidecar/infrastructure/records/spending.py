"""Reads from the records of messages how many tokens each answer used, and sums them up."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import Cost, LostUsage, Message, Usage
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS

# Most lines are prompts and tool results: they are skipped without decoding.
_MARK = b'"usage"'


_COUNTS = Usage.__struct_fields__  # their names on disk


class _Record(Struct, frozen=True):
    """The fields of a message that are read here."""

    id: str
    usage: dict[str, Any] | None = None
    created_at: str | None = None
    meta: dict[str, Any] | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    lost: dict[str, Any] | None = None
    model: str | None = None


class Spent(Struct, frozen=True, kw_only=True):
    """The usage and cost of one answer, including its failed attempts.

    `turn_id` is empty for requests outside turns.
    """

    message_id: str
    turn_id: str
    created_at: str
    model: str | None
    usage: Usage
    cost: Cost | None
    cost_usd: float | None


def read_spending(records: Iterable[bytes]) -> list[Spent]:
    """Return every answer with a known usage; damaged records are skipped."""
    decode = msgspec.json.Decoder(_Record).decode
    found: list[Spent] = []
    for line in records:
        if _MARK not in line:
            continue
        try:
            record = decode(line)
        except DECODE_ERRORS:
            continue
        if record.usage is not None or record.lost is not None:
            found.append(_spent(record))
    return found


def _spent(record: _Record) -> Spent:
    used = LostUsage(
        usage=_usage(record.usage or {}), cost=record.cost, cost_usd=record.cost_usd
    ).plus(_lost(record.lost))
    return Spent(
        message_id=record.id,
        turn_id=str((record.meta or {}).get("turnId", "")),
        created_at=record.created_at or "",
        model=record.model,
        usage=used.usage,
        cost=used.cost,
        cost_usd=used.cost_usd,
    )


def _lost(record: dict[str, Any] | None) -> LostUsage | None:
    if record is None:
        return None
    try:
        known = {name: record[name] for name in ("cost", "cost_usd") if name in record}
        return LostUsage(
            usage=_usage(record.get("usage") or {}),
            cost=msgspec.convert(known.get("cost"), Cost | None),
            cost_usd=msgspec.convert(known.get("cost_usd"), float | None),
        )
    except msgspec.ValidationError:
        return None


def _usage(counts: dict[str, Any]) -> Usage:
    return Usage(**{name: counts[name] for name in _COUNTS if isinstance(counts.get(name), int)})


class Totals:
    """Sums of tokens and cost. Amounts in two currencies have no sum: `cost` is then None.

    `spent` is the usage of scouts, whose messages are stored elsewhere.
    """

    def __init__(self, messages: Iterable[Message] = (), spent: Iterable[Spent] = ()) -> None:
        self.usage = Usage()
        self.cost_usd: float | None = None
        self.estimated = False
        self._amounts: dict[str, float] = {}
        for message in messages:
            self.add_message(message)
        for answer in spent:
            self.add_answer(answer.usage, answer.cost, answer.cost_usd)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """The sum in each currency, sorted by currency."""
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
        """Add one answer, and its failed attempts."""
        self.add_answer(message.usage, message.cost, message.cost_usd)
        if (lost := message.lost) is not None:
            self.add_answer(lost.usage, lost.cost, lost.cost_usd)
            self.estimated = self.estimated or lost.estimated

    def add(self, other: "Totals") -> None:
        """Add other totals."""
        self.add_answer(other.usage, None, other.cost_usd)
        for currency, amount in other._amounts.items():
            self._amounts[currency] = self._amounts.get(currency, 0.0) + amount

    def add_answer(self, usage: Usage | None, cost: Cost | None, cost_usd: float | None) -> None:
        """Add the known usage and cost of one answer."""
        if usage is not None:
            self.usage = self.usage.plus(usage)
        if cost is not None:
            self._amounts[cost.currency] = self._amounts.get(cost.currency, 0.0) + cost.amount
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
