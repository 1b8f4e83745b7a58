"""Events of OpenAI's Responses API, to build answers of: as its reference shows them, whole."""

import json
from typing import Any

from tests.infrastructure.providers.streams.answer import Answer, Call, Stream

Json = dict[str, Any]
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 35,
}


def response(status: str, *output: Json, **fields: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-m",
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
        **fields,
    }


def created(response_id: str = "resp_1") -> list[Json]:
    head = response("in_progress", id=response_id)
    return [
        {"type": "response.created", "response": head},
        {"type": "response.in_progress", "response": head},
    ]


def added(index: int, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def part(name: str, index: int, item_id: str, **fields: Any) -> Json:
    place = {"output_index": index, "item_id": item_id}
    return {"type": f"response.{name}", **place, "content_index": 0, **fields}


def text_item(words: str, item_id: str = "msg_1", status: str = "completed", **fields: Any) -> Json:
    said = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
    content = [said] if words else []
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": status,
        "content": content,
        **fields,
    }


def text(index: int, *pieces: str, item_id: str = "msg_1", **fields: Any) -> list[Json]:
    """A message in full: begun, grown, and told once more at each of its ends."""
    whole = text_item("".join(pieces), item_id, **fields)
    empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    name = "output_text"
    return [
        added(index, text_item("", item_id, "in_progress", **fields)),
        part("content_part.added", index, item_id, part=empty),
        *(part(f"{name}.delta", index, item_id, delta=one, logprobs=[]) for one in pieces),
        part(f"{name}.done", index, item_id, text="".join(pieces), logprobs=[]),
        part("content_part.done", index, item_id, part=whole["content"][0]),
        done(index, whole),
    ]


def call_item(arguments: str, call: str = "call_1", name: str = "find", n: int = 1) -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{n}",
        "call_id": call,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def tool(index: int, *pieces: str, call: str = "call_1", name: str = "find") -> list[Json]:
    item_id, whole = f"fc_{index}", "".join(pieces)
    place = {"output_index": index, "item_id": item_id}
    kind = "response.function_call_arguments"
    return [
        added(index, {**call_item("", call, name, index), "status": "in_progress"}),
        *({"type": f"{kind}.delta", **place, "delta": one} for one in pieces),
        {"type": f"{kind}.done", **place, "arguments": whole, "name": name},
        done(index, call_item(whole, call, name, index)),
    ]


def reasoning_item(*summary: str, sealed: str | None = "gAAAseal", n: int = 0) -> Json:
    return {
        "type": "reasoning",
        "id": f"rs_{n}",
        "summary": [{"type": "summary_text", "text": one} for one in summary],
        **({} if sealed is None else {"encrypted_content": sealed}),
    }


def reasoning(index: int, *summary: str, sealed: str | None = "gAAAseal") -> list[Json]:
    """Each piece of the summary is a part of its own, in two deltas."""
    place = {"output_index": index, "item_id": f"rs_{index}"}
    name, growth = "response.reasoning_summary", list[Json]()
    for number, words in enumerate(summary):
        at = {**place, "summary_index": number}
        half = len(words) // 2
        growth += [
            {"type": f"{name}_part.added", **at, "part": {"type": "summary_text", "text": ""}},
            {"type": f"{name}_text.delta", **at, "delta": words[:half]},
            {"type": f"{name}_text.delta", **at, "delta": words[half:]},
            {"type": f"{name}_text.done", **at, "text": words},
            {"type": f"{name}_part.done", **at, "part": {"type": "summary_text", "text": words}},
        ]
    # What is sealed in the first event may not be whole.
    first = reasoning_item(sealed="gAA" if sealed else None, n=index)
    last = reasoning_item(*summary, sealed=sealed, n=index)
    return [added(index, first), *growth, done(index, last)]


def ending(*output: Json, status: str = "completed", **fields: Any) -> Json:
    fields = {"usage": USAGE, **fields}
    return {"type": f"response.{status}", "response": response(status, *output, **fields)}


def cut(reason: str, *output: Json) -> Json:
    return ending(*output, status="incomplete", incomplete_details={"reason": reason})


def sse(*events: Json | str | bytes) -> bytes:
    """The events as they are sent, numbered."""
    out = bytearray()
    for number, event in enumerate(events):
        if isinstance(event, dict):
            out += f"event: {event.get('type', 'message')}\n".encode()
            event = json.dumps({**event, "sequence_number": number})
        out += b"data: " + (event if isinstance(event, bytes) else event.encode()) + b"\n\n"
    return bytes(out)


HI = text(0, "Hel", "lo")
HELLO = text_item("Hello")
END = ending(HELLO)
FOUND = Call("call_1", "find", '{"x": 1}')
FIND = tool(0, '{"x"', ": 1}")
CALLED = ending(call_item('{"x": 1}', n=0))


def said(words: str = "Hello", **fields: Any) -> Answer:
    return Answer(**{"text": words, "usage": (30, 5, 20), "raw_end": "completed", **fields})


def called(*found: Call, **fields: Any) -> Answer:
    return said("", **{"calls": found or (FOUND,), "end": "tool_calls", **fields})


def broken(words: str = "", **fields: Any) -> Answer:
    return Answer(words, **{"end": "incomplete", "raw_end": None, **fields})


def lost(*found: Call, **fields: Any) -> Answer:
    """Calls that came to nothing: the answer says itself that it is not whole."""
    return called(*found, **{"end": "incomplete", **fields})


def stream(says: Answer, *events: Json | str | bytes, **fields: Any) -> Stream:
    return Stream(sse(*events), says, **fields)
