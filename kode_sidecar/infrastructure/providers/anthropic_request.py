"""Encodes requests of Anthropic's Messages API. Sans-IO.

`context.builder` makes the history complete; blocks that the host would refuse are still left out
here. There are only two roles, and they alternate.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.infrastructure.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.infrastructure.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.infrastructure.providers.offered_tools import offered, offered_tools
from kode_sidecar.infrastructure.providers.openai_request import (
    NO_OUTPUT,
    image_note,
    resource_text,
)
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.request_options import (
    CALL_A_TOOL,
    budget,
    encoded,
    sampling,
    thinking,
    tool_choice,
)
from kode_sidecar.infrastructure.providers.sendable_history import sendable_messages

PATH = "/messages"
VERSION = "2023-06-01"
# The field is required; every model served today writes this much.
_DEFAULT_MAX_TOKENS = 8_192
Json = dict[str, Any]
_CACHED: Json = {"type": "ephemeral"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_EARLIER = "[Earlier messages of this conversation are left out.]"


def headers(api_key: str) -> dict[str, str]:
    """Return the headers of every request."""
    return {
        "x-api-key": api_key,
        "anthropic-version": VERSION,
        "content-type": "application/json",
    }


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """Return the request for one model; options it refuses are left out."""
    tools, left_out = offered_tools(request, profile)
    request = replace(request, tools=tools)
    messages = anthropic_messages(request.messages, profile)
    choice = tool_choice(request, profile)
    if choice.asked and messages:
        messages[-1]["content"].append({"type": "text", "text": CALL_A_TOOL})
    _mark_cached(messages)
    body: Json = {"model": profile.id, "messages": messages}
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        sent = "any" if choice.sent == "required" else choice.sent
        body["tool_choice"] = {"type": sent}
    elif names := _called_tools(messages):
        # The host refuses a history with calls unless the request lists tools.
        body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        body["tool_choice"] = {"type": "none"}
    sent_sampling, notices = sampling(request, profile, 1.0)
    if "temperature" in sent_sampling:
        # The host refuses the two together.
        sent_sampling.pop("top_p", None)
    body.update(sent_sampling)
    wanted = request.max_tokens or profile.max_output or _DEFAULT_MAX_TOKENS
    body["max_tokens"] = budget(wanted, request, profile, body)
    body["stream"] = request.stream
    effort, reported = thinking(request, profile)
    body.update({**profile.body, **effort})
    return EncodedRequest(encoded(body, profile), (*left_out, *choice.notices, *notices, *reported))


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec) -> Json:
    one = offered(tool)
    return {"name": one.name, "description": one.description, "input_schema": one.schema}


def _called_tools(messages: list[Json]) -> list[str]:
    blocks = (block for message in messages for block in message["content"])
    return list(dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use"))


def _mark_cached(messages: list[Json]) -> None:
    """Mark the newest two user messages: the end of the new cache, and that of the last one."""
    asked: list[dict[str, Any]] = [m for m in messages if m["role"] == "user"]
    for message in asked[-2:]:
        message["content"][-1]["cache_control"] = _CACHED


ANTHROPIC_MESSAGES = Dialect(PATH, headers, encode_request, MessagesDecoder.of)


def anthropic_messages(messages: Sequence[Message], profile: ModelProfile) -> list[Json]:
    """Encode the conversation: the user first, roles alternating, tool results first."""
    out: list[Json] = []
    for message in sendable_messages(messages, profile, _keeps_id):
        if message.is_api_error_message:
            continue
        answer = message.role == "assistant"
        content = _answer(message, profile) if answer else _question(message.content, profile)
        if not content:
            continue
        role = "assistant" if answer else "user"
        if not out and answer:
            out.append({"role": "user", "content": [_text(_EARLIER)]})
        if out and out[-1]["role"] == role:
            out[-1]["content"] += content
        else:
            out.append({"role": role, "content": content})
    for message in out:
        # The host wants the results of all calls first in the message after them.
        message["content"].sort(key=_is_no_result)
    return out


def _is_no_result(block: Json) -> bool:
    return block["type"] != "tool_result"


def _keeps_id(_message: Message, tool_use_id: str, used: Set[str]) -> bool:
    """Return whether an id stays: it is unused and has only letters the host accepts."""
    return tool_use_id not in used and _ID.fullmatch(tool_use_id) is not None


def _answer(message: Message, profile: ModelProfile) -> list[Json]:
    own = (message.provider or "") == profile.provider
    content: list[Json] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock):
            # The host refuses reasoning without its signature, or with another vendor's.
            if own and block.signature is not None:
                content.append(_thinking(block, block.signature))
        elif isinstance(block, TextBlock):
            if block.text.strip():
                content.append(_text(block.text))
        elif isinstance(block, ToolUseBlock):
            content.append(_call(block))
    if all(block["type"] in ("thinking", "redacted_thinking") for block in content):
        return []
    return content


def _thinking(block: ThinkingBlock, signature: str) -> Json:
    if block.redacted:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": block.text, "signature": signature}


def _call(block: ToolUseBlock) -> Json:
    return {
        "type": "tool_use",
        "id": block.tool_use_id,
        "name": block.name,
        "input": {} if block.invalid_input is not None else block.input,
    }


def _question(blocks: Sequence[Block], profile: ModelProfile) -> list[Json]:
    content: list[Json] = []
    for block in blocks:
        if isinstance(block, ToolResultBlock):
            content.append(_result(block, profile))
        elif isinstance(block, TextBlock):
            if block.text.strip():
                content.append(_text(block.text))
        elif isinstance(block, ResourceBlock):
            content.append(_text(resource_text(block)))
        elif isinstance(block, ImageBlock):
            content.append(_image(block, profile))
    return content


def _result(block: ToolResultBlock, profile: ModelProfile) -> Json:
    content = [
        _text(part.text) if isinstance(part, TextBlock) else _image(part, profile)
        for part in block.content
        if isinstance(part, ImageBlock) or part.text.strip()
    ]
    result: Json = {
        "type": "tool_result",
        "tool_use_id": block.tool_use_id,
        "content": content or [_text(block.summary.strip() or NO_OUTPUT)],
    }
    if block.is_error:
        result["is_error"] = True
    return result


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _image(block: ImageBlock, profile: ModelProfile) -> Json:
    if not profile.images:
        return _text(image_note(block, profile))
    source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    return {"type": "image", "source": source}
