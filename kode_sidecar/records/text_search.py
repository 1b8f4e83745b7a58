"""Finds words in what was said, without decoding messages that cannot hold them."""

from collections.abc import Iterable

import msgspec

from kode_sidecar.domain.message import Message, TextBlock
from kode_sidecar.records.json_text import DECODE_ERRORS
from kode_sidecar.records.message_record import decode_message

_SPEAKERS = ("user", "assistant")


def says(records: Iterable[bytes], query: str) -> bool:
    """Whether a prompt or an answer among the records has the text, whatever the case."""
    wanted = query.casefold()
    # As it stands in a record. Only ASCII has the same bytes in every record and every case.
    raw = msgspec.json.encode(wanted)[1:-1] if wanted.isascii() else b""
    return any(raw in record.lower() and _says(record, wanted) for record in records)


def _says(line: bytes, wanted: str) -> bool:
    try:
        message = decode_message(line)
    except DECODE_ERRORS:
        return False
    return any(wanted in text.casefold() for text in _texts(message))


def _texts(message: Message) -> list[str]:
    if message.role not in _SPEAKERS or message.meta.get("origin") == "reminder":
        return []
    return [block.text for block in message.content if isinstance(block, TextBlock)]
