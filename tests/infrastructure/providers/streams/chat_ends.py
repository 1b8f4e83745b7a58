"""How answers end: usage, finish reasons, errors."""

from tests.infrastructure.providers.streams.answer import Answer, Stream
from tests.infrastructure.providers.streams.chat_wire import (
    DONE,
    ROLE,
    STOP,
    USAGE,
    chunk,
    end,
    says,
    stream,
)

USAGES: dict[str, Stream] = {
    "in a chunk with empty choices": stream(
        Answer("Hi", usage=(10, 5, 0)),
        says("Hi"),
        STOP,
        {**chunk(), "choices": [], "usage": USAGE},
        DONE,
    ),
    "beside a choice": stream(
        Answer("Hi", usage=(10, 5, 0)), says("Hi"), chunk(finish="stop", usage=USAGE), DONE
    ),
    "in the choice, Kimi's": stream(
        Answer("Hi", usage=(10, 5, 4)),
        says("Hi"),
        {
            **chunk(),
            "choices": [
                {
                    "index": 0,
                    "delta": {},
                    "finish_reason": "stop",
                    "usage": {**USAGE, "cached_tokens": 4},
                }
            ],
        },
        DONE,
        needs_done=True,
    ),
    "in the choice and again at the top": stream(
        Answer("Hi", usage=(10, 5, 0)),
        says("Hi"),
        {
            **chunk(),
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}],
        },
        {**chunk(), "choices": [], "usage": USAGE},
        DONE,
    ),
    "Groq's": stream(
        Answer("Hi", usage=(10, 5, 0)),
        says("Hi"),
        chunk(finish="stop", x_groq={"id": "req", "usage": USAGE}),
        DONE,
    ),
    "cached at the top of usage": stream(
        Answer("Hi", usage=(10, 5, 4)),
        says("Hi"),
        chunk(finish="stop", usage={**USAGE, "cached_tokens": 4}),
        DONE,
    ),
    "cached in the details": stream(
        Answer("Hi", usage=(10, 5, 3)),
        says("Hi"),
        chunk(finish="stop", usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 3}}),
        DONE,
    ),
    "cached as cache hits": stream(
        Answer("Hi", usage=(10, 5, 3)),
        says("Hi"),
        chunk(
            finish="stop",
            usage={**USAGE, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 7},
        ),
        DONE,
    ),
    "cached as cache reads, outside the prompt": stream(
        Answer("Hi", usage=(60, 5, 50)),
        says("Hi"),
        chunk(finish="stop", usage={**USAGE, "cache_read_input_tokens": 50}),
        DONE,
    ),
    "the last one wins": stream(
        Answer("Hi", usage=(10, 5, 0)),
        says("Hi", usage={"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}),
        chunk(finish="stop", usage=USAGE),
        DONE,
    ),
    "null counts for nothing": stream(
        Answer("Hi", usage=(10, 5, 0)),
        says("Hi", usage=None),
        chunk(finish="stop", usage=USAGE),
        chunk(usage=None),
        DONE,
    ),
}

ENDS: dict[str, Stream] = {
    **{
        raw: stream(Answer("Hi", end=reason, raw_end=raw), says("Hi"), chunk(finish=raw), DONE)
        for raw, reason in {
            "length": "length",
            "content_filter": "content_filter",
            "model_length": "length",
            "insufficient_system_resource": "incomplete",
            "eos": "stop",
            "end_turn": "stop",
            "brand_new": "other",
        }.items()
    },
    "no finish reason, but the end mark": stream(
        Answer("Hi", end="other", raw_end=None), says("Hi"), DONE
    ),
    "the last finish reason wins": stream(
        Answer("Hi"), says("Hi", choices=chunk({"content": "Hi"}, "length")["choices"]), STOP, DONE
    ),
    "an empty answer": stream(Answer(end="EmptyAnswer", raw_end=None), ROLE, STOP, DONE),
    "a blank answer": stream(
        Answer(" \n", end="EmptyAnswer", raw_end=None), says(" \n"), STOP, DONE
    ),
    "an empty answer that was filtered": stream(
        Answer(end="content_filter", raw_end="content_filter"),
        ROLE,
        chunk(finish="content_filter"),
        DONE,
    ),
}

ERRORS: dict[str, Stream] = {
    "an object": stream(
        end("Provider"), says("Hi"), {"error": {"type": "server_error", "message": "boom"}}, DONE
    ),
    "a text": stream(end("Provider"), says("Hi"), {"error": "boom"}),
    "beside choices": stream(
        end("Provider"), says("Hi"), chunk({"content": ""}, error={"message": "boom"}), DONE
    ),
    "in the choice": stream(
        end("Provider"),
        says("Hi"),
        {
            **chunk(),
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": ""},
                    "finish_reason": "error",
                    "error": {"message": "boom", "code": 502},
                }
            ],
        },
        DONE,
    ),
    "only a finish reason": stream(end("Provider"), says("Hi"), chunk(finish="error"), DONE),
    "the code is a number": stream(
        end("RateLimited"), says("Hi"), {"error": {"code": 429, "message": "boom"}}
    ),
    "the code is a number as text": stream(
        end("RateLimited"), says("Hi"), {"error": {"code": "429", "message": "boom"}}
    ),
    "without the word error": stream(
        end("Provider"), says("Hi"), {"object": "error", "message": "boom", "code": 500}
    ),
    "Groq's failed generation": stream(
        end("IncompleteAnswer"),
        says("Hi"),
        {
            "error": {
                "message": "Failed to call a function. See 'failed_generation'.",
                "type": "invalid_request_error",
                "code": "tool_use_failed",
                "failed_generation": "<function=find>{",
            }
        },
    ),
    "overloaded": stream(
        end("RateLimited"), says("Hi"), {"error": {"type": "engine_overloaded_error"}}
    ),
    "out of quota": stream(
        end("QuotaExceeded"),
        says("Hi"),
        {"error": {"type": "exceeded_current_quota_error", "message": "boom"}},
    ),
    "filtered": stream(
        end("ContentFiltered"), says("Hi"), {"error": {"type": "content_filter", "message": "x"}}
    ),
    "too long": stream(
        end("ContextOverflow"), says("Hi"), {"error": {"code": "context_length_exceeded"}}
    ),
}
