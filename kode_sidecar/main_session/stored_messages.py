"""What was said in a session, read from disk a page at a time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kode_sidecar.domain.agent_event import BlockCompleted
from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.main_session.session_catalog import page_limit
from kode_sidecar.protocol.blob import (
    BlobPlace,
    BlobReadParams,
    BlobReadResult,
    place_of,
    shorten_message,
    text_at,
)
from kode_sidecar.protocol.session_records import MessageListParams, MessageListResult
from kode_sidecar.records.conversation_store import ConversationStore

MAX_LISTED = 1_000
MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_BLOB_BYTES = 1024 * 1024


@dataclass(frozen=True)
class StoredMessages:
    """Reads on threads. Texts of more than `max_inline_bytes` are told as blobs."""

    store: ConversationStore
    max_inline_bytes: int

    async def list(self, params: MessageListParams) -> MessageListResult:
        """A page, ended early at 4 MiB.

        Raises KodeError `SessionNotFound`, `MessageNotFound`, `InvalidParams`, `Storage`.
        """
        limit = page_limit(params.limit, MAX_LISTED)
        return await asyncio.to_thread(self._page, params, limit)

    async def read_blob(self, params: BlobReadParams) -> BlobReadResult:
        """A page of a large text. Raises KodeError `BlobNotFound`, `InvalidParams`, `Storage`."""
        return await asyncio.to_thread(self._read_blob, params)

    def _page(self, params: MessageListParams, limit: int) -> MessageListResult:
        conversation = self.store.load(params.session_id).tree()
        if params.all:
            messages = conversation.messages
        else:
            messages = conversation.path(params.leaf_id or conversation.head)
        rest = _after(messages, params.cursor)
        page, cursor = message_page(rest, params.session_id, limit, self.max_inline_bytes)
        return MessageListResult(messages=page, next_cursor=cursor)

    def _read_blob(self, params: BlobReadParams) -> BlobReadResult:
        place = place_of(params.ref)
        text = self._find(place) if place else None
        if text is None:
            raise KodeError(
                "BlobNotFound",
                f"There is no blob {params.ref!r}; use the ref of a blob in a message or event.",
            )
        return blob_page(text, params)

    def _find(self, place: BlobPlace) -> str | None:
        """In the messages, or where a message that is not whole yet has its blocks: the journal."""
        try:
            messages = self.store.load(place.session_id).messages
            text = text_at([block for one in messages for block in one.content], place)
            if text is not None:
                return text
            events = self.store.load_events(place.session_id)
        except KodeError as error:
            if error.code == "SessionNotFound":
                return None
            raise
        return text_at([one.block for one in events if isinstance(one, BlockCompleted)], place)


def message_page(
    messages: Sequence[Message], session_id: str, limit: int, max_inline_bytes: int
) -> tuple[tuple[Message, ...], str | None]:
    """As many as go on a page, and the cursor if there are more."""
    page: list[Message] = []
    size = 0
    for message in messages:
        short = shorten_message(message, session_id, max_inline_bytes)
        size += len(msgspec.json.encode(short))
        if len(page) == limit or (page and size > MAX_PAGE_BYTES):
            return tuple(page), page[-1].id
        page.append(short)
    return tuple(page), None


def blob_page(text: str, params: BlobReadParams) -> BlobReadResult:
    """Whole characters from `offset` on, at least one. Raises KodeError `InvalidParams`."""
    data = text.encode(errors="replace")
    if not (0 <= params.offset <= len(data) and _is_boundary(data, params.offset)):
        text = f"Expected the start of a character of {len(data)} bytes at `$.offset`"
        raise KodeError("InvalidParams", text, details={"path": "$.offset"})
    if params.length < 1:
        text = f"Expected a number from 1 to {MAX_BLOB_BYTES} at `$.length`"
        raise KodeError("InvalidParams", text, details={"path": "$.length"})
    end = min(params.offset + min(params.length, MAX_BLOB_BYTES), len(data))
    while not _is_boundary(data, end):
        end -= 1
    if end == params.offset < len(data):
        end += 1
        while not _is_boundary(data, end):
            end += 1
    return BlobReadResult(
        text=data[params.offset : end].decode(),
        bytes=len(data),
        next_offset=end if end < len(data) else None,
    )


def _is_boundary(data: bytes, offset: int) -> bool:
    return offset >= len(data) or data[offset] & 0xC0 != 0x80


def _after(messages: Sequence[Message], cursor: str | None) -> Sequence[Message]:
    """What comes after the message that `cursor` names. Raises KodeError `MessageNotFound`."""
    if cursor is None:
        return messages
    for position, message in enumerate(messages):
        if message.id == cursor:
            return messages[position + 1 :]
    text = f"There is no message {cursor!r} in this list; begin anew without a cursor."
    raise KodeError("MessageNotFound", text)
