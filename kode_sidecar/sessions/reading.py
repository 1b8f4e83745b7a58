"""What was said in a session, read from disk a page at a time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kode_sidecar.domain.agent_event import BlockCompleted
from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.events import (
    ArtifactPlace,
    BlobPlace,
    BlobReadParams,
    BlobReadResult,
    place_of,
    shorten_message,
    text_at,
)
from kode_sidecar.protocol.session import (
    MessageListParams,
    MessageListResult,
    TreeGetParams,
    TreeGetResult,
    page_limit,
)
from kode_sidecar.records.conversation_store import ConversationStore
from kode_sidecar.sessions.message_tree import tree_node

MAX_LISTED = 1_000
MAX_NODES = 5_000
MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_BLOB_BYTES = 1024 * 1024
MAX_CHARACTER_BYTES = 4  # of UTF-8


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

    async def tree(self, params: TreeGetParams) -> TreeGetResult:
        """The tree of a session. Raises KodeError as `list` does."""
        limit = page_limit(params.limit, MAX_NODES)
        return await asyncio.to_thread(self._tree, params, limit)

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

    def _tree(self, params: TreeGetParams, limit: int) -> TreeGetResult:
        conversation = self.store.load(params.session_id).tree()
        rest = _after(conversation.messages, params.cursor)
        return TreeGetResult(
            nodes=tuple(tree_node(message, conversation) for message in rest[:limit]),
            head_id=conversation.head,
            next_cursor=rest[limit - 1].id if len(rest) > limit else None,
        )

    def _read_blob(self, params: BlobReadParams) -> BlobReadResult:
        place = place_of(params.ref)
        try:
            if isinstance(place, ArtifactPlace):
                page = self._artifact_page(place, params)
            else:
                page = self._block_page(place, params) if place else None
        except KodeError as error:
            if error.code != "SessionNotFound":
                raise
            page = None
        if page is None:
            raise KodeError(
                "BlobNotFound",
                f"There is no blob {params.ref!r}; use the ref of a blob in a message or event.",
            )
        return page

    def _artifact_page(self, place: ArtifactPlace, params: BlobReadParams) -> BlobReadResult | None:
        offset, length = window(params)
        found = self.store.read_artifact(place.session_id, place.artifact_id, offset, length)
        return blob_page(*found, params) if found else None

    def _block_page(self, place: BlobPlace, params: BlobReadParams) -> BlobReadResult | None:
        text = self._text(place)
        if text is None:
            return None
        data = text.encode(errors="replace")
        offset, length = window(params)
        return blob_page(len(data), data[offset : offset + length], params)

    def _text(self, place: BlobPlace) -> str | None:
        """In the messages, or where a message that is not whole yet has its blocks: the journal."""
        messages = self.store.load(place.session_id).messages
        text = text_at([block for one in messages for block in one.content], place)
        if text is not None:
            return text
        events = self.store.load_events(place.session_id)
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


def window(params: BlobReadParams) -> tuple[int, int]:
    """The offset and number of bytes to read for a page, one whole character beyond it."""
    return max(params.offset, 0), max(min(params.length, MAX_BLOB_BYTES), 1) + MAX_CHARACTER_BYTES


def blob_page(size: int, data: bytes, params: BlobReadParams) -> BlobReadResult:
    """Whole characters of `data`, what `window` told to read of `size` bytes; at least one.

    Raises KodeError `InvalidParams`.
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


def _after(messages: Sequence[Message], cursor: str | None) -> Sequence[Message]:
    """What comes after the message that `cursor` names. Raises KodeError `MessageNotFound`."""
    if cursor is None:
        return messages
    for position, message in enumerate(messages):
        if message.id == cursor:
            return messages[position + 1 :]
    text = f"There is no message {cursor!r} in this list; begin anew without a cursor."
    raise KodeError("MessageNotFound", text)
