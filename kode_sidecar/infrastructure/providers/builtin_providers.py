"""The built-in providers, which need only a key.

Kimi: Moonshot's model and pricing pages, November 2026. Prices are the international list in US
dollars; the Chinese host bills by a list of its own, in CNY.
Anthropic: the models overview and pricing pages of platform.claude.com, October 2026.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from kode_sidecar.infrastructure.providers.profiles import (
    Efforts,
    ModelProfile,
    ProviderProfile,
    TokenPrice,
    WireNames,
)

QUARTER_MILLION = 262_144
MILLION_AND_MORE = 1_048_576

# The K3 models take an effort as `reasoning_effort`, and never together with `thinking`.
K3_EFFORTS: Efforts = {
    "low": {"reasoning_effort": "low"},
    "high": {"reasoning_effort": "high"},
    "max": {"reasoning_effort": "max"},
}
SWITCHED: Efforts = {
    "off": {"thinking": {"type": "disabled"}},
    "high": {"thinking": {"type": "enabled"}},
}
_CLAUDE_EFFORTS: Efforts = {
    effort: {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    for effort in ("low", "medium", "high", "max")
}

# The price in US dollars, then that of the Chinese host.
_KIMI_PRICES: Mapping[str, tuple[TokenPrice, TokenPrice]] = {
    "kimi-k2.7-code": (TokenPrice(0.95, 0.19, 4.00), TokenPrice(6.5, 1.3, 27.0, "CNY")),
    "kimi-k2.7-code-highspeed": (TokenPrice(1.90, 0.38, 8.00), TokenPrice(13.0, 2.6, 54.0, "CNY")),
    "kimi-k3.1-pro": (
        TokenPrice(2.00, 0.20, 10.00, cache_write=2.00, cache_write_hour=4.00),
        TokenPrice(13.0, 1.3, 68.0, "CNY", cache_write=13.0, cache_write_hour=26.0),
    ),
    "kimi-k3.1-pro-highspeed": (
        TokenPrice(4.00, 0.20, 20.00, cache_write=4.00, cache_write_hour=8.00),
        TokenPrice(26.0, 1.3, 136.0, "CNY", cache_write=26.0, cache_write_hour=52.0),
    ),
    "kimi-k3": (
        TokenPrice(3.00, 0.30, 15.00, cache_write=3.00, cache_write_hour=6.00),
        TokenPrice(20.0, 2.0, 100.0, "CNY", cache_write=20.0, cache_write_hour=40.0),
    ),
    "kimi-k2.6": (TokenPrice(0.95, 0.16, 4.00), TokenPrice(6.5, 1.1, 27.0, "CNY")),
}
_K3 = ModelProfile(
    "kimi-k3",
    thinking="always",
    forced_tools=True,
    images=True,
    context_window=MILLION_AND_MORE,
    efforts=K3_EFFORTS,
    # Without an effort it thinks at `max`, the dearest.
    effort="high",
)
_K2_CODE = ModelProfile("kimi-k2.7-code", thinking="always", context_window=QUARTER_MILLION)
_K2 = ModelProfile(
    "kimi-k2.6",
    thinking="optional",
    images=True,
    context_window=QUARTER_MILLION,
    efforts=SWITCHED,
)
_KIND_OF = {"kimi-k2.6": _K2, "kimi-k2.7-code": _K2_CODE, "kimi-k2.7-code-highspeed": _K2_CODE}
_KIMI_MODELS = tuple(
    replace(_KIND_OF.get(name, _K3), id=name, price=dollars)
    for name, (dollars, _) in _KIMI_PRICES.items()
)
_CHINESE_HOST = "api.moonshot.cn"


def billed_by(host: str, profile: ProviderProfile) -> ProviderProfile:
    """Return a provider with the prices of its host: the Chinese one bills in CNY.

    Prices set by the user stay.
    """
    if host != _CHINESE_HOST:
        return profile
    models = tuple(
        replace(model, price=_KIMI_PRICES[model.id][1])
        if model.id in _KIMI_PRICES and model.price == _KIMI_PRICES[model.id][0]
        else model
        for model in profile.models
    )
    return replace(profile, models=models)


_TAKE_LATE_TOOLS = ("kimi-k3", "kimi-k3.1-pro", "kimi-k3.1-pro-highspeed")


def as_at_host(host: str, profile: ProviderProfile) -> ProviderProfile:
    """Return a provider with the features that its models have only at the vendor's own host.

    Values set by the user stay.
    """
    if host not in KNOWN_HOSTS:
        return profile
    models = tuple(_as_at_vendor(one) if one.id in _KIMI_PRICES else one for one in profile.models)
    return replace(profile, models=models)


def _as_at_vendor(model: ModelProfile) -> ModelProfile:
    late = model.id in _TAKE_LATE_TOOLS if model.late_tools is None else model.late_tools
    return replace(model, system_notes=model.system_notes is not False, late_tools=late)


KIMI = ProviderProfile(
    name="kimi",
    base_url="https://api.moonshot.cn/v1",
    dialect="kimi",
    api_key_env=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    models=_KIMI_MODELS,
    console="platform.kimi.com",
    sibling="https://api.moonshot.ai/v1",
    base_url_env="KIMI_BASE_URL",
)
"""The default provider; `KIMI_BASE_URL` may point it to the other host, or to a gateway."""

KIMI_INTERNATIONAL = replace(
    KIMI,
    name="kimi-intl",
    base_url="https://api.moonshot.ai/v1",
    api_key_env=("KIMI_INTL_API_KEY",),
    console="platform.kimi.ai",
    sibling="https://api.moonshot.cn/v1",
    base_url_env="",
)

OPENAI = ProviderProfile(
    name="openai",
    base_url="https://api.openai.com/v1",
    api_key_env=("OPENAI_API_KEY",),
    names=WireNames(max_tokens="max_completion_tokens"),
    efforts={
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "medium": {"reasoning_effort": "medium"},
        "high": {"reasoning_effort": "high"},
        "max": {"reasoning_effort": "xhigh"},
    },
    console="platform.openai.com",
)
"""Its models are those the host lists; users may add prices."""

_CLAUDE = ModelProfile(
    "claude-opus-5",
    dialect="anthropic_messages",
    images=True,
    context_window=1_000_000,
    max_output=128_000,
    price=TokenPrice(5.00, 0.50, 25.00, cache_write=6.25, cache_write_hour=10.00),
    efforts=_CLAUDE_EFFORTS,
)
ANTHROPIC = ProviderProfile(
    name="anthropic",
    base_url="https://api.anthropic.com/v1",
    dialect="anthropic_messages",
    api_key_env=("ANTHROPIC_API_KEY",),
    console="platform.claude.com",
    models=(
        replace(
            _CLAUDE,
            id="claude-sonnet-5-5",
            price=TokenPrice(2.00, 0.10, 10.00, cache_write=2.50, cache_write_hour=4.00),
        ),
        _CLAUDE,
        ModelProfile(
            "claude-haiku-4-5",
            dialect="anthropic_messages",
            images=True,
            context_window=200_000,
            max_output=64_000,
            price=TokenPrice(1.00, 0.10, 5.00, cache_write=1.25, cache_write_hour=2.00),
        ),
    ),
)

BUILTIN_PROVIDERS: Mapping[str, ProviderProfile] = {
    provider.name: provider for provider in (KIMI, KIMI_INTERNATIONAL, OPENAI, ANTHROPIC)
}

LOGICAL_MODELS: Mapping[str, tuple[str, ...]] = {
    # The K2 series may end with 2026, so it comes second; the last one is asked only where a
    # gateway still serves it. Models the host does not list are skipped.
    "ide-chat": (
        "kimi-k3.1-pro",
        "kimi-k2.7-code",
        "kimi-k3",
        "kimi-k2.6",
        "kimi-k2-turbo-preview",
    ),
}

KNOWN_HOSTS: Mapping[str, ProviderProfile] = {
    "api.moonshot.cn": KIMI,
    "api.moonshot.ai": KIMI_INTERNATIONAL,
}
"""Hosts whose keys users mix up; known by address, whichever provider points to them."""
