"""Usage, stop reasons, errors, and messages that begin anew."""

import json

from tests.infrastructure.providers.streams.answer import Answer, Stream
from tests.infrastructure.providers.streams.anthropic_wire import (
    FOUND,
    HI,
    called,
    ending,
    error,
    failed,
    said,
    sse,
    start,
    stream,
    text,
    thinking,
    tool,
)

USAGES: dict[str, Stream] = {
    "the last count of the answer replaces the first": stream(
        said(usage=(100, 20, 0)),
        start(input_tokens=100, output_tokens=7),
        *HI,
        *ending(output_tokens=20),
    ),
    "the prompt is what was sent, read and written": stream(
        said(usage=(3 + 1000 + 200, 5, 1000)),
        start(
            input_tokens=3,
            output_tokens=1,
            cache_read_input_tokens=1000,
            cache_creation_input_tokens=200,
        ),
        *HI,
        *ending(),
    ),
    "the prompt is counted again at the end": stream(
        said(usage=(12 + 500, 5, 500)),
        start(input_tokens=0, output_tokens=0),
        *HI,
        *ending(input_tokens=12, output_tokens=5, cache_read_input_tokens=500),
    ),
    "null replaces nothing": stream(
        said(),
        start(),
        *HI,
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5, "input_tokens": None},
        },
        {"type": "message_stop"},
    ),
    "counts in between": stream(
        said(usage=(3, 9, 0)),
        start(),
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 2}},
        *HI,
        *ending(output_tokens=9),
    ),
}

ENDS: dict[str, Stream] = {
    **{
        raw: stream(said(end=reason, raw_end=raw), start(), *HI, *ending(raw))
        for raw, reason in {
            "stop_sequence": "stop",
            "max_tokens": "length",
            "pause_turn": "paused",
            "refusal": "content_filter",
            "model_context_window_exceeded": "length",
            "brand_new": "other",
        }.items()
    },
    "a refusal without a word": stream(
        said("", end="content_filter", raw_end="refusal"), start(), *ending("refusal")
    ),
    "an empty answer": stream(said("", end="EmptyAnswer", raw_end=None), start(), *ending()),
    "message_stop is missing": stream(
        said(notices=("StreamUnmarkedEnd",)), start(), *HI, *ending()[:1]
    ),
    "both ends are missing": stream(
        said(end="incomplete", raw_end=None, usage=(3, 1, 0)), start(), *HI
    ),
    "cut in the middle of an event": Stream(
        sse(start(), *HI) + b'event: message_delta\ndata: {"type":"mess',
        said(end="incomplete", raw_end=None, usage=(3, 1, 0)),
    ),
    "nothing but the start": stream(
        said("", end="incomplete", raw_end=None, usage=(3, 1, 0)), start()
    ),
    "more after the end": stream(
        said(), start(), *HI, *ending(), start("msg_2"), *text(0, "ghost")
    ),
    "an end mark as other hosts have it": stream(said(), start(), *HI, *ending(), "[DONE]"),
}

RESTARTS: dict[str, Stream] = {
    "the start comes twice": stream(said(), start(), start(), *HI, *ending()),
    "the start comes twice, after a block": stream(
        said(), start(), *HI[:2], start(), *HI[2:], *ending()
    ),
    "another message takes over": stream(
        said(drops=1), start("msg_1"), *text(0, "Hel")[:-1], start("msg_2"), *HI, *ending()
    ),
    "another message takes over from thinking and a call": stream(
        said(drops=1),
        start("msg_1"),
        *thinking(0, "Hm", signature="s1"),
        *tool(1, '{"x"')[:-1],
        start("msg_2"),
        *HI,
        *ending(),
    ),
    "the same message, its blocks from the beginning": stream(
        said(drops=1), start(), *text(0, "Hel")[:-1], start(), *HI, *ending()
    ),
    "usage of the first is not counted": stream(
        said(usage=(7, 5, 0), drops=1),
        start("msg_1", input_tokens=1000, output_tokens=1, cache_read_input_tokens=5),
        *text(0, "Hel"),
        start("msg_2", input_tokens=7, output_tokens=1),
        *HI,
        *ending(),
    ),
}

ERRORS: dict[str, Stream] = {
    **{
        kind: stream(failed(code), start(), *HI, error(kind))
        for kind, code in {
            "overloaded_error": "RateLimited",
            "rate_limit_error": "RateLimited",
            "api_error": "Provider",
            "timeout_error": "Provider",
            "invalid_request_error": "Provider",
            "authentication_error": "AuthRequired",
            "permission_error": "Provider",
            "billing_error": "QuotaExceeded",
            "request_too_large": "TooLarge",
        }.items()
    },
    "the model is not there": stream(
        failed("ModelNotFound"), start(), *HI, error("not_found_error", "model: claude-9")
    ),
    "the prompt is too long": stream(
        failed("ContextOverflow"),
        start(),
        *HI,
        error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "an error without an object": stream(
        failed("Provider"), start(), *HI, {"type": "error", "message": "boom"}
    ),
    "an error as other hosts write it": Stream(
        sse(start(), *HI) + b'data: {"error": {"message": "boom"}}\n\n', failed("Provider")
    ),
    "an error body instead of a stream": Stream(
        json.dumps(error("overloaded_error")).encode(), Answer(end="RateLimited", raw_end=None)
    ),
}

FORMS: dict[str, Stream] = {
    "no event lines": Stream(sse(start(), *HI, *ending(), named=False), said()),
    "wrong event lines": Stream(
        sse(start(), *HI, *ending()).replace(b"event: content_block_delta", b"event: message"),
        said(),
    ),
    "CRLF": Stream(sse(start(), *HI, *ending()).replace(b"\n", b"\r\n"), said()),
    "one bad event": stream(
        said("Hello", notices=("StreamDamaged",)),
        start(),
        *HI[:1],
        b'{"type":"content_bl',
        *HI[1:],
        *ending(),
    ),
    "two bad events in a row": stream(
        said("Hel", end="incomplete", raw_end=None, usage=(3, 1, 0)),
        start(),
        *HI[:2],
        b"{",
        b"}",
        *HI[2:],
        *ending(),
    ),
    "a character cut in two": stream(
        said("a🎉b"), start(), *text(0, "a\ud83c", "\udf89b"), *ending()
    ),
    "a whole message": Stream(
        json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-m",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": "s1"},
                    {"type": "text", "text": "Hello"},
                    {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"x": 1}},
                ],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 3, "output_tokens": 5},
            }
        ).encode(),
        called(FOUND, text="Hello", thinking="Hm", sealed=("s1",)),
    ),
}
