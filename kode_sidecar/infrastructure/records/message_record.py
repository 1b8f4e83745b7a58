"""Encodes a message as one record: the struct of `domain.message` in snake_case.

Only the names of our own fields change. The contents of a tool call's `input` and of `meta` belong
to the model and the user, and stay unchanged.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import (
    ImageBlock,
    LostUsage,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    texts_of,
)
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, check, encode_json, seal

_Names = Mapping[str, str]
_Record = dict[str, Any]


def _snake_names(*kinds: type[Struct]) -> _Names:
    """Return the names on disk, which are the fields' own, by the wire names."""
    fields = (field for kind in kinds for field in msgspec.structs.fields(kind))
    return {field.encode_name: field.name for field in fields}


def _reverse(names: _Names) -> _Names:
    return {disk: wire for wire, disk in names.items()}


_MESSAGE = {**_snake_names(Message), "sessionId": "conversation_id"}
_USAGE = _snake_names(Usage)
_BLOCK = _snake_names(
    TextBlock, ThinkingBlock, ImageBlock, ResourceBlock, ToolUseBlock, ToolResultBlock
)
_LOST = _snake_names(LostUsage)
_LOST_BACK = _reverse(_LOST)
_MESSAGE_BACK, _USAGE_BACK, _BLOCK_BACK = _reverse(_MESSAGE), _reverse(_USAGE), _reverse(_BLOCK)

# Fields in every record, even if they have their default.
_ALWAYS: _Record = {
    "content": [],
    "parent_id": None,
    "depth": 0,
    "version": 1,
    "created_at": "",
    "meta": {},
}


def encode_message(message: Message) -> bytes:
    """Encode a message as one record with its checksum, without a newline.

    Raises KodeError `Storage` for absurd nesting.
    """
    record = _rename(cast(_Record, msgspec.to_builtins(message)), _MESSAGE)
    record = {
        "id": record.pop("id"),
        "conversation_id": record.pop("conversation_id"),
        "role": record.pop("role"),
        **_ALWAYS,
        **record,
    }
    record["content"] = [_block_record(block) for block in record["content"]]
    if "usage" in record:
        record["usage"] = _rename(record["usage"], _USAGE)
    if "lost" in record:
        record["lost"] = _lost(record["lost"], _LOST, _USAGE)
    return seal(encode_json(record))


def decode_message(line: bytes) -> Message:
    """Return the message of one record. Plain strings count as text, `tool_result` as role `tool`.

    Raises one of `json_record.DECODE_ERRORS`.
    """
    record = _rename(msgspec.json.decode(check(line), type=_Record), _MESSAGE_BACK)
    # To earlier programs that wrote such files, absent and null mean the same.
    record = {key: value for key, value in record.items() if value is not None}
    record["content"] = _content(record.get("content", []))
    if isinstance(record.get("usage"), dict):
        record["usage"] = _rename(record["usage"], _USAGE_BACK)
    if isinstance(record.get("lost"), dict):
        record["lost"] = _lost(record["lost"], _LOST_BACK, _USAGE_BACK)
    if record.get("role") == "tool_result":
        record["role"] = "tool"
    return msgspec.convert(record, Message)


def _lost(record: _Record, names: _Names, usage: _Names) -> _Record:
    renamed = _rename(record, names)
    if isinstance(renamed.get("usage"), dict):
        renamed["usage"] = _rename(renamed["usage"], usage)
    return renamed


def _content(value: Any) -> Any:
    """Convert blocks from disk; the decoder will refuse what is neither text nor blocks."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    if isinstance(value, list):
        return [_block(item) for item in cast(list[Any], value)]
    return value


def _block(value: Any) -> Any:
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if not isinstance(value, dict):
        return value
    block = _rename(cast(_Record, value), _BLOCK_BACK)
    if "content" in block:
        block["content"] = _content(block["content"])
    return block


def _block_record(block: _Record) -> _Record:
    record = _rename(block, _BLOCK)
    if "content" in record:
        record["content"] = [_rename(inner, _BLOCK) for inner in record["content"]]
    return record


def _rename(record: _Record, names: _Names) -> _Record:
    return {names.get(key, key): value for key, value in record.items()}


_SPEAKERS = ("user", "assistant")


def says(records: Iterable[bytes], query: str) -> bool:
    """Return whether a prompt or an answer among the records contains the text, ignoring case."""
    wanted = query.casefold()
    # The text as in a record: only ASCII has the same bytes in every record and every case.
    raw = msgspec.json.encode(wanted)[1:-1] if wanted.isascii() else b""
    return any(raw in record.lower() and _message_says(record, wanted) for record in records)


def _message_says(line: bytes, wanted: str) -> bool:
    try:
        message = decode_message(line)
    except DECODE_ERRORS:
        return False
    if message.role not in _SPEAKERS or message.origin == "reminder":
        return False
    return any(wanted in text.casefold() for text in texts_of(message.content))
