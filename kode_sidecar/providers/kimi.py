"""Requests in Moonshot's dialect of the OpenAI chat API. Sans-IO.

Source: Moonshot chat completion reference and thinking-model guide, with what their servers
were seen to refuse. Equal requests give equal bytes, so the host's prefix cache can work.
"""

import json
from functools import lru_cache
from typing import Any

import msgspec

from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.kernel.contracts import ModelRequest, ToolSpec
from kode_sidecar.providers.answer_decoder import AnswerDecoder
from kode_sidecar.providers.chat_messages import chat_messages
from kode_sidecar.providers.dialect import Dialect, EncodedRequest
from kode_sidecar.providers.mfjs import normalize_schema
from kode_sidecar.providers.openai_chat import ChatDecoder
from kode_sidecar.providers.profiles import ModelProfile
from kode_sidecar.providers.provider_errors import ProviderErrors

_CALL_A_TOOL = "Answer with a call of one of your tools, not with text."

# The budget must fit into the window beside the prompt, or the request is refused. Tokens of the
# prompt are guessed from its bytes; a wrong guess must still leave room for an answer.
_BYTES_PER_TOKEN = 4
_GUESS_MARGIN = 1.15
_SMALLEST_BUDGET = 4_096


def encode_request(request: ModelRequest, profile: ModelProfile) -> EncodedRequest:
    """The request for one model; wishes it refuses are left out."""
    messages = chat_messages(request.system, request.messages, profile)
    tool_choice = request.tool_choice
    if request.tools and tool_choice == "required" and not profile.forced_tools:
        # Most models refuse to be forced, at least while thinking: they are asked instead.
        tool_choice = "auto"
        messages.append({"role": "system", "content": _CALL_A_TOOL})
    body: dict[str, Any] = {"model": profile.id, "messages": messages}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = tool_choice
    notices = _add_sampling(request, profile, body)
    if request.max_tokens is not None:
        body["max_completion_tokens"] = _budget(request.max_tokens, profile, body)
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    return EncodedRequest(_encode(body), notices)


def bearer_headers(api_key: str) -> dict[str, str]:
    """The headers of every request."""
    return {"authorization": f"Bearer {api_key}", "content-type": "application/json"}


def new_decoder(
    request: ModelRequest, profile: ModelProfile, errors: ProviderErrors
) -> AnswerDecoder:
    """The decoder for the answer to a request."""
    names = frozenset(tool.name for tool in request.tools)
    return AnswerDecoder(ChatDecoder(price=profile.price, tool_names=names, errors=errors))


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": normalize_schema(tool.schema),
    }
    return {"type": "function", "function": function}


def _add_sampling(
    request: ModelRequest, profile: ModelProfile, body: dict[str, Any]
) -> tuple[ModelNotice, ...]:
    wishes = {"temperature": request.temperature, "top_p": request.top_p}
    given = {name: wish for name, wish in wishes.items() if wish is not None}
    # Above 1 every Moonshot model refuses both.
    sent = {name: wish for name, wish in given.items() if profile.sampling and wish <= 1}
    body.update(sent)
    dropped = [f"{name} {wish:g}" for name, wish in given.items() if name not in sent]
    if not dropped:
        return ()
    text = f"{profile.id} chooses this itself, so it was not sent: {', '.join(dropped)}."
    return (ModelNotice("sampling_dropped", text),)


def _budget(wish: int, profile: ModelProfile, body: dict[str, Any]) -> int:
    """`max_completion_tokens`: it covers reasoning and answer."""
    if profile.context_window is None:
        return wish
    prompt = len(_encode(body)) / _BYTES_PER_TOKEN * _GUESS_MARGIN
    room = profile.context_window - int(prompt)
    return min(wish, max(room, _SMALLEST_BUDGET))


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half a character, from a file or a cut answer: a question mark takes its place.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


KIMI = Dialect("/chat/completions", bearer_headers, encode_request, new_decoder)
