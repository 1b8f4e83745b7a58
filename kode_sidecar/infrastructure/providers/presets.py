"""Providers that users choose by one word: in `kode-sidecar setup`, `model`, or `providers`.

Addresses and ids are from the vendors' own pages in 2026: Moonshot's coding plan, DeepSeek,
Alibaba (Qwen), Zhipu (GLM), OpenRouter, Google (Gemini's OpenAI-compatible endpoint), Ollama and
LM Studio; those of DeepSeek, Google and Zhipu from November 2026, when all older ids were retired
or about to be. Like all tables of models, these are hints: a host's own list takes precedence.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from kode_sidecar.infrastructure.http.timeouts import TimeLimits
from kode_sidecar.infrastructure.providers.builtin_providers import (
    K3_EFFORTS,
    MILLION_AND_MORE,
    QUARTER_MILLION,
    SWITCHED,
)
from kode_sidecar.infrastructure.providers.profiles import Efforts, ModelProfile, ProviderProfile


def _models(*ids: str, window: int, images: bool = False) -> tuple[ModelProfile, ...]:
    return tuple(
        ModelProfile(
            one, dialect="openai_chat", sampling=True, images=images, context_window=window
        )
        for one in ids
    )


def _thinking(
    model_id: str, window: int, most: int, efforts: Efforts | None = None
) -> ModelProfile:
    return ModelProfile(
        model_id,
        thinking="always",
        images=efforts is not None,
        context_window=window,
        max_output=most,
        efforts=efforts or {},
    )


# OpenAI's words; hosts differ in the strongest one, so it is left out.
_BY_WORD: Efforts = {
    "off": {"reasoning_effort": "none"},
    "low": {"reasoning_effort": "low"},
    "medium": {"reasoning_effort": "medium"},
    "high": {"reasoning_effort": "high"},
}

# A program on this machine first loads the model from disk, and reads a long prompt slowly.
_AT_HOME = TimeLimits(first_byte=600.0, idle=600.0)

# Moonshot's coding plan has its own hosts, keys and model names, and no price by token.
_CODING = ProviderProfile(
    name="kimi-coding",
    base_url="https://api.kimi.com/coding/v1",
    dialect="kimi",
    api_key_env=("KIMI_CODING_API_KEY", "KIMI_CODE_API_KEY"),
    console="kimi.com/code",
    sibling="https://api.kimi.ai/coding/v1",
    models=(
        _thinking("kimi-for-coding", MILLION_AND_MORE, 32_768),
        _thinking("kimi-for-coding-highspeed", QUARTER_MILLION, 32_768),
        *(
            _thinking(one, window, 131_072, efforts=K3_EFFORTS)
            for one, window in (
                ("k3.1-pro", MILLION_AND_MORE),
                ("k3.1-pro-highspeed", MILLION_AND_MORE),
                ("k3", MILLION_AND_MORE),
                ("k3-256k", QUARTER_MILLION),
            )
        ),
    ),
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
        models=(
            # They think, and refuse calls that come back without their reasoning.
            *(
                ModelProfile(
                    one,
                    dialect="openai_chat",
                    thinking="always",
                    context_window=1_000_000,
                    max_output=384_000,
                    efforts=SWITCHED,
                )
                for one in ("deepseek-v4-pro", "deepseek-flash")
            ),
        ),
    ),
    ProviderProfile(
        name="qwen",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        api_key_env=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        console="bailian.console.aliyun.com",
        efforts={"off": {"enable_thinking": False}, "high": {"enable_thinking": True}},
        models=_models("qwen3-coder-plus", "qwen-plus", window=1_000_000),
    ),
    ProviderProfile(
        name="glm",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        api_key_env=("ZHIPUAI_API_KEY", "GLM_API_KEY", "ZAI_API_KEY"),
        console="open.bigmodel.cn",
        efforts=SWITCHED,
        models=_models("glm-5.3", "glm-5.3-flash", window=131_072),
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
        models=_models("openrouter/auto", window=131_072),
    ),
    ProviderProfile(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        api_key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        console="aistudio.google.com",
        efforts=_BY_WORD,
        models=_models("gemini-4-argon", "gemini-3.8-flash", window=MILLION_AND_MORE, images=True),
    ),
    ProviderProfile(
        name="ollama",
        base_url="http://localhost:11434/v1",
        cuts_silently=True,
        timeouts=_AT_HOME,
        efforts=_BY_WORD,
    ),
    ProviderProfile(
        name="lmstudio", base_url="http://localhost:1234/v1", timeouts=_AT_HOME, efforts=_BY_WORD
    ),
)

PRESETS: Mapping[str, ProviderProfile] = {profile.name: profile for profile in _ALL}
"""Presets by name. Those without a key are programs on this machine, which list their models."""

PRESET_MODELS: Mapping[str, tuple[str, ...]] = {
    profile.name: tuple(f"{profile.name}/{model.id}" for model in profile.models)
    for profile in _ALL
    if profile.models
}
"""The models of a preset's name used as a model: the first one that is served answers."""
