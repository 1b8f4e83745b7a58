"""Events of OpenAI's Responses API: only the fields we use, one struct for all types. Sans-IO.

Fields follow the streaming and response objects of OpenAI's reference. Items stay plain objects:
they have many shapes, and reasoning must go back to its host unchanged.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import Usage
from kode_sidecar.core.text.lenient_json import Number, lenient_json, token_count

Item = dict[str, Any]


class InputDetails(Struct):
    """The input tokens read from the host's cache, and those written to it."""

    cached_tokens: Number = None
    cache_write_tokens: Number = None


class OutputDetails(Struct):
    """The output tokens spent on reasoning."""

    reasoning_tokens: Number = None


class ResponsesUsage(Struct):
    """Token counts; the input includes cached tokens, the output includes reasoning."""

    input_tokens: Number = None
    output_tokens: Number = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class ResponsesReply(Struct):
    """The answer as an object: its head at the start, its end, or all of it."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    output: list[Any] | None = None
    usage: ResponsesUsage | None = None
    error: Any = None
    incomplete_details: Any = None


class ResponsesEvent(Struct):
    """One event, named by its `type`; without one an error, or a whole answer (`object`)."""

    type: str = ""
    object: str = ""
    output_index: int | None = None
    item_id: str | int | None = None
    summary_index: int | None = None
    delta: Any = None
    arguments: Any = None
    item: Any = None
    response: ResponsesReply | None = None
    error: Any = None
    code: Any = None
    message: Any = None


decode_exact = msgspec.json.Decoder(ResponsesEvent).decode
"""JSON bytes to an event. Raises msgspec.DecodeError (a ValueError) and RecursionError."""


def decode_tolerant(data: bytes) -> ResponsesEvent | None:
    """Return an event from JSON that strict readers refuse; None if it is no event.

    An event whose fields do not fit, and that we do not need, is reduced to its type.
    """
    value = lenient_json(data)
    try:
        return msgspec.convert(value, ResponsesEvent, strict=False)
    except (ValueError, RecursionError):
        pass
    kind = text_of(fields_of(value), "type")
    return ResponsesEvent(kind) if kind and not _is_ours(kind) else None


def _is_ours(kind: str) -> bool:
    """Return whether an event must not lose its fields."""
    return kind.endswith((".delta", ".added", ".done", ".completed", ".incomplete", ".failed"))


def whole_reply(data: bytes) -> ResponsesReply:
    """Return a whole answer, which came as one JSON object."""
    try:
        return msgspec.convert(lenient_json(data), ResponsesReply, strict=False)
    except (ValueError, RecursionError):
        return ResponsesReply()


def fields_of(value: object) -> Item:
    """Return the fields of an object; empty if it is something else."""
    return cast(Item, value) if isinstance(value, dict) else {}


def text_of(item: Item, name: str) -> str:
    """Return a text field of an item; "" if there is none."""
    value = item.get(name)
    return value if isinstance(value, str) else ""


def parts_text(parts: object, separator: str = "") -> str:
    """Join the texts of a list of parts, including refusals."""
    if not isinstance(parts, list):
        return ""
    known = map(fields_of, cast(list[object], parts))
    return separator.join([text_of(one, "text") or text_of(one, "refusal") for one in known])


def usage_of(wire: ResponsesUsage) -> Usage:
    """Convert the counts into `Usage`."""
    read = wire.input_tokens_details or InputDetails()
    written = wire.output_tokens_details or OutputDetails()
    tokens_in, tokens_out = token_count(wire.input_tokens), token_count(wire.output_tokens)
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=tokens_in + tokens_out,
        cached_tokens=token_count(read.cached_tokens),
        cache_write_tokens=token_count(read.cache_write_tokens),
        reasoning_tokens=token_count(written.reasoning_tokens),
    )
