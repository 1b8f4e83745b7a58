"""An answer of each preset host with thought, a call and usage, as the vendor's pages write it.

Written by us from the documents of DeepSeek, Alibaba Model Studio, Zhipu, OpenRouter, Google,
Ollama and LM Studio; nothing here was recorded from a service.
"""

from typing import Any

from tests.infrastructure.providers.streams.answer import Call, Stream
from tests.infrastructure.providers.streams.chat_wire import (
    DONE,
    Json,
    called,
    calls,
    chunk,
    sse,
    stream,
)

ARGUMENTS = '{"city":"杭州"}'
_WEATHER = Call("call_1", "find", ARGUMENTS)


def _step(delta: Json, **fields: Any) -> Json:
    return chunk({"role": "assistant", **delta}, **fields)


def _whole(**fields: Any) -> Json:
    function = {"name": "find", "arguments": ARGUMENTS}
    return {"id": "call_1", "type": "function", "function": function, **fields}


def _part(arguments: str, **fields: Any) -> Json:
    return {"index": 0, **fields, "function": {"arguments": arguments}}


def _begin(**fields: Any) -> Json:
    first = {"index": 0, "id": "call_1", "type": "function"}
    return calls({**first, "function": {"name": "find", "arguments": ""}, **fields})


DEEPSEEK = Stream(
    b": keep-alive\n\n"
    + sse(
        _step({"content": None, "reasoning_content": ""}, system_fingerprint="fp_ds"),
        chunk({"content": None, "reasoning_content": "Look it "}),
        chunk({"content": None, "reasoning_content": "up."}),
        chunk({"content": "One moment.", "reasoning_content": None}),
        _begin(),
        calls(_part('{"city":')),
        calls(_part('"杭州"}')),
        chunk(
            {"content": "", "reasoning_content": None},
            "tool_calls",
            usage={
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 9},
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
        ),
        DONE,
    ),
    called(_WEATHER, text="One moment.", thinking="Look it up.", usage=(100, 20, 64)),
)
# A later fragment has an empty id, and its type again.
QWEN = stream(
    called(_WEATHER, thinking="Look it up.", usage=(100, 20, 32)),
    _step({"content": None, "reasoning_content": ""}, usage=None),
    chunk({"content": None, "reasoning_content": "Look it up."}, usage=None),
    calls(
        {"index": 0, "id": "call_1", "type": "function"}
        | {"function": {"name": "find", "arguments": '{"city":'}}
    ),
    calls({**_part('"杭州"}'), "id": "", "type": "function"}),
    calls({"index": 0, "id": "", "type": "function", "function": {"arguments": None}}),
    chunk({"content": ""}, "tool_calls", usage=None),
    {
        **chunk(),
        "choices": [],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 32},
        },
    },
    DONE,
)
GLM = stream(
    called(_WEATHER, text="\n查一下。", thinking="\nLook it up.", usage=(100, 20, 43)),
    _step({"reasoning_content": "\nLook it up."}),
    _step({"content": "\n查一下。"}),
    _step({"tool_calls": [_whole(index=0)]}),
    chunk(
        {"role": "assistant", "content": ""},
        "tool_calls",
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 43},
        },
    ),
    DONE,
)
OPENROUTER = Stream(
    b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
    + sse(
        _step(
            {
                "content": "",
                "reasoning": "Look it up.",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Look it up.", "format": "unknown"}
                ],
            },
            provider="Somebody",
        ),
        _step({"content": "", "tool_calls": [_whole(index=0)]}, provider="Somebody"),
        chunk({"role": "assistant", "content": ""}, "tool_calls", native_finish_reason="STOP"),
        {
            **chunk(),
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "cost": 0.00015,
                "is_byok": False,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "cost_details": {"upstream_inference_cost": None},
            },
        },
        DONE,
    ),
    called(_WEATHER, thinking="Look it up.", usage=(100, 20, 0)),
)
# The end of an answer with calls is "stop", and a call has Google's own field beside it.
GEMINI = stream(
    called(_WEATHER, text="查一下。", raw_end="stop", usage=(100, 20, 0)),
    _step({"content": "查一下。"}),
    _step(
        {
            "tool_calls": [
                _whole(index=0, extra_content={"google": {"thought_signature": "c2lnbmVk"}})
            ]
        }
    ),
    chunk(
        {"role": "assistant"},
        "stop",
        usage={"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    ),
    DONE,
)
OLLAMA = stream(
    called(_WEATHER, thinking="Look it up.", usage=(100, 20, 0)),
    _step({"content": "", "reasoning": "Look it "}, system_fingerprint="fp_ollama"),
    _step({"content": "", "reasoning": "up."}, system_fingerprint="fp_ollama"),
    _step({"content": "", "tool_calls": [_whole(index=0)]}, system_fingerprint="fp_ollama"),
    _step({"content": ""}, finish="tool_calls", system_fingerprint="fp_ollama"),
    {
        **chunk(),
        "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    },
    DONE,
)
LM_STUDIO = stream(
    called(_WEATHER, text="查一下。", thinking="Look it up.", usage=(100, 20, 0)),
    _step({"reasoning_content": "Look it up."}, system_fingerprint="qwen3"),
    _step({"content": "查一下。"}, system_fingerprint="qwen3"),
    _begin(),
    calls(_part('{"city":"杭')),
    calls(_part('州"}')),
    chunk({}, "tool_calls"),
    {
        **chunk(),
        "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    },
    DONE,
)

# Kimi's, on the host of the coding plan: usage in the last choice, and at the top once more.
_PLAN_USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 20,
    "total_tokens": 1_020,
    "cached_tokens": 768,
}
KIMI_CODING = stream(
    called(_WEATHER, thinking="Look it up.", usage=(1_000, 20, 768)),
    _step({"content": ""}),
    chunk({"reasoning_content": "Look it "}),
    chunk({"reasoning_content": "up."}),
    _begin(),
    calls(_part(ARGUMENTS)),
    {
        **chunk(),
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls", "usage": _PLAN_USAGE}],
    },
    {**chunk(), "choices": [], "usage": _PLAN_USAGE},
    DONE,
    needs_done=True,
)

STREAMS: dict[str, Stream] = {
    "kimi-coding": KIMI_CODING,
    "kimi-coding-intl": KIMI_CODING,
    "deepseek": DEEPSEEK,
    "qwen": QWEN,
    "glm": GLM,
    "openrouter": OPENROUTER,
    "gemini": GEMINI,
    "ollama": OLLAMA,
    "lmstudio": LM_STUDIO,
}
