"""What OpenAI's Responses API answers with 400, checked apart from the code that builds requests.

Source: the reference of responses, its guides to reasoning and to conversation state.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_ID = re.compile(r".{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FIELDS = {
    *("model", "input", "instructions", "store", "include", "stream", "tools", "tool_choice"),
    *("temperature", "top_p", "max_output_tokens", "prompt_cache_key", "reasoning"),
}
_PARTS = {"input_text": "text", "input_image": "image_url"}


def refusals(body: Json) -> list[str]:
    """Why the host would refuse this request; empty when it would not."""
    return [*_request(body), *_items(body["input"])]


def _request(body: Json) -> Iterator[str]:
    yield from (f"unknown field {name}" for name in body.keys() - _FIELDS)
    if body.get("max_output_tokens", 16) < 16:
        yield "max_output_tokens"
    if not body["input"]:
        yield "nothing was asked"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice without tools"
    for tool in body.get("tools", ()):
        if tool["type"] != "function" or not _NAME.fullmatch(tool["name"]):
            yield f"tool {tool}"
        if tool["parameters"].get("type") != "object":
            yield f"the schema of {tool['name']} is no object"


def _items(items: Sequence[Json]) -> Iterator[str]:
    open_calls: list[str] = []
    for at, item in enumerate(items):
        where = f"input[{at}]"
        match item["type"]:
            case "function_call" | "function_call_output":
                yield from (f"{where}: {why}" for why in _call(item, open_calls))
            case "reasoning":
                after = items[at + 1]["type"] if at + 1 < len(items) else ""
                if after not in ("reasoning", "message", "function_call"):
                    yield f"{where}: reasoning without its required following item"
            case "message":
                if open_calls and item["role"] == "user":
                    yield f"{where}: No tool output found for {open_calls}"
                yield from (f"{where}: {why}" for why in _message(item))
            case other:
                yield f"{where}: {other}"
    if open_calls:
        yield f"No tool output found for {open_calls}"


def _call(item: Json, open_calls: list[str]) -> Iterator[str]:
    call_id = item["call_id"]
    if item["type"] == "function_call":
        if not _ID.fullmatch(call_id) or call_id in open_calls:
            yield f"call_id {call_id}"
        if not isinstance(json.loads(item["arguments"]), dict):
            yield "arguments"
        open_calls.append(call_id)
    elif call_id not in open_calls:
        yield f"No tool call found for {call_id}"
    else:
        open_calls.remove(call_id)
        if not item["output"]:
            yield "no output"


def _message(item: Json) -> Iterator[str]:
    if item["role"] == "assistant":
        if not isinstance(item["content"], str) or not item["content"].strip():
            yield "an answer is text"
        if item.get("phase", "final_answer") not in ("commentary", "final_answer"):
            yield f"phase {item['phase']}"
        return
    if "phase" in item:
        yield "a phase of a question"
    if item["role"] not in ("user", "system"):
        yield f"role {item['role']}"
    if not item["content"]:
        yield "empty"
    for part in item["content"]:
        if not part.get(_PARTS.get(part["type"], ""), "").strip():
            yield f"part {part}"
