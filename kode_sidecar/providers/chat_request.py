"""Requests to hosts that speak the chat API of OpenAI. Sans-IO.

Source: OpenAI chat completion reference. Hosts differ in little, and `ChatHabits` says in what.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kode_sidecar.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.providers.chat_messages import chat_messages
from kode_sidecar.providers.dialect import EncodedRequest
from kode_sidecar.providers.mfjs import normalize_schema
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.request_wishes import (
    CALL_A_TOOL,
    budget,
    json_bytes,
    sampling,
    tool_choice,
)
from kode_sidecar.providers.tool_schema import object_schema

PATH = "/chat/completions"

Schema = dict[str, Any]

_SCHEMAS = {"json_schema": object_schema, "mfjs": normalize_schema}


@dataclass(frozen=True)
class ChatHabits:
    """What hosts of one kind want to be told, and how.

    `budget_name` is the field for the tokens of an answer, `highest_sampling` the largest
    temperature accepted; `takes_cache_key`: others refuse the unknown field `prompt_cache_key`.
    """

    schema: Callable[[Mapping[str, Any]], Schema]
    budget_name: str
    highest_sampling: float
    takes_cache_key: bool


def encode_chat(request: ModelRequest, profile: ModelProfile, habits: ChatHabits) -> EncodedRequest:
    """The request for one model; wishes it refuses are left out."""
    messages = chat_messages(request.system, request.messages, profile)
    choice = tool_choice(request, profile)
    if choice.asked:
        messages.append({"role": "system", "content": CALL_A_TOOL})
    body: dict[str, Any] = {"model": profile.id, "messages": messages}
    if request.tools:
        schema = _SCHEMAS.get(profile.tool_schema, habits.schema)
        body["tools"] = [_tool(tool, schema) for tool in request.tools]
        body["tool_choice"] = choice.sent
    sent, notices = sampling(request, profile, habits.highest_sampling)
    body.update(sent)
    if request.max_tokens is not None:
        name = profile.names.max_tokens or habits.budget_name
        body[name] = budget(request.max_tokens, request, profile, body)
    if request.cache_key and habits.takes_cache_key:
        body["prompt_cache_key"] = request.cache_key
    body["stream"] = request.stream
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    return EncodedRequest(json_bytes(body), (*choice.notices, *notices))


def bearer_headers(api_key: str) -> dict[str, str]:
    """The headers of every request."""
    return {"authorization": f"Bearer {api_key}", "content-type": "application/json"}


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec, schema: Callable[[Mapping[str, Any]], Schema]) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": schema(tool.schema),
    }
    return {"type": "function", "function": function}
