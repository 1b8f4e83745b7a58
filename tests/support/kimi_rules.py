"""What Moonshot's chat API answers with 400, checked apart from the code that builds requests.

Source: the request rules of Kimi's chat completions (roles, tool calls, reasoning, sampling), and
what hosts of the K3 family say of tools in messages.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{2,63}")
_PINNED = ("temperature", "top_p", "n", "presence_penalty", "frequency_penalty")
_MOST_TOOLS = 128


def refusals(body: Json) -> list[str]:
    """Why the host would refuse this request; empty when it would not.

    The model is one that thinks: sampling is pinned, and every message with tool calls
    must bring its reasoning back.
    """
    return [*_request(body), *_tools(body), *_messages(body["messages"])]


def _request(body: Json) -> Iterator[str]:
    for name in _PINNED:
        if name in body:
            yield f"{name} is pinned for this model"
    if body.get("tool_choice", "auto") not in ("auto", "none"):
        yield f"tool_choice {body['tool_choice']!r}"
    if body.get("stream") is not True:
        yield "not streamed"


def _tools(body: Json) -> Iterator[str]:
    if "tools" in body and not body["tools"]:
        yield "an empty list of tools"
    tools = [tool for one in (body, *body["messages"]) for tool in one.get("tools", [])]
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield f"a tool twice: {names}"
    if len(tools) > _MOST_TOOLS:
        yield "too many tools"
    for tool in tools:
        function = tool["function"]
        if tool["type"] != "function" or not _TOOL_NAME.fullmatch(function["name"]):
            yield f"bad tool {function['name']!r}"
        if function["parameters"].get("type") != "object":
            yield f"the parameters of {function['name']} are no object"


def _messages(messages: Sequence[Json]) -> Iterator[str]:
    if not messages or messages[-1]["role"] not in ("system", "user", "tool"):
        yield "the last message asks nothing"
    position = 0
    while position < len(messages):
        message = messages[position]
        yield from (f"messages[{position}]: {why}" for why in _message(message, position))
        position += 1
        asked = [call["id"] for call in message.get("tool_calls", [])]
        for call_id in asked:
            answer = messages[position] if position < len(messages) else {"role": "nothing"}
            if answer["role"] != "tool":
                yield f"messages[{position}]: {answer['role']}, but call {call_id} has no answer"
                break
            if answer["tool_call_id"] != call_id:
                yield f"messages[{position}] answers {answer['tool_call_id']}, not {call_id}"
            if not _is_text(answer.get("content")):
                yield f"messages[{position}]: an empty tool result"
            position += 1
        while position < len(messages) and messages[position]["role"] == "tool":
            yield f"messages[{position}]: {messages[position]['tool_call_id']} was never asked"
            position += 1


def _message(message: Json, position: int) -> Iterator[str]:
    role = message["role"]
    if role not in ("system", "user", "assistant", "tool"):
        yield f"unknown role {role!r}"
    if "tools" in message:
        if role != "system" or not message["tools"] or "content" in message:
            yield "tools stand in a system message that has nothing else"
        return
    calls = message.get("tool_calls")
    if role == "assistant":
        if "content" in message and not _is_text(message["content"]):
            yield "blank content"
        if "content" not in message and not calls:
            yield "must not be empty"
        if calls and not isinstance(message.get("reasoning_content"), str):
            yield "reasoning_content is missing beside tool_calls"
    elif not _is_text(message.get("content")) and not isinstance(message.get("content"), list):
        yield f"a {role} message without content"
    elif calls is not None:
        yield f"a {role} message with tool_calls"
    if calls is not None:
        yield from _calls(calls)


def _calls(calls: Sequence[Json]) -> Iterator[str]:
    ids = [call["id"] for call in calls]
    if not calls or not all(ids) or len(set(ids)) != len(ids):
        yield f"tool call ids {ids}"
    for call in calls:
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            arguments = None
        if call["type"] != "function" or not isinstance(arguments, dict):
            yield f"call {call['id']} has no JSON object for arguments"
        if not _TOOL_NAME.fullmatch(call["function"]["name"]):
            yield f"call {call['id']} names no tool"


def _is_text(content: Any) -> bool:
    return isinstance(content, str) and bool(content.strip())
