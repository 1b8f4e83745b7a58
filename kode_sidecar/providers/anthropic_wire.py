"""Events of an Anthropic Messages stream: only what is used, in one struct for all types.

Fields follow the streaming chapter of the Messages API reference. A whole message fits the same
struct. What we do not know of, types and fields, is passed over.
"""

import json
from typing import Any

import msgspec
from msgspec import Struct

from kode_sidecar.domain.message import Usage

Number = int | float | None


class WireUsage(Struct):
    """Cumulative token counts; `input_tokens` leaves out what the cache read and wrote."""

    input_tokens: Number = None
    output_tokens: Number = None
    cache_creation_input_tokens: Number = None
    cache_read_input_tokens: Number = None


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


class BlockDelta(Struct):
    """What grew, or in `message_delta` why the message ended."""

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
    usage: WireUsage | None = None


class Event(Struct):
    """One event, named by its `type`; with type `message` a whole answer."""

    type: str = ""
    index: int | None = None
    delta: BlockDelta | None = None
    content_block: ContentBlock | None = None
    message: MessageHead | str | None = None
    usage: WireUsage | None = None
    error: Any = None
    id: str | None = None
    model: str | None = None
    content: list[ContentBlock] | None = None
    stop_reason: str | None = None


class _TypeOnly(Struct):
    type: str = ""


decode_exact = msgspec.json.Decoder(Event).decode
"""JSON bytes to an `Event`. Raises msgspec.DecodeError (a ValueError) and RecursionError."""

_decode_type = msgspec.json.Decoder(_TypeOnly).decode
_KNOWN = frozenset(
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


def decode_tolerant(data: bytes) -> Event | None:
    """An event from JSON that strict readers refuse; None when it is none at all.

    An event of a type we do not know is one of its type alone, whatever its fields look like.
    """
    try:
        kind = _decode_type(data).type
        if kind and kind not in _KNOWN:
            return Event(kind)
    except (ValueError, RecursionError):
        pass
    try:
        value: object = json.loads(data.decode("utf-8", "replace"), strict=False)
        return msgspec.convert(value, Event, strict=False)
    except (ValueError, RecursionError):
        return None


def merged(first: WireUsage | None, later: WireUsage | None) -> WireUsage | None:
    """Counts are cumulative: what is given again replaces what was given before."""
    if first is None or later is None:
        return later or first
    names = WireUsage.__struct_fields__
    given = {name: getattr(later, name) for name in names if getattr(later, name) is not None}
    return msgspec.structs.replace(first, **given)


def usage_of(wire: WireUsage) -> Usage:
    """Counts in our sense: the whole prompt is fresh input, cache reads and cache writes."""
    cached = int(wire.cache_read_input_tokens or 0)
    written = int(wire.cache_creation_input_tokens or 0)
    tokens_in = int(wire.input_tokens or 0) + cached + written
    tokens_out = int(wire.output_tokens or 0)
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=tokens_in + tokens_out,
        cached_tokens=cached,
    )
