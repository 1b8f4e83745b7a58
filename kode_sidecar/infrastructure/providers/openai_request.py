"""Encodes requests of OpenAI's chat API. Sans-IO.

Source: OpenAI chat completion reference. `ChatWishes` has the few differences between hosts.
`context.builder` makes the history complete; messages that a host would refuse are still left out
here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from kode_sidecar.core.domain.message import (
    NEW_TOOLS,
    OWN_WORDS,
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
from kode_sidecar.core.text.shown_text import fence_of
from kode_sidecar.infrastructure.providers.dialect import EncodedRequest
from kode_sidecar.infrastructure.providers.offered_tools import offered, offered_tools
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.request_options import (
    CALL_A_TOOL,
    Keeps,
    budget,
    encoded,
    is_foreign,
    json_bytes,
    sampling,
    thinking,
    tool_choice,
)
from kode_sidecar.infrastructure.providers.sendable_history import sendable_messages

PATH = "/chat/completions"
LateTools = Mapping[str, Sequence[ToolSpec]]
ChatMessage = dict[str, Any]
# The fields of a block that this dialect sends back; others came in another dialect of the host.
_GIVEN_BACK = ("reasoning_details", "extra_content")
NO_OUTPUT = "(no output)"


@dataclass(frozen=True)
class ChatWishes:
    """How the hosts of one kind want their requests.

    `budget_name` is the field for the tokens of an answer, `highest_sampling` the largest
    temperature accepted; `takes_cache_key`: others refuse the unknown field `prompt_cache_key`.
    """

    budget_name: str
    highest_sampling: float
    takes_cache_key: bool


def encode_chat(request: ModelRequest, profile: ModelProfile, wishes: ChatWishes) -> EncodedRequest:
    """Return the request for one model; options it refuses are left out."""
    tools, left_out = offered_tools(request, profile)
    request = replace(request, tools=tools)
    late: LateTools = late_tools(request) if profile.late_tools else {}
    messages = chat_messages(request.system, request.messages, profile, late)
    choice = tool_choice(request, profile)
    if choice.asked:
        messages.append({"role": "system", "content": CALL_A_TOOL})
    body: dict[str, Any] = {"model": profile.id, "messages": messages}
    if request.tools:
        reported = {tool.name for tools in late.values() for tool in tools}
        body["tools"] = [_tool(one) for one in request.tools if one.name not in reported]
        body["tool_choice"] = choice.sent
    sent, notices = sampling(request, profile, wishes.highest_sampling)
    body.update(sent)
    if request.max_tokens is not None:
        name = profile.names.max_tokens or wishes.budget_name
        body[name] = budget(request.max_tokens, request, profile, body)
    takes = wishes.takes_cache_key if profile.cache_key is None else profile.cache_key
    if request.cache_key and takes:
        body["prompt_cache_key"] = request.cache_key
    body["stream"] = request.stream
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    effort, reported = thinking(request, profile)
    body.update({**profile.body, **effort})
    return EncodedRequest(encoded(body, profile), (*left_out, *choice.notices, *notices, *reported))


def bearer_headers(api_key: str) -> dict[str, str]:
    """Return the headers of every request."""
    return {"authorization": f"Bearer {api_key}", "content-type": "application/json"}


@lru_cache(maxsize=256)
def _tool(tool: ToolSpec) -> msgspec.Raw:
    """Encode a tool, once for all requests."""
    one = offered(tool)
    function = {"name": one.name, "description": one.description, "parameters": one.schema}
    return msgspec.Raw(json_bytes({"type": "function", "function": function}))


def late_tools(request: ModelRequest) -> LateTools:
    """Return the tools that messages added to the conversation, by id of the first such message.

    Empty if no tool would be left for the request itself, which needs one for its tool choice.
    """
    left = {tool.name: tool for tool in request.tools}
    found: dict[str, list[ToolSpec]] = {}
    for message in request.messages:
        names: object = message.meta.get(NEW_TOOLS)
        known = cast(list[object], names) if isinstance(names, list) else ()
        came = [left.pop(one) for one in known if isinstance(one, str) and one in left]
        if came:
            found[message.id] = came
    return found if left else {}


def chat_messages(
    system: str,
    messages: Sequence[Message],
    profile: ModelProfile,
    late: LateTools,
) -> list[ChatMessage]:
    """Encode the system prompt and the conversation, without errors and empty messages.

    `late` are the tools to declare before a message, by its id.
    """
    found: list[ChatMessage] = []
    if system:
        found.append({"role": "system", "content": system})
    for message in sendable_messages(messages, profile, _keeps_id(profile.provider)):
        if tools := late.get(message.id):
            # The host refuses such a message with a content, even null.
            found.append({"role": "system", "tools": [_tool(one) for one in tools]})
        if not message.is_api_error_message:
            found += _encode(message, profile)
    return found


def _keeps_id(provider: str) -> Keeps:
    """Return a rule by which a host's own ids stay verbatim, even repeated ones."""
    return lambda message, _id, _used: not is_foreign(message, provider)


def _encode(message: Message, profile: ModelProfile) -> list[ChatMessage]:
    if message.role == "assistant":
        own = bool(message.provider) and message.provider == profile.provider
        return _assistant(message.content, profile, own=own)
    results = [block for block in message.content if isinstance(block, ToolResultBlock)]
    found = [_result(block, profile) for block in results]
    # Results can only be text in this dialect, so images of tools follow in a user message.
    seen = [part for one in results for part in one.content if isinstance(part, ImageBlock)]
    if content := _content([*(seen if profile.images else ()), *message.content], profile):
        found.append({"role": _role(message, profile), "content": content})
    return found


def _role(message: Message, profile: ModelProfile) -> str:
    is_note = message.meta.get("origin") == "reminder" and message.meta.get(OWN_WORDS) is True
    if is_note and profile.system_notes:
        return "system"
    return "user" if message.role == "tool" else message.role


def _assistant(blocks: Sequence[Block], profile: ModelProfile, *, own: bool) -> list[ChatMessage]:
    """Encode an answer. `own`: this host gave it, and gets its opaque fields back."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    opaque: dict[str, Any] = {}
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ThinkingBlock):
            thoughts.append(block.text)
            opaque.update(_given_back(block) if own else {})
        elif isinstance(block, ToolUseBlock):
            calls.append({**_call(block), **(_given_back(block) if own else {})})
    text = _joined(texts)
    if not text and not calls:
        return []
    message: ChatMessage = {"role": "assistant"}
    if text:
        # Hosts refuse a blank content beside calls, so it is left out.
        message["content"] = text
    if profile.thinking != "never" and (thoughts or calls):
        # A thinking model requires its reasoning with every call. Some hosts take an empty one,
        # Moonshot's take one blank instead.
        blank = " " if calls and (profile.blank_reasoning or profile.dialect == "kimi") else ""
        name = profile.names.reasoning_back or "reasoning_content"
        message[name] = "".join(thoughts) or blank
    if calls:
        message["tool_calls"] = calls
    return [{**opaque, **message}]


def _given_back(block: ThinkingBlock | ToolUseBlock) -> dict[str, Any]:
    opaque = block.opaque or {}
    return {name: opaque[name] for name in _GIVEN_BACK if name in opaque}


def _call(block: ToolUseBlock) -> dict[str, Any]:
    arguments = "{}"
    if block.invalid_input is None:
        arguments = msgspec.json.encode(block.input).decode()
    function = {"name": block.name, "arguments": arguments}
    return {"id": block.tool_use_id, "type": "function", "function": function}


def _result(block: ToolResultBlock, profile: ModelProfile) -> ChatMessage:
    text = _joined(
        part.text if isinstance(part, TextBlock) else _image_of_result(part, profile)
        for part in block.content
    )
    return {
        "role": "tool",
        "tool_call_id": block.tool_use_id,
        "content": text or block.summary or NO_OUTPUT,
    }


def _content(blocks: Sequence[Block], profile: ModelProfile) -> str | list[dict[str, Any]]:
    """Return a plain text if there are no images (some models take only text), else parts."""
    texts: list[str] = []
    images: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ResourceBlock):
            texts.append(resource_text(block))
        elif isinstance(block, ImageBlock) and profile.images:
            url = f"data:{block.media_type};base64,{block.data}"
            images.append({"type": "image_url", "image_url": {"url": url}})
        elif isinstance(block, ImageBlock):
            texts.append(image_note(block, profile))
    text = _joined(texts)
    if not images:
        return text
    return [*images, *([{"type": "text", "text": text}] if text else ())]


def _image_of_result(image: ImageBlock, profile: ModelProfile) -> str:
    if profile.images:
        return f"[An image, {image.media_type}: it follows the results.]"
    return image_note(image, profile)


def image_note(block: ImageBlock, profile: ModelProfile) -> str:
    """Return the text in place of an image, for a model that reads text only."""
    return f"[An image, {block.media_type}: {profile.id} reads text only.]"


def resource_text(block: ResourceBlock) -> str:
    """Return an attached file or selection as text: its path, then its text in a fence."""
    label = f"Attached: {_path(block.uri)}"
    if block.name and block.name not in label:
        label += f" ({block.name})"
    if block.start_line is not None:
        end = block.start_line if block.end_line is None else block.end_line
        label += f", lines {block.start_line}-{end}"
    if block.text is None:
        return label
    fence = fence_of(block.text)
    end = "" if block.text.endswith("\n") else "\n"
    return f"{label}\n{fence}{block.language_id or ''}\n{block.text}{end}{fence}"


def _path(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
    # file:///c%3A/x is the path c:/x
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join([text for text in texts if text and not text.isspace()])
