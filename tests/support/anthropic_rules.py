"""What Anthropic's Messages API answers with 400, checked apart from the code that builds requests.

Source: Messages API reference, with its chapters on tool use, extended thinking and prompt caching.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FIELDS = {
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "stream",
}
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_MOST_CACHE_MARKS = 4


def refusals(body: Json) -> list[str]:
    """Why the host would refuse this request; empty when it would not."""
    return [*_request(body), *_tools(body), *_messages(body["messages"]), *_cache(body)]


def _request(body: Json) -> Iterator[str]:
    yield from (f"unknown field {name}" for name in body.keys() - _FIELDS)
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens is required"
    if "temperature" in body and "top_p" in body:
        yield "temperature and top_p cannot both be given"
    if not 0 <= body.get("temperature", 0) <= 1:
        yield "temperature"
    yield from (f"system: {why}" for part in body.get("system", ()) for why in _text(part))


def _tools(body: Json) -> Iterator[str]:
    tools = body.get("tools", [])
    names = [tool["name"] for tool in tools]
    if len(set(names)) != len(names) or not all(map(_TOOL_NAME.fullmatch, names)):
        yield f"tool names {names}"
    for tool in tools:
        if tool["input_schema"].get("type") != "object":
            yield f"the schema of {tool['name']} is no object"
    if body.get("tool_choice", {}).get("type") not in (None, "auto", "any", "none"):
        yield f"tool_choice {body['tool_choice']}"
    if "tool_choice" in body and not tools:
        yield "tool_choice without tools"
    called = any(b["type"] == "tool_use" for m in body["messages"] for b in m["content"])
    if called and not tools:
        yield "calls in the history, but no tools"


def _messages(messages: Sequence[Json]) -> Iterator[str]:
    if not messages or messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        yield "first and last message are the user's"
    used: set[str] = set()
    asked: list[str] = []
    before = ""
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        if message["role"] == before or message["role"] not in ("user", "assistant"):
            yield f"{where}: {message['role']} after {before}"
        before = message["role"]
        if not message["content"]:
            yield f"{where} is empty"
        for block in message["content"]:
            yield from (f"{where}: {why}" for why in _block(block, message["role"]))
        answered = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        first = [b["type"] for b in message["content"][: len(answered)]]
        if sorted(answered) != sorted(asked) or set(first) - {"tool_result"}:
            yield f"{where} answers {answered} instead of {asked}, or not at its beginning"
        asked = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        if used & set(asked) or len(set(asked)) != len(asked):
            yield f"{where}: tool_use ids must be unique"
        used |= set(asked)


def _block(block: Json, role: str) -> Iterator[str]:
    kind = block["type"]
    answers = ("text", "thinking", "redacted_thinking", "tool_use")
    if kind not in (answers if role == "assistant" else ("text", "image", "tool_result")):
        yield f"{kind} from the {role}"
    match kind:
        case "text":
            yield from _text(block)
        case "tool_use":
            yield from _call(block)
        case "tool_result":
            for part in block["content"]:
                yield from _block(part, "user")
        case "image" if block["source"]["media_type"] not in _IMAGES:
            yield f"image {block['source']['media_type']}"
        case "redacted_thinking" if not block["data"]:
            yield "redacted thinking without its data"
        case "thinking" if not isinstance(block["signature"], str):
            yield "thinking without its signature"
        case _:
            pass


def _call(block: Json) -> Iterator[str]:
    if not _ID.fullmatch(block["id"]) or not _TOOL_NAME.fullmatch(block["name"]):
        yield f"tool_use {block['id']} {block['name']}"
    if not isinstance(block["input"], dict):
        yield "input is no object"


def _text(block: Json) -> Iterator[str]:
    if not block["text"].strip():
        yield "text content blocks must contain non-whitespace text"


def _cache(body: Json) -> Iterator[str]:
    blocks = [b for m in body["messages"] for b in m["content"]] + list(body.get("system", ()))
    marked = [block for block in blocks if "cache_control" in block]
    if len(marked) > _MOST_CACHE_MARKS:
        yield f"{len(marked)} cache marks"
    if any(block["type"] in ("thinking", "redacted_thinking") for block in marked):
        yield "thinking cannot be cached by a mark of its own"
