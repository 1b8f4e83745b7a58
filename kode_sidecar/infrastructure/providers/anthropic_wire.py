"""Events of an Anthropic Messages stream: only the fields we use, one struct for all types.

Fields follow the streaming chapter of the Messages API reference. The struct also fits a whole
message. Unknown types and fields are ignored.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import Usage
from kode_sidecar.core.text.lenient_json import Number, lenient_json, token_count


class Written(Struct):
    """The tokens written to the cache that stay there for longer than usual."""

    ephemeral_1h_input_tokens: Number = None


class AnthropicUsage(Struct):
    """Cumulative token counts; `input_tokens` leaves out what the cache read and wrote."""

    input_tokens: Number = None
    output_tokens: Number = None
    cache_creation_input_tokens: Number = None
    cache_read_input_tokens: Number = None
    cache_creation: Written | None = None


class ContentBlock(Struct):
    """The start of a block, or a whole one. `data` is the one field of redacted thinking."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class AnthropicDelta(Struct):
    """The growth of a block, or in `message_delta` why the message ended."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class MessageHead(Struct):
    """The message that `message_start` announces."""

    id: str | None = None
    model: str | None = None
    usage: AnthropicUsage | None = None


class AnthropicEvent(Struct):
    """One event, named by its `type`; with type `message` a whole answer."""

    type: str = ""
    index: int | None = None
    delta: AnthropicDelta | None = None
    content_block: ContentBlock | None = None
    message: MessageHead | str | None = None
    usage: AnthropicUsage | None = None
    error: Any = None
    id: str | None = None
    model: str | None = None
    content: list[ContentBlock] | None = None
    stop_reason: str | None = None


decode_exact = msgspec.json.Decoder(AnthropicEvent).decode
"""JSON bytes to an event. Raises msgspec.DecodeError (a ValueError) and RecursionError."""

_KNOWN_EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message",
        "ping",
        "error",
    }
)
_KNOWN_PARTS = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
    }
)


def decode_tolerant(data: bytes) -> AnthropicEvent | None:
    """Return an event from JSON that strict readers refuse; None if it is no event.

    An event, block or delta of an unknown type is reduced to its type, since its fields may not
    fit ours.
    """
    value = lenient_json(data)
    try:
        return msgspec.convert(_without_unknown(value), AnthropicEvent, strict=False)
    except (ValueError, RecursionError):
        return None


def _without_unknown(value: object) -> object:
    if not isinstance(value, dict):
        return value
    event = cast(dict[str, Any], value)
    kind = event.get("type")
    if isinstance(kind, str) and kind not in _KNOWN_EVENTS:
        return {"type": kind, "error": event.get("error")}
    for name in ("content_block", "delta"):
        part = event.get(name)
        if isinstance(part, dict):
            part_kind = cast(dict[str, Any], part).get("type")
            if isinstance(part_kind, str) and part_kind not in _KNOWN_PARTS:
                event[name] = {"type": part_kind}
    return event


def merged(first: AnthropicUsage | None, later: AnthropicUsage | None) -> AnthropicUsage | None:
    """Merge usage reports: counts are cumulative, so a later count replaces an earlier one."""
    if first is None or later is None:
        return later or first
    names = AnthropicUsage.__struct_fields__
    given = {name: getattr(later, name) for name in names if getattr(later, name) is not None}
    return msgspec.structs.replace(first, **given)


def usage_of(wire: AnthropicUsage) -> Usage:
    """Convert the counts: our input tokens are fresh input, cache reads and cache writes."""
    cached = token_count(wire.cache_read_input_tokens)
    written = token_count(wire.cache_creation_input_tokens)
    tokens_in = token_count(wire.input_tokens) + cached + written
    tokens_out = token_count(wire.output_tokens)
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=tokens_in + tokens_out,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def written_for_an_hour(wire: AnthropicUsage) -> int:
    """Return how many of the tokens written stay in the cache for an hour."""
    written = wire.cache_creation or Written()
    return token_count(written.ephemeral_1h_input_tokens)
