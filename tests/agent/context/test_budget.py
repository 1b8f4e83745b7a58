"""No request passes a budget, over two hundred turns, with the prices of three hosts. F11"""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kode_sidecar.agent.context.budget import BudgetedModel, stricter
from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.agent.context.fitting import fit
from kode_sidecar.agent.turns.context import LearnedRates, TokenMeter
from kode_sidecar.core.domain.agent_event import BudgetUpdated, Event, Notice
from kode_sidecar.core.domain.budget import Budget, Prices
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Cost, Message, Role, TextBlock, Usage
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    RetryPlanned,
    TextDelta,
    UsageReported,
)
from kode_sidecar.core.kernel.contracts import ModelRequest
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import (
    BUILTIN_PROVIDERS,
    LOGICAL_MODELS,
)
from kode_sidecar.servers.boot.provider_setup import likely_prices

_PIECES = re.compile(r"[a-zA-Z]+|[0-9]+|[^a-zA-Z0-9\s]+")
CNY = Prices("CNY", 4.0, 1.0, 16.0, 4.0)


def host_prices() -> dict[str, Prices]:
    """Kimi's and Anthropic's, where writing to the cache costs more, and one that bills in CNY."""
    found: dict[str, Prices] = {"cny": CNY}
    for provider in BUILTIN_PROVIDERS.values():
        for model in provider.models:
            prices = likely_prices([model])
            if prices is not None and provider.name in ("kimi", "anthropic"):
                found.setdefault(provider.name, prices)
    assert len(found) == 3
    return found


def test_a_cache_for_an_hour_counts_where_the_user_asks_for_one() -> None:
    claude = BUILTIN_PROVIDERS["anthropic"].model("claude-opus-5")
    asks = replace(claude, body={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
    found = [likely_prices([one]) for one in (claude, asks)]
    assert [prices and prices.written for prices in found] == [6.25, 10.0]


def test_a_candidate_without_a_price_has_the_highest_of_the_others() -> None:
    kimi = BUILTIN_PROVIDERS["kimi-intl"]
    names = LOGICAL_MODELS["ide-chat"]
    asked = [kimi.model(name) for name in names]
    assert kimi.listed(names[-1]) is None
    assert likely_prices(asked) is not None
    assert likely_prices(asked) == likely_prices(asked[:1])
    assert likely_prices(asked[::-1]) == likely_prices([kimi.model("kimi-k3")])
    assert likely_prices(asked[-1:]) is None


@dataclass
class Host:
    """Counts tokens in its own way, bills exactly, and never answers longer than it was told."""

    prices: Prices
    random: Random
    bills: list[float] = field(default_factory=list[float])
    seen: list[ModelRequest] = field(default_factory=list[ModelRequest])
    breaks: bool = False
    scale: float = 1.0
    _last: tuple[int, int] = (0, 0)

    def missing(self, model: str) -> ErrorInfo | None:
        return None

    def count(self, message: Message) -> int:
        """Words by eight letters, numbers by three digits, marks by two: its own way."""
        total = 5.0
        for block in message.content:
            assert isinstance(block, TextBlock)
            pieces = _PIECES.findall(block.text)
            total += self.scale * sum(
                ceil(len(piece) / (3 if piece.isdigit() else 8 if piece.isalpha() else 2))
                for piece in pieces
            )
        return round(total)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        self.seen.append(request)
        prompt = 90 + round(len(request.system) / 4.2) + sum(map(self.count, request.messages))
        size, cached, amount = 0, 0, 0.0
        for attempt in range(2 if self.breaks else 1):
            assert request.max_tokens is not None
            size = min(self.random.randint(150, 450), request.max_tokens)
            cached = min(self._last[0], prompt) if self._last[1] < len(request.messages) else 0
            amount = self.prices.likely(prompt, cached, size)
            self._last = (prompt, len(request.messages))
            self.bills.append(amount)
            yield [ResponseStarted("r", "m")]
            yield [TextDelta("so it said " * (size // 3))]
            if self.breaks and attempt == 0:
                yield [AttemptDropped("cut"), RetryPlanned("cut", 0.0, 2)]
        usage = Usage(
            input_tokens=prompt,
            cached_tokens=cached,
            output_tokens=size,
            total_tokens=prompt + size,
        )
        yield [UsageReported(usage, Cost(amount, self.prices.currency)), ResponseFinished("stop")]


class Talk:
    """A session as its turns see it: real sizes, real fitting, a scripted user."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.random = random
        self.meter = TokenMeter(LearnedRates())
        self.messages: list[Message] = []
        self.prompt = PromptContext(name, "m", "You are a careful assistant. " * 60)

    def say(self, role: Role, content: str, **known: Any) -> Message:
        message = Message(
            id=f"{self.name}-{len(self.messages)}",
            session_id=self.name,
            role=role,
            content=(TextBlock(text=content),),
            **known,
        )
        self.messages.append(message)
        return message

    def material(self) -> str:
        """Prose, code and digits, from little to much."""
        kind = self.random.choice(("prose", "prose", "code", "digits"))
        words = {"prose": "the quick brown fox ", "code": "if (a[i] > b) { c(); }\n"}
        size = self.random.choice((5, 40, 200))
        return words.get(kind, "8316520974") * size

    async def ask(self, model: BudgetedModel) -> ErrorInfo | None:
        fitted = fit(self.prompt.request(self.messages, (), "auto"), 200_000, self.meter.estimate)
        said, usage = "", None
        async for batch in model.stream(fitted.request):
            for event in batch:
                match event:
                    case ResponseFailed(error):
                        return error
                    case TextDelta(more):
                        said += more
                    case AttemptDropped():
                        said = ""
                    case UsageReported(reported):
                        usage = reported
                    case _:
                        pass
        message = self.say("assistant", said or "-", usage=usage)
        self.meter.answered(fitted.request, fitted.size, message)
        return None


@pytest.mark.parametrize("host_name", ["kimi", "anthropic", "cny"])
async def test_no_request_passes_a_budget_and_the_forecast_is_near_the_bill(
    host_name: str, record_property: Any
) -> None:
    random = Random(f"{host_name} 7")
    prices = host_prices()[host_name]
    host = Host(prices, random, scale={"kimi": 0.92, "anthropic": 1.1}.get(host_name, 1.0))
    day_spent, reported = 0.0, list[Event]()

    async def today(_currency: str) -> float:
        return day_spent

    model = BudgetedModel(host, lambda _: prices, today)
    day = Budget(currency=prices.currency, day=prices.most(900_000, 30_000))
    turns = refused = 0
    forecast = 0.0
    for number in range(20):
        talk, session_bills = Talk(f"s{number}", random), list[float]()
        session = prices.most(random.choice((20_000, 60_000, 400_000)), 6_000)
        for _ in range(10):
            turns += 1
            turn = prices.most(random.choice((9_000, 25_000, 120_000)), 2_000)
            budget = stricter(day, Budget(currency=prices.currency, turn=turn, session=session))
            await model.look_up(budget, "2026-01-01")
            before = len(host.bills)
            spent = [Cost(sum(session_bills), prices.currency)]
            model.open(talk.name, f"t{turns}", budget, spent, _seen(reported))
            talk.say("user", talk.material())
            for _ in range(random.randint(1, 4)):
                error = await talk.ask(model)
                bills = host.bills[before:]
                assert sum(bills) <= turn
                assert sum(session_bills) + sum(bills) <= session
                assert sum(host.bills) <= day.limits()["day"]
                if error is not None:
                    assert error.code == "BudgetReached"
                    refused += 1
                    break
                forecast += _forecasts(reported)[-1]
                talk.say("user", talk.material())
            session_bills += host.bills[before:]
            model.close(talk.name)
        day_spent = sum(host.bills)
    off = forecast / sum(host.bills) - 1
    figures = f"{turns} turns, {len(host.bills)} requests, {refused} refused, off {off:+.1%}"
    record_property("budget", figures)
    print(host_name, figures)  # noqa: T201
    assert turns == 200
    assert refused > 20
    assert len(host.bills) > 100
    assert abs(off) < 0.05


def _seen(reported: list[Event]) -> Any:
    def report(event: Event) -> int:
        reported.append(event)
        return 0

    return report


def _forecasts(reported: Sequence[Event]) -> list[float]:
    return [e.forecast for e in reported if isinstance(e, BudgetUpdated) and e.state != "reached"]


async def test_what_breaks_is_paid_and_not_asked_again_without_room() -> None:
    random = Random(1)
    host = Host(CNY, random, breaks=True)

    async def today(_currency: str) -> float:
        return 0.0

    model = BudgetedModel(host, lambda _: CNY, today)
    talk, reported = Talk("s", random), list[Event]()
    talk.say("user", "hello " * 500)
    limit = CNY.most(20_000, 4_000)
    model.open("s", "t", Budget(currency="CNY", turn=limit), (), _seen(reported))
    await talk.ask(model)
    while await talk.ask(model) is None:
        talk.say("user", "go on")
    assert sum(host.bills) <= limit
    assert [event.code for event in reported if isinstance(event, Notice)] == ["BudgetNear"]


async def test_a_model_without_a_price_is_not_asked() -> None:
    host = Host(CNY, Random(1))

    async def today(_currency: str) -> float:
        return 0.0

    for prices in (None, CNY):
        model = BudgetedModel(host, lambda _, known=prices: known, today)
        talk = Talk("s", Random(1))
        talk.say("user", "hello")
        model.open("s", "t", Budget(currency="USD", turn=5.0), (), _seen([]))
        error = await talk.ask(model)
        assert error is not None
        assert (error.code, error.details) == ("BudgetReached", {"reason": "no_price"})
        model.close("s")
    assert host.seen == []


def test_of_two_budgets_the_stricter_limit_holds() -> None:
    own = Budget(currency="USD", turn=1.0, day=9.0)
    asked = Budget(currency="USD", turn=2.0, session=3.0, day=4.0)
    assert stricter(own, asked) == Budget(currency="USD", turn=1.0, session=3.0, day=4.0)
    assert stricter(own, None) is own
    with pytest.raises(KodeError, match="is in USD"):
        stricter(own, Budget(currency="CNY", turn=1.0))
    for limit in (0.0, -1.0, float("inf")):
        with pytest.raises(KodeError, match=r"\$\.budget\.day"):
            stricter(None, Budget(currency="USD", day=limit))
