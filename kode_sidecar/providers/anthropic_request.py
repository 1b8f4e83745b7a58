"""Requests in Anthropic's Messages dialect. Sans-IO.

Source: Messages API reference, with its chapters on tool use, extended thinking and prompt
caching. Thinking is not switched on here: models that think by themselves do so.
"""

from functools import lru_cache
from typing import Any

from kode_sidecar.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.anthropic_history import Json, anthropic_messages
from kode_sidecar.providers.anthropic_messages import MessagesDecoder
from kode_sidecar.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors
from kode_sidecar.providers.request_wishes import (
    CALL_A_TOOL,
    budget,
    json_bytes,
    sampling,
    tool_choice,
)
from kode_sidecar.providers.tool_schema import object_schema

PATH = "/messages"
VERSION = "2023-06-01"

# The field is required; every model served today writes this much.
_DEFAULT_MAX_TOKENS = 8_192
_CACHED: Json = {"type": "ephemeral"}


def headers(api_key: str) -> dict[str, str]:
    """The headers of every request."""
    return {
        "x-api-key": api_key,
        "anthropic-version": VERSION,
        "content-type": "application/json",
    }


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """The request for one model; wishes it refuses are left out."""
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
        # Without a list of tools a history with calls is refused.
        body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
        body["tool_choice"] = {"type": "none"}
    sent_sampling, notices = sampling(request, profile, 1.0)
    if "temperature" in sent_sampling:
        # Together the two are refused.
        sent_sampling.pop("top_p", None)
    body.update(sent_sampling)
    wish = request.max_tokens or profile.max_output or _DEFAULT_MAX_TOKENS
    body["max_tokens"] = budget(wish, request, profile, body)
    body["stream"] = request.stream
    return EncodedRequest(json_bytes(body), (*choice.notices, *notices))


def new_decoder(
    request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
) -> AnswerDecoder:
    """See `Dialect`."""
    return AnswerDecoder(MessagesDecoder.of(request, profile, errors))


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec) -> Json:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": object_schema(tool.schema),
    }


def _called_tools(messages: list[Json]) -> list[str]:
    blocks = (block for message in messages for block in message["content"])
    return list(dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use"))


def _mark_cached(messages: list[Json]) -> None:
    """Cache up to the newest question, and up to the one before it, where the last cache ends."""
    asked: list[dict[str, Any]] = [m for m in messages if m["role"] == "user"]
    for message in asked[-2:]:
        message["content"][-1]["cache_control"] = _CACHED


ANTHROPIC_MESSAGES = Dialect(PATH, headers, encode_request, new_decoder)
