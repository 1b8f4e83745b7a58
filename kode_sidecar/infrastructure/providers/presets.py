"""Providers that users choose by one word: in `kode-sidecar setup`, `model`, or `providers`.

Their addresses are from the vendors' own pages; their models are those of `model_table`.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from kode_sidecar.infrastructure.providers.model_table import SWITCHED, models_of
from kode_sidecar.infrastructure.providers.profiles import Efforts, ProviderProfile

# OpenAI's words; hosts differ in the strongest one, so it is left out.
_BY_WORD: Efforts = {
    "off": {"reasoning_effort": "none"},
    "low": {"reasoning_effort": "low"},
    "medium": {"reasoning_effort": "medium"},
    "high": {"reasoning_effort": "high"},
}

# Moonshot's coding plan has its own hosts, keys and model names, and no price by token.
_CODING = ProviderProfile(
    name="kimi-coding",
    base_url="https://api.kimi.com/coding/v1",
    dialect="kimi",
    api_key_env=("KIMI_CODING_API_KEY", "KIMI_CODE_API_KEY"),
    console="kimi.com/code",
    sibling="https://api.kimi.ai/coding/v1",
    models=models_of("kimi-coding"),
)

_ALL = (
    _CODING,
    replace(
        _CODING,
        name="kimi-coding-intl",
        base_url="https://api.kimi.ai/coding/v1",
        api_key_env=("KIMI_CODING_INTL_API_KEY",),
        console="kimi.ai/code",
        sibling="https://api.kimi.com/coding/v1",
    ),
    ProviderProfile(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        api_key_env=("DEEPSEEK_API_KEY",),
        console="platform.deepseek.com",
        models=models_of("deepseek"),
    ),
    ProviderProfile(
        name="qwen",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        api_key_env=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        console="bailian.console.aliyun.com",
        efforts={"off": {"enable_thinking": False}, "high": {"enable_thinking": True}},
        models=models_of("qwen"),
    ),
    ProviderProfile(
        name="glm",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        api_key_env=("ZHIPUAI_API_KEY", "GLM_API_KEY", "ZAI_API_KEY"),
        console="open.bigmodel.cn",
        efforts=SWITCHED,
        models=models_of("glm"),
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
        models=models_of("openrouter"),
    ),
    ProviderProfile(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        api_key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        console="aistudio.google.com",
        efforts=_BY_WORD,
        models=models_of("gemini"),
    ),
    ProviderProfile(
        name="ollama",
        base_url="http://localhost:11434/v1",
        cuts_silently=True,
        efforts=_BY_WORD,
    ),
    ProviderProfile(name="lmstudio", base_url="http://localhost:1234/v1", efforts=_BY_WORD),
)

PRESETS: Mapping[str, ProviderProfile] = {profile.name: profile for profile in _ALL}
"""Presets by name. Those without a key are programs on this machine, which list their models."""

PRESET_MODELS: Mapping[str, tuple[str, ...]] = {
    profile.name: tuple(f"{profile.name}/{model.id}" for model in profile.models)
    for profile in _ALL
    if profile.models
}
"""The models of a preset's name used as a model: the first one that is served answers."""
