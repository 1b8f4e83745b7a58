"""Answers of Anthropic's Messages API, one for each shape that was met or is documented."""

import json
from typing import Any

from tests.providers.streams.answer import Answer, Call, Stream

Json = dict[str, Any]


def start(message_id: str = "msg_1", **usage: int) -> Json:
    """`message_start`; its usage unless given is 3 tokens in, 1 out."""
    message = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 3, "output_tokens": 1},
    }
    return {"type": "message_start", "message": message}


def opened(index: int, kind: str, **fields: Any) -> Json:
    block = {"type": kind, **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: int, kind: str, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def closed(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def text(index: int, *pieces: str) -> list[Json]:
    growth = [grown(index, "text_delta", text=piece) for piece in pieces]
    return [opened(index, "text", text=""), *growth, closed(index)]


def thinking(index: int, *pieces: str, signature: str) -> list[Json]:
    return [
        opened(index, "thinking", thinking="", signature=""),
        *(grown(index, "thinking_delta", thinking=piece) for piece in pieces),
        grown(index, "signature_delta", signature=signature),
        closed(index),
    ]


def tool(index: int, *pieces: str, call: str = "toolu_1", name: str = "find") -> list[Json]:
    growth = [grown(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [opened(index, "tool_use", id=call, name=name, input={}), *growth, closed(index)]


def ending(reason: str | None = "end_turn", **usage: int) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    counted = usage or {"output_tokens": 5}
    return [{"type": "message_delta", "delta": delta, "usage": counted}, {"type": "message_stop"}]


def sse(*events: Json | str | bytes, named: bool = True) -> bytes:
    """The events, with their event lines unless `named` is False."""
    out = bytearray()
    for event in events:
        if isinstance(event, dict) and named:
            out += f"event: {event['type']}\n".encode()
        data = event if isinstance(event, bytes) else None
        if data is None:
            data = (json.dumps(event) if isinstance(event, dict) else str(event)).encode()
        out += b"data: " + data + b"\n\n"
    return bytes(out)


PING: Json = {"type": "ping"}
HI = text(0, "Hel", "lo")
FOUND = Call("toolu_1", "find", '{"x": 1}')


def said(words: str = "Hello", **fields: Any) -> Answer:
    return Answer(**{"text": words, "usage": (3, 5, 0), "raw_end": "end_turn", **fields})


def called(*found: Call, **fields: Any) -> Answer:
    return said("", **{"calls": found, "end": "tool_calls", "raw_end": "tool_use", **fields})


def failed(code: str) -> Answer:
    return Answer("Hello", end=code, raw_end=None)


def stream(says: Answer, *events: Json | str | bytes, **fields: Any) -> Stream:
    return Stream(sse(*events), says, **fields)


def error(kind: str, message: str = "boom") -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


BLOCKS: dict[str, Stream] = {
    "text": stream(said(), start(), *HI, *ending()),
    "pings anywhere": stream(
        said(), PING, start(), PING, HI[0], PING, *HI[1:], PING, *ending(), PING
    ),
    "text in the start of its block": stream(
        said(),
        start(),
        opened(0, "text", text="Hel"),
        grown(0, "text_delta", text="lo"),
        closed(0),
        *ending(),
    ),
    "two text blocks": stream(said(), start(), *text(0, "Hel"), *text(1, "lo"), *ending()),
    "citations beside the text": stream(
        said(),
        start(),
        *HI[:2],
        grown(0, "citations_delta", citation={"type": "char_location", "cited_text": "x"}),
        *HI[2:],
        *ending(),
    ),
    "thinking with its seal": stream(
        said(thinking="Let me", sealed=("s1",)),
        start(),
        *thinking(0, "Let ", "me", signature="s1"),
        *text(1, "Hello"),
        *ending(),
    ),
    "thinking that is not shown": stream(
        said(sealed=("s1",)), start(), *thinking(0, signature="s1"), *text(1, "Hello"), *ending()
    ),
    "two thinking blocks": stream(
        said(thinking="ab", sealed=("s1", "s2")),
        start(),
        *thinking(0, "a", signature="s1"),
        *thinking(1, "b", signature="s2"),
        *text(2, "Hello"),
        *ending(),
    ),
    "thinking without a seal": stream(
        said(thinking="Hm", sealed=("",)),
        start(),
        opened(0, "thinking", thinking=""),
        grown(0, "thinking_delta", thinking="Hm"),
        closed(0),
        *text(1, "Hello"),
        *ending(),
    ),
    "redacted thinking": stream(
        said(thinking="Hm", sealed=("s1", "hidden")),
        start(),
        *thinking(0, "Hm", signature="s1"),
        opened(1, "redacted_thinking", data="hidden"),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "blocks we do not know": stream(
        said(),
        start(),
        opened(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        grown(0, "input_json_delta", partial_json='{"query": "x"}'),
        closed(0),
        opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "blocks of the future": stream(
        said(),
        start(),
        opened(0, "hologram", text={"not": "a text"}),
        grown(0, "hologram_delta", text=["nor", "this"]),
        closed(0),
        *text(1, "Hello"),
        *ending(),
    ),
    "compaction and fallback": stream(
        said(),
        start(),
        opened(0, "compaction", content=None),
        grown(0, "compaction_delta", content="a summary"),
        closed(0),
        opened(1, "fallback", **{"from": {"model": "a"}, "to": {"model": "b"}}),
        closed(1),
        *text(2, "Hello"),
        *ending(),
    ),
    "events we do not know": stream(
        said(),
        start(),
        {"type": "weather", "delta": "sunny", "index": "x", "message": [1]},
        *HI,
        *ending(),
    ),
    "the stop of a block is missing": stream(
        said(thinking="Hm", sealed=("s1",)),
        start(),
        *thinking(0, "Hm", signature="s1")[:-1],
        *text(1, "Hello")[:-1],
        *ending(),
    ),
    "the start of a block is missing": stream(said(), start(), *HI[1:], *ending()),
    "indexes are missing": stream(
        said(),
        start(),
        *({key: value for key, value in event.items() if key != "index"} for event in HI),
        *ending(),
    ),
}

TOOLS: dict[str, Stream] = {
    "in fragments": stream(
        called(FOUND), start(), *tool(0, "", '{"x"', ": 1}"), *ending("tool_use")
    ),
    "no input at all": stream(
        called(Call("toolu_1", "find", "")), start(), *tool(0), *ending("tool_use")
    ),
    "only empty input": stream(
        called(Call("toolu_1", "find", "")), start(), *tool(0, "", ""), *ending("tool_use")
    ),
    "input whole in the start": stream(
        called(FOUND),
        start(),
        opened(0, "tool_use", id="toolu_1", name="find", input={"x": 1}),
        closed(0),
        *ending("tool_use"),
    ),
    "input in the start and in fragments": stream(
        called(FOUND),
        start(),
        opened(0, "tool_use", id="toolu_1", name="find", input={"x": 2}),
        grown(0, "input_json_delta", partial_json='{"x": 1}'),
        closed(0),
        *ending("tool_use"),
    ),
    "after text and thinking": stream(
        called(FOUND, text="I look.", thinking="Hm", sealed=("s1",)),
        start(),
        *thinking(0, "Hm", signature="s1"),
        *text(1, "I look."),
        *tool(2, '{"x": 1}'),
        *ending("tool_use"),
    ),
    "two in parallel": stream(
        called(FOUND, Call("toolu_2", "read", "{}")),
        start(),
        *tool(0, '{"x": 1}'),
        *tool(1, "{}", call="toolu_2", name="read"),
        *ending("tool_use"),
    ),
    "another id form": stream(
        called(Call("find:0", "find", "{}")),
        start(),
        *tool(0, "{}", call="find:0"),
        *ending("tool_use"),
    ),
    "no id": stream(
        called(Call("toolu_0", "find", "{}")),
        start(),
        *tool(0, "{}", call=""),
        *ending("tool_use"),
    ),
    "no name": stream(
        said("Hello", usage=(3, 5, 0), end="IncompleteAnswer", raw_end=None),
        start(),
        *HI,
        *tool(1, "{}", name=""),
        *ending("tool_use"),
    ),
    "end_turn beside calls": stream(
        called(FOUND, raw_end="end_turn"), start(), *tool(0, '{"x": 1}'), *ending()
    ),
    "max_tokens in the middle of a call": stream(
        called(Call("toolu_1", "find", '{"x"'), end="length", raw_end="max_tokens"),
        start(),
        *tool(0, '{"x"'),
        *ending("max_tokens"),
    ),
    "broken off in a call": stream(
        called(Call("toolu_1", "find", '{"x"'), end="incomplete", raw_end=None, usage=(3, 1, 0)),
        start(),
        *tool(0, '{"x"')[:-1],
    ),
    "leaked into the text": stream(
        called(Call("functions.find:0", "find", "{}"), raw_end="end_turn"),
        start(),
        *text(
            0,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argu",
            "ment_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        ),
        *ending(),
        tools=frozenset({"find"}),
    ),
}

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
        said(notices=("stream_unmarked_end",)), start(), *HI, *ending()[:1]
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
        said("Hello", notices=("stream_damaged",)),
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

STREAMS: dict[str, Stream] = {
    f"{group}: {name}": found
    for group, streams in {
        "blocks": BLOCKS,
        "tools": TOOLS,
        "usage": USAGES,
        "end": ENDS,
        "restart": RESTARTS,
        "error": ERRORS,
        "form": FORMS,
    }.items()
    for name, found in streams.items()
}
