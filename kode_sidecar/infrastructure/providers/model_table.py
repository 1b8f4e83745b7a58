"""All models that are known without asking a host: one row each, with its source and its day.

Nothing depends on this table alone. Ids retire within months: what a host lists takes precedence,
and a name whose ids are gone falls back to the newest fitting one that is listed (`registry`).
An unknown price or window is None and learned where the host says it. What all models of a
provider share, such as the dialect, stands with the provider (`known_providers`).
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.infrastructure.providers.profiles import Efforts, ModelProfile, TokenPrice

QUARTER_MILLION = 262_144
MILLION_AND_MORE = 1_048_576
CHECKED = "2026-11-26"
"""The day on which the rows were compared with their sources."""

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


class KnownModel(Struct, frozen=True):
    """A row of the table. Prices are dollars per million tokens.

    `yuan` is the price of the Chinese host, which bills by a list of its own. `retires`: the day
    that its vendor named, empty if none. `late_tools`: only at its vendor's own host it takes
    system messages with tools in them.
    """

    profile: ModelProfile
    source: str
    yuan: TokenPrice | None = None
    retires: str = ""
    late_tools: bool = False


_KIMI_PAGES = "platform.kimi.ai, models and pricing; prices in yuan derived from platform.kimi.com"
_K2_ENDS = "2026-12-31"
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


def _kimi(
    model_id: str, like: ModelProfile, price: TokenPrice, yuan: TokenPrice, retires: str = ""
) -> KnownModel:
    profile = replace(like, id=model_id, price=price)
    return KnownModel(profile, _KIMI_PAGES, yuan, retires, late_tools=like is _K3)


_KIMI = (
    _kimi(
        "kimi-k2.7-code",
        _K2_CODE,
        TokenPrice(0.95, 0.19, 4.00),
        TokenPrice(6.5, 1.3, 27.0, "CNY"),
        _K2_ENDS,
    ),
    _kimi(
        "kimi-k2.7-code-highspeed",
        _K2_CODE,
        TokenPrice(1.90, 0.38, 8.00),
        TokenPrice(13.0, 2.6, 54.0, "CNY"),
        _K2_ENDS,
    ),
    _kimi(
        "kimi-k3.1-pro",
        _K3,
        TokenPrice(2.00, 0.20, 10.00, cache_write=2.00, cache_write_hour=4.00),
        TokenPrice(13.0, 1.3, 68.0, "CNY", cache_write=13.0, cache_write_hour=26.0),
    ),
    _kimi(
        "kimi-k3.1-pro-highspeed",
        _K3,
        TokenPrice(4.00, 0.20, 20.00, cache_write=4.00, cache_write_hour=8.00),
        TokenPrice(26.0, 1.3, 136.0, "CNY", cache_write=26.0, cache_write_hour=52.0),
    ),
    _kimi(
        "kimi-k3",
        _K3,
        TokenPrice(3.00, 0.30, 15.00, cache_write=3.00, cache_write_hour=6.00),
        TokenPrice(20.0, 2.0, 100.0, "CNY", cache_write=20.0, cache_write_hour=40.0),
    ),
    _kimi(
        "kimi-k2.6",
        _K2,
        TokenPrice(0.95, 0.16, 4.00),
        TokenPrice(6.5, 1.1, 27.0, "CNY"),
        _K2_ENDS,
    ),
)


def _coding(model_id: str, window: int, most: int, efforts: Efforts | None = None) -> KnownModel:
    profile = ModelProfile(
        model_id,
        thinking="always",
        images=efforts is not None,
        context_window=window,
        max_output=most,
        efforts=efforts or {},
    )
    return KnownModel(profile, "kimi-code 2.1.0, its list of models; no price by token")


_CODING = (
    _coding("kimi-for-coding", MILLION_AND_MORE, 32_768),
    _coding("kimi-for-coding-highspeed", QUARTER_MILLION, 32_768),
    _coding("k3.1-pro", MILLION_AND_MORE, 131_072, K3_EFFORTS),
    _coding("k3.1-pro-highspeed", MILLION_AND_MORE, 131_072, K3_EFFORTS),
    _coding("k3", MILLION_AND_MORE, 131_072, K3_EFFORTS),
    _coding("k3-256k", QUARTER_MILLION, 131_072, K3_EFFORTS),
)

_CLAUDE = ModelProfile(
    "claude", images=True, context_window=1_000_000, max_output=128_000, efforts=_CLAUDE_EFFORTS
)
_SAMPLED = ModelProfile("any", sampling=True, context_window=131_072)
_HAIKU = ModelProfile("claude-haiku", images=True, context_window=200_000, max_output=64_000)


def _claude(model_id: str, like: ModelProfile, price: TokenPrice | None = None) -> KnownModel:
    source = "platform.claude.com, models overview and pricing"
    unknown = "" if price else "; its price is not known"
    return KnownModel(replace(like, id=model_id, price=price), source + unknown)


def _alike(source: str, like: ModelProfile, *ids: str) -> tuple[KnownModel, ...]:
    return tuple(KnownModel(replace(like, id=one), source) for one in ids)


MODELS: Mapping[str, tuple[KnownModel, ...]] = {
    "kimi": _KIMI,
    "kimi-coding": _CODING,
    "anthropic": (
        _claude(
            "claude-sonnet-5-5",
            _CLAUDE,
            TokenPrice(2.00, 0.10, 10.00, cache_write=2.50, cache_write_hour=4.00),
        ),
        _claude("claude-opus-5-5", _CLAUDE),
        _claude(
            "claude-opus-5",
            _CLAUDE,
            TokenPrice(5.00, 0.50, 25.00, cache_write=6.25, cache_write_hour=10.00),
        ),
        _claude("claude-haiku-5-5", _HAIKU),
        _claude(
            "claude-haiku-4-5",
            _HAIKU,
            TokenPrice(1.00, 0.10, 5.00, cache_write=1.25, cache_write_hour=2.00),
        ),
    ),
    "openai": _alike(
        "platform.openai.com, models; prices and windows are not known",
        ModelProfile("gpt", images=True),
        *("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"),
    ),
    # They think, and refuse calls that come back without their reasoning.
    "deepseek": _alike(
        "platform.deepseek.com, models; the ids before them retired on 2026-07-24",
        ModelProfile(
            "deepseek",
            thinking="always",
            context_window=1_000_000,
            max_output=384_000,
            efforts=SWITCHED,
        ),
        *("deepseek-v4-pro", "deepseek-flash"),
    ),
    "qwen": (
        KnownModel(
            ModelProfile(
                "qwen3.8-max",
                sampling=True,
                images=True,
                context_window=991_000,
                max_output=131_072,
            ),
            "qwencloud.com, card of qwen3.8-max; Chinese prices are not known",
        ),
        *_alike(
            "bailian.console.aliyun.com, list of models",
            ModelProfile("qwen", sampling=True, context_window=1_000_000),
            *("qwen3-coder-plus", "qwen-plus"),
        ),
    ),
    "glm": _alike("open.bigmodel.cn, models", _SAMPLED, "glm-5.3", "glm-5.3-flash"),
    "openrouter": _alike("openrouter.ai, its router", _SAMPLED, "openrouter/auto"),
    "gemini": _alike(
        "ai.google.dev, models; 2.5 Pro and Flash end on 2026-12-01 and are rerouted",
        ModelProfile("gemini", sampling=True, images=True, context_window=MILLION_AND_MORE),
        *("gemini-4-argon", "gemini-3.8-flash"),
    ),
}
"""The rows by provider; where one word stands for a provider, its first served row answers."""
