"""Answers of OpenAI-compatible hosts, one for each shape that was met in the field."""

import json
from typing import Any

from tests.providers.streams.answer import Answer, Call, Stream

Json = dict[str, Any]
DONE = "[DONE]"


def chunk(delta: Any = None, finish: Any = None, **fields: Any) -> Json:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "m1",
        "choices": [choice],
    } | fields


def says(content: Any, **fields: Any) -> Json:
    return chunk({"content": content}, **fields)


def thinks(text: Any) -> Json:
    return chunk({"reasoning_content": text})


def piece(index: int | None, arguments: Any = None, *, call: Any = None, name: Any = None) -> Json:
    """A fragment of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call, "type": None if name is None else "function"}
    found = {key: value for key, value in call.items() if value is not None}
    found["function"] = {key: value for key, value in function.items() if value is not None}
    return found


def calls(*pieces: Json) -> Json:
    return chunk({"tool_calls": list(pieces)})


def sse(*events: Json | str | bytes) -> bytes:
    def data(event: Json | str | bytes) -> bytes:
        if isinstance(event, bytes):
            return event
        return (event if isinstance(event, str) else json.dumps(event)).encode()

    return b"".join(b"data: " + data(event) + b"\n\n" for event in events)


STOP = chunk(finish="stop")
CALLS = chunk(finish="tool_calls")
ROLE = chunk({"role": "assistant", "content": ""})
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
ONE = (Call("a", "find", '{"x":1}'),)
TWO = (*ONE, Call("b", "read", "{}"))


def end(code: str) -> Answer:
    return Answer("Hi", end=code, raw_end=None)


def called(*found: Call, **fields: Any) -> Answer:
    return Answer(**{"calls": found, "end": "tool_calls", "raw_end": "tool_calls", **fields})


def stream(says: Answer, *events: Json | str | bytes, **fields: Any) -> Stream:
    return Stream(sse(*events), says, **fields)


TEXT: dict[str, Stream] = {
    "plain": stream(Answer("Hello world"), ROLE, says("Hello "), says("world"), STOP, DONE),
    "white space deltas count": stream(
        Answer("a \n b"), says("a"), says(" "), says("\n"), says(" b"), STOP, DONE
    ),
    "newlines before the answer": stream(Answer("\n\nHi"), says("\n\n"), says("Hi"), STOP, DONE),
    "first chunk all empty": stream(
        Answer("Hi"),
        {**chunk(), "id": "", "model": "", "choices": [], "prompt_filter_results": [{}]},
        says("Hi"),
        STOP,
        DONE,
    ),
    "choices null": stream(Answer("Hi"), {**chunk(), "choices": None}, says("Hi"), STOP, DONE),
    "choices absent": stream(Answer("Hi"), {"id": "c1"}, says("Hi"), STOP, DONE),
    "finish_reason absent": stream(
        Answer("Hi"),
        {**chunk(), "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        STOP,
        DONE,
    ),
    "delta null": stream(
        Answer("Hi"),
        says("Hi"),
        {**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        STOP,
        DONE,
    ),
    "content null": stream(Answer("Hi"), says(None), says("Hi"), STOP, DONE),
    "tool_calls null and empty": stream(
        Answer("Hi"),
        chunk({"content": "Hi", "tool_calls": None}),
        chunk({"tool_calls": []}),
        STOP,
        DONE,
    ),
    "content as a list of parts": stream(
        Answer("Hi you", "Hm so"),
        says([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm so"}]}]),
        says([{"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": [1]}]),
        says(" you"),
        STOP,
        DONE,
    ),
    "thinking part with a plain text": stream(
        Answer("Hi", "Hm"),
        says([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}]),
        STOP,
        DONE,
    ),
    "a refusal": stream(Answer("I can't."), chunk({"refusal": "I can't."}), STOP, DONE),
    "ids as numbers": stream(Answer("Hi"), says("Hi", id=7), chunk(finish="stop", id=7), DONE),
    "a new id for each chunk": stream(
        Answer("Hi you"),
        says("Hi", id="1"),
        says(" you", id="2"),
        chunk(finish="stop", id="3"),
        DONE,
    ),
    "a character cut in two": stream(
        Answer("a🎉b\ufffdc"),
        json.dumps(says("a\ud83c")),
        json.dumps(says("\udf89b")),
        json.dumps(says("\udf89c")),
        STOP,
        DONE,
    ),
    "a raw control character": stream(
        Answer("a\tb"), json.dumps(says("a-b")).replace("-b", "\tb"), STOP, DONE
    ),
    "bytes that are not UTF-8": stream(
        Answer("a\ufffdb"), json.dumps(says("a-b")).encode().replace(b"-b", b"\xffb"), STOP, DONE
    ),
    "NaN beside the text": stream(
        Answer("Hi"), json.dumps(says("Hi", score=float("nan"))), STOP, DONE
    ),
    "one bad event": stream(
        Answer("ab", notices=("stream_damaged",)),
        says("a"),
        b'{"id":"c1","choi{"id":"c1"',
        says("b"),
        STOP,
        DONE,
    ),
    "an event with the next one glued to it": stream(
        Answer("ac", notices=("stream_damaged",)),
        says("a"),
        json.dumps(says("b"))[:-9].encode() + b"data: " + json.dumps(says("b")).encode(),
        says("c"),
        STOP,
        DONE,
    ),
    "two bad events apart": stream(
        Answer("ab", notices=("stream_damaged",)), says("a"), b"{", says("b"), b"[1", STOP, DONE
    ),
    "two bad events in a row": stream(
        Answer("a", end="incomplete", raw_end=None), says("a"), b"{", b"}", says("b"), STOP, DONE
    ),
    "a second completion glued to the first": stream(
        Answer("Hi"),
        ROLE,
        says("Hi"),
        STOP,
        chunk({"role": "assistant", "content": ""}, id="c2"),
        says("ghost", id="c2"),
        chunk(finish="length", id="c2"),
        DONE,
    ),
    "the answer begins anew in the middle": stream(
        Answer("Hello", drops=1),
        ROLE,
        says("Hel"),
        chunk({"role": "assistant", "content": ""}, id="c2"),
        says("Hello", id="c2"),
        chunk(finish="stop", id="c2"),
        DONE,
    ),
}

REASONING: dict[str, Stream] = {
    "before the answer": stream(
        Answer("Hi", "Let me"), ROLE, thinks("Let "), thinks("me"), says("Hi"), STOP, DONE
    ),
    "empty is there, too": stream(
        Answer("Hi"), chunk({"role": "assistant", "reasoning_content": ""}), says("Hi"), STOP, DONE
    ),
    "null is not": stream(Answer("Hi"), thinks(None), says("Hi"), STOP, DONE),
    "by its other name": stream(
        Answer("Hi", "Hm"), chunk({"reasoning": "Hm"}), says("Hi"), STOP, DONE
    ),
    "by both names at once": stream(
        Answer("Hi", "Hm"),
        chunk({"reasoning": "Hm", "reasoning_content": "Hm"}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "with its details beside it": stream(
        Answer("Hi", "Hm so"),
        chunk({"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}),
        chunk({"reasoning": " so", "reasoning_details": [{"text": " so"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "as details alone": stream(
        Answer("Hi", "Hm so"),
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": " so"}]}),
        says("Hi"),
        STOP,
        DONE,
    ),
    "as tags in the text": stream(
        Answer("\n\nHi", "Hm so"),
        says("<th"),
        says("ink>\nHm"),
        says(" so</thi"),
        says("nk>\n\nHi"),
        STOP,
        DONE,
    ),
    "as empty tags": stream(Answer("\n\nHi"), says("<think>\n\n</think>\n\nHi"), STOP, DONE),
    "tags further on are text": stream(
        Answer("Write <think>x</think>."), says("Write <think>x<"), says("/think>."), STOP, DONE
    ),
    "what only looks like a tag": stream(
        Answer("<thin air"), says("<thin"), says(" air"), STOP, DONE
    ),
    "tags that never close": stream(
        Answer(thinking="Hm", end="EmptyAnswer", raw_end=None), says("<think>Hm"), STOP, DONE
    ),
    "and nothing else": stream(
        Answer(thinking="Hm", end="EmptyAnswer", raw_end=None), thinks("Hm"), STOP, DONE
    ),
    "and nothing else, out of budget": stream(
        Answer(thinking="Hm", end="length", raw_end="length"),
        thinks("Hm"),
        chunk(finish="length"),
        DONE,
    ),
    "the connection drops in the middle of it": stream(
        Answer(thinking="Hm", end="incomplete", raw_end=None), thinks("Hm")
    ),
}

TOOLS: dict[str, Stream] = {
    "in fragments": stream(
        called(*ONE),
        ROLE,
        calls(piece(0, "", call="a", name="find")),
        calls(piece(0, '{"x"')),
        calls(piece(0, ":1}")),
        CALLS,
        DONE,
    ),
    "Kimi's own ids stay": stream(
        called(Call("find:0", "find", "{}"), text="I look.", thinking="Hm"),
        thinks("Hm"),
        says("I look."),
        calls(piece(0, "", call="find:0", name="find")),
        calls(piece(0, "{}")),
        CALLS,
        DONE,
        needs_done=True,
    ),
    "whole in the first fragment": stream(
        called(*ONE), calls(piece(0, '{"x":1}', call="a", name="find")), CALLS, DONE
    ),
    "the type is missing": stream(
        called(*ONE),
        calls({"index": 0, "id": "a", "function": {"name": "find", "arguments": '{"x":1}'}}),
        CALLS,
        DONE,
    ),
    "arguments as an object": stream(
        called(Call("a", "find", '{"x": 1}')),
        calls(piece(0, {"x": 1}, call="a", name="find")),
        CALLS,
        DONE,
    ),
    "arguments never come": stream(
        called(Call("a", "find", "")), calls(piece(0, call="a", name="find")), CALLS, DONE
    ),
    "arguments null": stream(
        called(Call("a", "find", "")),
        calls({"index": 0, "id": "a", "function": {"name": "find", "arguments": None}}),
        CALLS,
        DONE,
    ),
    "a raw control character in the arguments": stream(
        called(Call("a", "find", '{"x":"a\tb"}')),
        calls(piece(0, '{"x":"a\tb"}', call="a", name="find")),
        CALLS,
        DONE,
    ),
    "id and name in every fragment": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a", name="find")),
        calls(piece(0, ":1}", call="a", name="find")),
        CALLS,
        DONE,
    ),
    "id empty in later fragments": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a", name="find")),
        calls(piece(0, ":1}", call="", name="")),
        CALLS,
        DONE,
    ),
    "the name comes late": stream(
        called(*ONE),
        calls(piece(0, '{"x"', call="a")),
        calls(piece(0, ":1}", name="find")),
        CALLS,
        DONE,
    ),
    "the id comes late": stream(
        called(*ONE),
        calls(piece(0, '{"x"', name="find")),
        calls(piece(0, ":1}", call="a")),
        CALLS,
        DONE,
    ),
    "the id never comes": stream(
        called(Call("functions.find:0", "find", '{"x":1}')),
        calls(piece(0, '{"x":1}', name="find")),
        CALLS,
        DONE,
    ),
    "the name never comes": stream(
        Answer("Hi", end="IncompleteAnswer", raw_end=None),
        says("Hi"),
        calls(piece(0, "{}", call="a")),
        CALLS,
        DONE,
    ),
    "two one after the other": stream(
        called(*TWO),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(1, "{}", call="b", name="read")),
        CALLS,
        DONE,
    ),
    "two interleaved": stream(
        called(*TWO),
        calls(piece(0, '{"x"', call="a", name="find"), piece(1, "{", call="b", name="read")),
        calls(piece(0, ":1}"), piece(1, "}")),
        CALLS,
        DONE,
    ),
    "two under one index": stream(
        called(*TWO),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(0, "{}", call="b", name="read")),
        CALLS,
        DONE,
    ),
    "two of one tool under one index": stream(
        called(*ONE, Call("b", "find", "{}")),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        calls(piece(0, "{}", call="b", name="find")),
        CALLS,
        DONE,
    ),
    "the index is missing, each entry a call": stream(
        called(*TWO),
        calls(
            piece(None, '{"x":1}', call="a", name="find"),
            piece(None, "{}", call="b", name="read"),
        ),
        CALLS,
        DONE,
    ),
    "the index is missing in fragments": stream(
        called(*ONE),
        calls(piece(None, '{"x"', call="a", name="find")),
        calls(piece(None, ":1}")),
        CALLS,
        DONE,
    ),
    "indexes from 1": stream(
        called(*ONE), calls(piece(1, '{"x":1}', call="a", name="find")), CALLS, DONE
    ),
    "the index as text": stream(
        called(*ONE),
        calls({**piece(None, '{"x":1}', call="a", name="find"), "index": "0"}),
        CALLS,
        DONE,
    ),
    "finish stop beside calls": stream(
        called(*ONE, raw_end="stop"),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        STOP,
        DONE,
    ),
    "finish length beside calls": stream(
        called(Call("a", "find", '{"x"'), end="length", raw_end="length"),
        calls(piece(0, '{"x"', call="a", name="find")),
        chunk(finish="length"),
        DONE,
    ),
    "no finish reason, but the end mark": stream(
        called(*ONE, raw_end=None), calls(piece(0, '{"x":1}', call="a", name="find")), DONE
    ),
    "the stream breaks off": stream(
        called(Call("a", "find", '{"x"'), end="incomplete", raw_end=None),
        calls(piece(0, '{"x"', call="a", name="find")),
    ),
    "the arguments are no object": stream(
        called(Call("a", "find", "[1]")),
        calls(piece(0, "[1]", call="a", name="find")),
        CALLS,
        DONE,
    ),
}

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

OFFERED = frozenset({"find", "read"})


def marked(*given: tuple[str, str], begin: str = "<|tool_calls_section_begin|>") -> str:
    found = (
        f"<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{args}<|tool_call_end|>"
        for n, (name, args) in enumerate(given)
    )
    return f"{begin}{''.join(found)}<|tool_calls_section_end|>"


LEAKED_ONE = called(Call("functions.find:0", "find", '{"x":1}'), text="I look. ", raw_end="stop")
ONE_MARKED = "I look. " + marked(("find", '{"x":1}'))

LEAKS: dict[str, Stream] = {
    "in the text": stream(LEAKED_ONE, says(ONE_MARKED), STOP, DONE, tools=OFFERED),
    "in the text, letter by letter": stream(
        LEAKED_ONE, *map(says, ONE_MARKED), STOP, DONE, tools=OFFERED
    ),
    "in the reasoning": stream(
        called(Call("functions.find:0", "find", "{}"), thinking="Hm. ", raw_end="stop"),
        thinks("Hm. "),
        thinks(marked(("find", "{}"))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "in the reasoning, letter by letter": stream(
        called(Call("functions.find:0", "find", "{}"), raw_end="stop"),
        thinks(""),
        *map(thinks, marked(("find", "{}"))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "two of them": stream(
        called(
            Call("functions.find:0", "find", "{}"),
            Call("functions.read:1", "read", '{"p": "<|x|>"}'),
            raw_end="stop",
        ),
        says(marked(("find", "{}"), ("read", '{"p": "<|x|>"}'))),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "what only looks like a marker": stream(
        Answer("a < b <|tool_box|> <"),
        *map(says, "a < b <|tool_box|> <"),
        STOP,
        DONE,
        tools=OFFERED,
    ),
    "the start of a marker before a call": stream(
        called(*ONE, text="a <"),
        says("a <"),
        calls(piece(0, '{"x":1}', call="a", name="find")),
        CALLS,
        DONE,
        tools=OFFERED,
    ),
    "the start of a marker in the reasoning": stream(
        Answer("Hi", "a <|tool"), thinks("a <|tool"), says("Hi"), STOP, DONE, tools=OFFERED
    ),
    "a tool that is not on offer": stream(
        Answer(marked(("rm_rf", "{}"))), says(marked(("rm_rf", "{}"))), STOP, DONE, tools=OFFERED
    ),
    "cut off": stream(
        Answer(ONE_MARKED[:70], end="incomplete", raw_end=None),
        says(ONE_MARKED[:70]),
        tools=OFFERED,
    ),
}

STREAMS: dict[str, Stream] = {
    f"{group}: {name}": found
    for group, streams in {
        "text": TEXT,
        "reasoning": REASONING,
        "tools": TOOLS,
        "usage": USAGES,
        "end": ENDS,
        "error": ERRORS,
        "leak": LEAKS,
    }.items()
    for name, found in streams.items()
}
