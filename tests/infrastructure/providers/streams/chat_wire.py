"""Chunks of OpenAI-compatible chat hosts, to build answers of."""

import json
from typing import Any

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream

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
