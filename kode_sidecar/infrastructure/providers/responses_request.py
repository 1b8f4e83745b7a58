"""Encodes requests of OpenAI's Responses API. Sans-IO.

Source: OpenAI's reference of responses and its guides to reasoning and conversation state. The
host stores nothing: each request contains the whole conversation with its encrypted reasoning.
`context.builder` makes the history complete.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

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
from kode_sidecar.infrastructure.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.infrastructure.providers.offered_tools import offered, offered_tools
from kode_sidecar.infrastructure.providers.openai_request import (
    NO_OUTPUT,
    bearer_headers,
    image_note,
    resource_text,
)
from kode_sidecar.infrastructure.providers.openai_responses import (
    PHASE,
    REASONING_ITEM,
    ResponsesDecoder,
)
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.request_options import (
    CALL_A_TOOL,
    Keeps,
    budget,
    encoded,
    json_bytes,
    sampling,
    thinking,
    tool_choice,
)
from kode_sidecar.infrastructure.providers.responses_wire import Item
from kode_sidecar.infrastructure.providers.sendable_history import sendable_messages

PATH = "/responses"
# The host refuses a smaller budget.
_LEAST_OUTPUT = 16
_LONGEST_ID = 64
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# These do not reason, and refuse a request for reasoning.
_PLAIN_MODELS = re.compile(r"(.*/)?(chatgpt-|gpt-3|gpt-4)")


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """Return the request for one model; options it refuses are left out."""
    tools, left_out = offered_tools(request, profile)
    request = replace(request, tools=tools)
    items = response_items(request.messages, profile)
    choice = tool_choice(request, profile)
    if choice.asked:
        items.append({"type": "message", "role": "system", "content": CALL_A_TOOL})
    body: dict[str, Any] = {"model": profile.id, "input": items, "store": False}
    if request.system:
        body["instructions"] = request.system
    if not _PLAIN_MODELS.match(profile.id):
        body["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = choice.sent
    sent, notices = sampling(request, profile, 2.0)
    body.update(sent)
    if request.max_tokens is not None:
        most = budget(request.max_tokens, request, profile, body)
        body["max_output_tokens"] = max(most, _LEAST_OUTPUT)
    if request.cache_key and profile.cache_key is not False:
        body["prompt_cache_key"] = request.cache_key
    body["stream"] = request.stream
    effort, reported = thinking(request, profile)
    body.update(_with_effort(profile.body, effort))
    return EncodedRequest(encoded(body, profile), (*left_out, *choice.notices, *notices, *reported))


OPENAI_RESPONSES = Dialect(PATH, bearer_headers, encode_request, ResponsesDecoder.of)


def _with_effort(body: Mapping[str, Any], effort: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's fields and those of an effort, in this dialect's form."""
    fields = {**body, **effort}
    word = fields.pop("reasoning_effort", None)
    if word is not None:
        fields["reasoning"] = {**body.get("reasoning", {}), "effort": word}
    return fields


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec) -> msgspec.Raw:
    """Encode a tool, once for all requests."""
    one = offered(tool)
    fields = {
        "type": "function",
        "name": one.name,
        "description": one.description,
        "parameters": one.schema,
        # The default is True, which refuses optional arguments.
        "strict": False,
    }
    return msgspec.Raw(json_bytes(fields))


def response_items(messages: Sequence[Message], profile: ModelProfile) -> list[Item]:
    """Return the conversation as items, without errors and empty messages."""
    found: list[Item] = []
    for message in sendable_messages(messages, profile, _keeps_id(profile.provider)):
        if message.is_api_error_message:
            continue
        if message.role == "assistant":
            own = bool(message.provider) and message.provider == profile.provider
            found += _answer(message.content, own=own)
        else:
            found += _question(message, profile)
    return found


def _keeps_id(provider: str) -> Keeps:
    """Return a rule by which the host's own ids stay, even repeated ones, unless too long."""

    def keeps(message: Message, tool_use_id: str, used: Set[str]) -> bool:
        own = bool(message.provider) and message.provider == provider
        if own:
            return len(tool_use_id) <= _LONGEST_ID
        return tool_use_id not in used and _ID.fullmatch(tool_use_id) is not None

    return keeps


def _answer(blocks: Sequence[Block], *, own: bool) -> list[Item]:
    """Encode an answer; reasoning only with what followed it, for alone the host refuses it."""
    found: list[Item] = []
    thoughts: list[Item] = []
    for block in blocks:
        if isinstance(block, ThinkingBlock):
            item = (block.opaque or {}).get(REASONING_ITEM)
            if own and item is not None:
                thoughts.append(item)
            continue
        if isinstance(block, TextBlock) and block.text.strip():
            said = {"type": "message", "role": "assistant", "content": block.text}
            phase = (block.opaque or {}).get(PHASE) if own else None
            said |= {} if phase is None else {PHASE: phase}
        elif isinstance(block, ToolUseBlock):
            said = _call(block)
        else:
            continue
        found += [*thoughts, said]
        thoughts.clear()
    return found


def _call(block: ToolUseBlock) -> Item:
    arguments = "{}"
    if block.invalid_input is None:
        arguments = msgspec.json.encode(block.input).decode()
    return {
        "type": "function_call",
        "call_id": block.tool_use_id,
        "name": block.name,
        "arguments": arguments,
    }


def _question(message: Message, profile: ModelProfile) -> list[Item]:
    results = [block for block in message.content if isinstance(block, ToolResultBlock)]
    found = [_result(block, profile) for block in results]
    parts = [part for block in message.content if (part := _part(block, profile)) is not None]
    if parts:
        role = "user" if message.role == "tool" else message.role
        found.append({"type": "message", "role": role, "content": parts})
    return found


def _result(block: ToolResultBlock, profile: ModelProfile) -> Item:
    parts = [part for one in block.content if (part := _part(one, profile)) is not None]
    output: str | list[Item] = parts
    if all(part["type"] == "input_text" for part in parts):
        output = "\n\n".join(part["text"] for part in parts) or block.summary or NO_OUTPUT
    return {"type": "function_call_output", "call_id": block.tool_use_id, "output": output}


def _part(block: Block, profile: ModelProfile) -> Item | None:
    if isinstance(block, ImageBlock) and profile.images:
        return {
            "type": "input_image",
            "image_url": f"data:{block.media_type};base64,{block.data}",
        }
    text = ""
    if isinstance(block, TextBlock):
        text = block.text
    elif isinstance(block, ResourceBlock):
        text = resource_text(block)
    elif isinstance(block, ImageBlock):
        text = image_note(block, profile)
    return {"type": "input_text", "text": text} if text.strip() else None
