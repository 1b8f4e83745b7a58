"""The stream to the client: events, deltas, and texts too large to be sent with them.

Only the beginning of a large text is sent; `kode/blob/read` reads the whole.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.domain.message import Blob, Block, Message, TextBlock, ToolResultBlock
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.errors import KodeError


class EventParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`kode/event`: durable events of one session, in `seq` order."""

    session_id: str
    events: tuple[Event, ...]


class DeltaParams(Struct, frozen=True):
    """`kode/delta`: growth of open blocks; `block.started` named the session of each."""

    deltas: tuple[BlockDelta, ...]


MAX_INLINE_BYTES = 65_536
"""The largest text sent whole, unless the handshake's `delivery.maxInlineBytes` differs."""

MIN_INLINE_BYTES = 1_024
HEAD_BYTES = 1_024
MAX_BLOB_BYTES = 1024 * 1024
_MAX_CHARACTER_BYTES = 4  # of UTF-8

T = TypeVar("T")


class BlobReadParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`offset` and `length` count bytes of the text in UTF-8; a page is at most 1 MiB."""

    ref: str
    offset: int = 0
    length: int = 65_536


class BlobReadResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`text` ends with a whole character; `next_offset` begins the next page, absent at the end.

    `bytes` is the length of the whole text.
    """

    text: str
    bytes: int
    next_offset: int | None = None


class BlobPlace(NamedTuple):
    """Where a large text is stored: in a block, at `position` in its content."""

    session_id: str
    block_id: str
    position: int


class ArtifactPlace(NamedTuple):
    """Where the whole output of a tool is stored."""

    session_id: str
    artifact_id: str


def artifact_ref(session_id: str, artifact_id: str) -> str:
    """Return the `ref` by which a client asks for an artifact."""
    return f"{session_id}.{artifact_id}"


def place_of(ref: str) -> BlobPlace | ArtifactPlace | None:
    """Return the place that a `ref` names; None if it is invalid."""
    parts = ref.split(".")
    if len(parts) == 2:
        return ArtifactPlace(parts[0], parts[1])
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdecimal()):
        return None
    return BlobPlace(parts[0], parts[1], int(parts[2][:9]))


def text_at(blocks: Sequence[Block], place: BlobPlace) -> str | None:
    """Return the whole text at a place; None if it is in none of the blocks."""
    block = next((block for block in blocks if block.id == place.block_id), None)
    held = block.content[place.position :] if isinstance(block, ToolResultBlock) else (block,)
    return held[0].text if held and isinstance(held[0], TextBlock) else None


def blob_window(params: BlobReadParams) -> tuple[int, int]:
    """Return the offset and number of bytes to read: a page and one more character."""
    return max(params.offset, 0), max(min(params.length, MAX_BLOB_BYTES), 1) + _MAX_CHARACTER_BYTES


def blob_page(size: int, data: bytes, params: BlobReadParams) -> BlobReadResult:
    """Return a page of whole characters, at least one, from the `data` that `blob_window` asks for.

    `size` is the length of the whole text in bytes. Raises KodeError `InvalidParams`.
    """
    if not 0 <= params.offset <= size or _inside_character(data, 0):
        text = f"Expected the start of a character of {size} bytes at `$.offset`"
        raise KodeError("InvalidParams", text, details={"path": "$.offset"})
    if params.length < 1:
        text = f"Expected a number from 1 to {MAX_BLOB_BYTES} at `$.length`"
        raise KodeError("InvalidParams", text, details={"path": "$.length"})
    end = min(params.length, MAX_BLOB_BYTES, len(data))
    while _inside_character(data, end):
        end -= 1
    if end == 0 and data:
        end = 1
        while _inside_character(data, end):
            end += 1
    following = params.offset + end
    return BlobReadResult(
        text=data[:end].decode(errors="replace"),
        bytes=size,
        next_offset=following if following < size else None,
    )


def _inside_character(data: bytes, index: int) -> bool:
    return index < len(data) and data[index] & 0xC0 == 0x80


def shorten_message(message: Message, session_id: str, limit: int) -> Message:
    """Return the message with texts of more than `limit` bytes cut to their beginning."""
    content = tuple(shorten(block, session_id, limit) for block in message.content)
    return _changed(message, content, message.content)


def shorten(block: Block, session_id: str, limit: int) -> Block:
    """Return the block with texts of more than `limit` bytes cut; one without id stays whole."""
    if not block.id:
        return block
    if isinstance(block, TextBlock):
        return _cut(block, BlobPlace(session_id, block.id, 0), limit)
    if isinstance(block, ToolResultBlock):
        content = tuple(
            _cut(part, BlobPlace(session_id, block.id, index), limit)
            if isinstance(part, TextBlock)
            else part
            for index, part in enumerate(block.content)
        )
        return _changed(block, content, block.content)
    return block


def _changed(holder: T, content: tuple[Struct, ...], before: tuple[Struct, ...]) -> T:
    if all(one is other for one, other in zip(content, before, strict=True)):
        return holder
    return msgspec.structs.replace(holder, content=content)  # type: ignore[reportArgumentType]


def _cut(block: TextBlock, place: BlobPlace, limit: int) -> TextBlock:
    if len(block.text) * 4 <= limit:
        return block
    data = fix_surrogates(block.text).encode()
    if len(data) <= limit:
        return block
    blob = Blob(
        ref=f"{place.session_id}.{place.block_id}.{place.position}",
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    head = data[:HEAD_BYTES].decode(errors="ignore")
    return msgspec.structs.replace(block, text=head, blob=blob)
