"""The built-in providers, which need only a key. Their models are those of `model_table`."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from kode_sidecar.infrastructure.providers.model_table import MODELS, models_of
from kode_sidecar.infrastructure.providers.profiles import ModelProfile, ProviderProfile, WireNames

_KIMI_ROWS = {row.profile.id: row for row in MODELS["kimi"]}
_CHINESE_HOST = "api.moonshot.cn"


def billed_by(host: str, profile: ProviderProfile) -> ProviderProfile:
    """Return a provider with the prices of its host: the Chinese one bills in CNY.

    Prices set by the user stay.
    """
    if host != _CHINESE_HOST:
        return profile
    models = tuple(
        replace(model, price=row.yuan)
        if (row := _KIMI_ROWS.get(model.id)) and model.price == row.profile.price
        else model
        for model in profile.models
    )
    return replace(profile, models=models)


_TAKE_LATE_TOOLS = ("kimi-k3", "kimi-k3.1-pro", "kimi-k3.1-pro-highspeed")


def as_at_host(host: str, profile: ProviderProfile) -> ProviderProfile:
    """Return a provider with the features that its models have only at the vendor's own host.

    Values set by the user stay. Of a host that nobody knows, a gateway perhaps, it is not assumed
    that it takes `prompt_cache_key`: some answer 400 to every request that has it.
    """
    if host not in KNOWN_HOSTS:
        known = host == urlsplit(OPENAI.base_url).hostname
        dialects = {profile.dialect, *(model.dialect for model in profile.models)}
        if known or profile.cache_key or "openai_responses" not in dialects:
            return profile
        return replace(profile, cache_key=False)
    models = tuple(_as_at_vendor(one) if one.id in _KIMI_ROWS else one for one in profile.models)
    return replace(profile, models=models)


def _as_at_vendor(model: ModelProfile) -> ModelProfile:
    late = model.id in _TAKE_LATE_TOOLS if model.late_tools is None else model.late_tools
    return replace(model, system_notes=model.system_notes is not False, late_tools=late)


KIMI = ProviderProfile(
    name="kimi",
    base_url="https://api.moonshot.cn/v1",
    dialect="kimi",
    api_key_env=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    models=models_of("kimi"),
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
    models=models_of("openai"),
)

ANTHROPIC = ProviderProfile(
    name="anthropic",
    base_url="https://api.anthropic.com/v1",
    dialect="anthropic_messages",
    api_key_env=("ANTHROPIC_API_KEY",),
    console="platform.claude.com",
    models=models_of("anthropic"),
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
