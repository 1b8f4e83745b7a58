"""The providers that are known by name: built in, or chosen by one word, with their models.

The built-in ones need only a key; users choose the others in `kode-sidecar setup`, `model`, or
`providers`. Their addresses are from the vendors' own pages, their models are those of
`model_table`.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from kode_sidecar.infrastructure.providers.model_table import MODELS, SWITCHED
from kode_sidecar.infrastructure.providers.profiles import (
    Efforts,
    ModelProfile,
    ProviderProfile,
    WireNames,
)

# OpenAI's words; hosts differ in the strongest one, so it is left out.
_BY_WORD: Efforts = {
    "off": {"reasoning_effort": "none"},
    "low": {"reasoning_effort": "low"},
    "medium": {"reasoning_effort": "medium"},
    "high": {"reasoning_effort": "high"},
}


def _with_models(provider: ProviderProfile) -> ProviderProfile:
    """Return a provider with its models of the table, in its own dialect and names."""
    models = tuple(
        replace(row.profile, dialect=provider.dialect, names=provider.names)
        for row in MODELS.get(provider.name, ())
    )
    return replace(provider, models=models)


def _international(provider: ProviderProfile, variable: str, console: str) -> ProviderProfile:
    """Return the host outside of China, whose keys are mistaken for those of `provider`."""
    return replace(
        provider,
        name=f"{provider.name}-intl",
        base_url=provider.sibling,
        api_key_env=(variable,),
        console=console,
        sibling=provider.base_url,
        base_url_env="",
    )


KIMI = _with_models(
    ProviderProfile(
        name="kimi",
        base_url="https://api.moonshot.cn/v1",
        dialect="kimi",
        api_key_env=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
        console="platform.kimi.com",
        sibling="https://api.moonshot.ai/v1",
        base_url_env="KIMI_BASE_URL",
    )
)
"""The default provider; `KIMI_BASE_URL` may point it to the other host, or to a gateway."""

KIMI_INTERNATIONAL = _international(KIMI, "KIMI_INTL_API_KEY", "platform.kimi.ai")

OPENAI = _with_models(
    ProviderProfile(
        name="openai",
        base_url="https://api.openai.com/v1",
        api_key_env=("OPENAI_API_KEY",),
        names=WireNames(max_tokens="max_completion_tokens"),
        efforts={**_BY_WORD, "max": {"reasoning_effort": "xhigh"}},
        console="platform.openai.com",
    )
)

ANTHROPIC = _with_models(
    ProviderProfile(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        dialect="anthropic_messages",
        api_key_env=("ANTHROPIC_API_KEY",),
        console="platform.claude.com",
    )
)

# Moonshot's coding plan has its own hosts, keys and model names, and no price by token.
_CODING = _with_models(
    ProviderProfile(
        name="kimi-coding",
        base_url="https://api.kimi.com/coding/v1",
        dialect="kimi",
        api_key_env=("KIMI_CODING_API_KEY", "KIMI_CODE_API_KEY"),
        console="kimi.com/code",
        sibling="https://api.kimi.ai/coding/v1",
    )
)

_BY_ONE_WORD = (
    ProviderProfile(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        api_key_env=("DEEPSEEK_API_KEY",),
        console="platform.deepseek.com",
    ),
    ProviderProfile(
        name="qwen",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        api_key_env=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        console="bailian.console.aliyun.com",
        efforts={"off": {"enable_thinking": False}, "high": {"enable_thinking": True}},
    ),
    ProviderProfile(
        name="glm",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        api_key_env=("ZHIPUAI_API_KEY", "GLM_API_KEY", "ZAI_API_KEY"),
        console="open.bigmodel.cn",
        efforts=SWITCHED,
    ),
    ProviderProfile(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        api_key_env=("OPENROUTER_API_KEY",),
        headers={"x-title": "kode-sidecar"},
        # Asks for the cost in each answer.
        body={"usage": {"include": True}},
        console="openrouter.ai",
        efforts={
            "off": {"reasoning": {"enabled": False}},
            "low": {"reasoning": {"effort": "low"}},
            "medium": {"reasoning": {"effort": "medium"}},
            "high": {"reasoning": {"effort": "high"}},
            "max": {"reasoning": {"effort": "xhigh"}},
        },
    ),
    ProviderProfile(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        api_key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        console="aistudio.google.com",
        efforts=_BY_WORD,
    ),
    ProviderProfile(
        name="ollama",
        base_url="http://localhost:11434/v1",
        cuts_silently=True,
        efforts=_BY_WORD,
    ),
    ProviderProfile(name="lmstudio", base_url="http://localhost:1234/v1", efforts=_BY_WORD),
)

BUILTIN_PROVIDERS: Mapping[str, ProviderProfile] = {
    provider.name: provider for provider in (KIMI, KIMI_INTERNATIONAL, OPENAI, ANTHROPIC)
}

PRESETS: Mapping[str, ProviderProfile] = {
    provider.name: provider
    for provider in (
        _CODING,
        _international(_CODING, "KIMI_CODING_INTL_API_KEY", "kimi.ai/code"),
        *map(_with_models, _BY_ONE_WORD),
    )
}
"""Presets by name. Those without a key are programs on this machine, which list their models."""

PRESET_MODELS: Mapping[str, tuple[str, ...]] = {
    name: tuple(f"{name}/{model.id}" for model in preset.models)
    for name, preset in PRESETS.items()
    if preset.models
}
"""The models of a preset's name used as a model: the first one that is served answers."""

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
    urlsplit(provider.base_url).netloc: provider for provider in (KIMI, KIMI_INTERNATIONAL)
}
"""Hosts whose keys users mix up; known by address, whichever provider points to them."""

_KIMI_ROWS = {row.profile.id: row for row in MODELS["kimi"]}


def billed_by(host: str, profile: ProviderProfile) -> ProviderProfile:
    """Return a provider with the prices of its host: the Chinese one bills in CNY.

    Prices set by the user stay.
    """
    if KNOWN_HOSTS.get(host) is not KIMI:
        return profile
    models = tuple(
        replace(model, price=row.yuan)
        if (row := _KIMI_ROWS.get(model.id)) and model.price == row.profile.price
        else model
        for model in profile.models
    )
    return replace(profile, models=models)


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
    late = _KIMI_ROWS[model.id].late_tools if model.late_tools is None else model.late_tools
    return replace(model, system_notes=model.system_notes is not False, late_tools=late)
