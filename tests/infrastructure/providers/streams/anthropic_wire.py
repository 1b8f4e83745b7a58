"""Events of Anthropic's Messages API, to build answers of."""

import json
from typing import Any

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream

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
