"""What is known of models, as data. A hint: hosts change their lists within months.

Prices are the vendor's list prices in US dollars (Moonshot pricing pages, 2026).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.domain.message import Cost, Usage
from kode_sidecar.domain.model_event import UsageReported

Thinking = Literal["never", "optional", "always"]
DialectName = Literal["kimi", "openai_chat", "anthropic_messages"]


@dataclass(frozen=True)
class Price:
    """An amount per million tokens: fresh input, cached input, output."""

    input: float
    cached: float
    output: float
    currency: str = "USD"


@dataclass(frozen=True)
class ModelProfile:
    """How to ask one model.

    A model that thinks wants its reasoning back. `sampling` False means that the vendor pins
    temperature and top_p and refuses others. `context_window` and `max_output` are in tokens;
    None: unknown. `provider` names who runs the model: what one has signed, others refuse.
    """

    id: str
    dialect: DialectName = "kimi"
    provider: str = ""
    thinking: Thinking = "never"
    sampling: bool = False
    forced_tools: bool = False
    images: bool = False
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None


def usage_event(usage: Usage, price: Price | None) -> UsageReported:
    """Usage with what it cost, where the price is known."""
    if price is None:
        return UsageReported(usage)
    fresh = (usage.input_tokens - usage.cached_tokens) * price.input
    cached = usage.cached_tokens * price.cached
    amount = (fresh + cached + usage.output_tokens * price.output) / 1_000_000
    in_dollars = amount if price.currency == "USD" else None
    return UsageReported(usage, Cost(amount, price.currency), in_dollars)


_QUARTER_MILLION = 262_144
_MOONSHOT = "moonshot"

_MOONSHOT_MODELS = (
    ModelProfile(
        "kimi-k2-turbo-preview",
        provider=_MOONSHOT,
        sampling=True,
        context_window=_QUARTER_MILLION,
        price=Price(2.40, 0.60, 10.00),
    ),
    ModelProfile(
        "kimi-k2.6",
        provider=_MOONSHOT,
        thinking="optional",
        images=True,
        context_window=_QUARTER_MILLION,
        price=Price(0.95, 0.16, 4.00),
    ),
    ModelProfile(
        "kimi-k2.7-code",
        provider=_MOONSHOT,
        thinking="always",
        context_window=_QUARTER_MILLION,
        price=Price(0.95, 0.19, 4.00),
    ),
    ModelProfile(
        "kimi-k2.7-code-highspeed",
        provider=_MOONSHOT,
        thinking="always",
        context_window=_QUARTER_MILLION,
        price=Price(1.90, 0.38, 8.00),
    ),
    ModelProfile(
        "kimi-k2.5",
        provider=_MOONSHOT,
        thinking="optional",
        images=True,
        context_window=_QUARTER_MILLION,
        price=Price(0.60, 0.10, 3.00),
    ),
    ModelProfile(
        "kimi-k3",
        provider=_MOONSHOT,
        thinking="always",
        forced_tools=True,
        images=True,
        context_window=1_048_576,
        price=Price(3.00, 0.30, 15.00),
    ),
    ModelProfile("moonshot-v1-8k", provider=_MOONSHOT, sampling=True, context_window=8_192),
    ModelProfile("moonshot-v1-32k", provider=_MOONSHOT, sampling=True, context_window=32_768),
    ModelProfile("moonshot-v1-128k", provider=_MOONSHOT, sampling=True, context_window=131_072),
)

KNOWN_MODELS: Mapping[str, ModelProfile] = {profile.id: profile for profile in _MOONSHOT_MODELS}

LOGICAL_MODELS: Mapping[str, tuple[str, ...]] = {
    # The first id is the promised one; hosts have retired it, so others follow.
    "ide-chat": (
        "kimi-k2-turbo-preview",
        "kimi-k2.6",
        "kimi-k2.7-code",
        "kimi-k2.5",
        "kimi-k3",
    ),
}


@dataclass(frozen=True)
class Host:
    """A provider's address. Keys of one host are refused by its `sibling`."""

    name: str
    console: str
    sibling: str


KNOWN_HOSTS: Mapping[str, Host] = {
    "api.moonshot.cn": Host("Moonshot (China)", "platform.kimi.com", "https://api.moonshot.ai/v1"),
    "api.moonshot.ai": Host(
        "Moonshot (international)", "platform.kimi.ai", "https://api.moonshot.cn/v1"
    ),
}
