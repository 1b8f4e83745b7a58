"""The providers that need no configuration but a key.

Kimi: Moonshot's model and pricing pages, 2026. Its prices are the international list in US
dollars; the Chinese host bills in CNY by a list of its own, so there they are an estimate.
Anthropic: the models overview and pricing pages of platform.claude.com, October 2026.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from kode_sidecar.providers.profiles import ModelProfile, Price, ProviderProfile, WireNames

_QUARTER_MILLION = 262_144

_KIMI_MODELS = (
    ModelProfile(
        "kimi-k2-turbo-preview",
        sampling=True,
        context_window=_QUARTER_MILLION,
        price=Price(2.40, 0.60, 10.00),
    ),
    ModelProfile(
        "kimi-k2.6",
        thinking="optional",
        images=True,
        context_window=_QUARTER_MILLION,
        price=Price(0.95, 0.16, 4.00),
    ),
    ModelProfile(
        "kimi-k2.7-code",
        thinking="always",
        context_window=_QUARTER_MILLION,
        price=Price(0.95, 0.19, 4.00),
    ),
    ModelProfile(
        "kimi-k2.7-code-highspeed",
        thinking="always",
        context_window=_QUARTER_MILLION,
        price=Price(1.90, 0.38, 8.00),
    ),
    ModelProfile(
        "kimi-k2.5",
        thinking="optional",
        images=True,
        context_window=_QUARTER_MILLION,
        price=Price(0.60, 0.10, 3.00),
    ),
    ModelProfile(
        "kimi-k3",
        thinking="always",
        forced_tools=True,
        images=True,
        context_window=1_048_576,
        price=Price(3.00, 0.30, 15.00),
    ),
    ModelProfile("moonshot-v1-8k", sampling=True, context_window=8_192),
    ModelProfile("moonshot-v1-32k", sampling=True, context_window=32_768),
    ModelProfile("moonshot-v1-128k", sampling=True, context_window=131_072),
)

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
"""The default; `KIMI_BASE_URL` may move it to the other host, or to a gateway."""

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
    console="platform.openai.com",
)
"""Its models are what it lists; a price is the user's to add."""

_MILLION = 1_000_000
_CLAUDE_OUTPUT = 128_000

ANTHROPIC = ProviderProfile(
    name="anthropic",
    base_url="https://api.anthropic.com/v1",
    dialect="anthropic_messages",
    api_key_env=("ANTHROPIC_API_KEY",),
    console="platform.claude.com",
    models=(
        ModelProfile(
            "claude-sonnet-5-5",
            dialect="anthropic_messages",
            images=True,
            context_window=_MILLION,
            max_output=_CLAUDE_OUTPUT,
            price=Price(2.00, 0.10, 10.00, cache_write=2.50),
        ),
        ModelProfile(
            "claude-opus-5",
            dialect="anthropic_messages",
            images=True,
            context_window=_MILLION,
            max_output=_CLAUDE_OUTPUT,
            price=Price(5.00, 0.50, 25.00, cache_write=6.25),
        ),
        ModelProfile(
            "claude-haiku-4-5",
            dialect="anthropic_messages",
            images=True,
            context_window=200_000,
            max_output=64_000,
            price=Price(1.00, 0.10, 5.00, cache_write=1.25),
        ),
    ),
)

BUILTIN_PROVIDERS: Mapping[str, ProviderProfile] = {
    provider.name: provider for provider in (KIMI, KIMI_INTERNATIONAL, OPENAI, ANTHROPIC)
}

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

KNOWN_HOSTS: Mapping[str, ProviderProfile] = {
    "api.moonshot.cn": KIMI,
    "api.moonshot.ai": KIMI_INTERNATIONAL,
}
"""Hosts whose keys are mixed up, whatever provider is set to them."""
