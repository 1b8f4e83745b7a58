"""Read stored sessions: pages of messages, trees, large texts."""

import asyncio
from collections.abc import Sequence

import msgspec

from kode_sidecar.core.domain.agent_event import BlockCompleted
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message, texts_of
from kode_sidecar.core.protocol.events import (
    ArtifactPlace,
    BlobPlace,
    BlobReadParams,
    BlobReadResult,
    blob_page,
    blob_window,
    place_of,
    shorten_message,
    text_at,
)
from kode_sidecar.core.protocol.session import (
    MessageListParams,
    MessageListResult,
    TreeGetParams,
    TreeGetResult,
    TreeNode,
    page_limit,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore

MAX_LISTED = 1_000
MAX_NODES = 5_000
MAX_PAGE_BYTES = 4 * 1024 * 1024
_TEXT_CHARS = 120


class StoredMessages:
    """Reads sessions on threads. Texts of more than `max_inline_bytes` are sent as blobs.

    The last session is cached between two of its pages while its files stay unchanged.
    """

    def __init__(self, store: ConversationStore, max_inline_bytes: int) -> None:
        self.store = store
        self.max_inline_bytes = max_inline_bytes
        self._last: tuple[str, object, Conversation] | None = None

    async def list(self, params: MessageListParams) -> MessageListResult:
        """Return a page of messages, cut at 4 MiB.

        Raises KodeError `SessionNotFound`, `MessageNotFound`, `InvalidParams`, `Storage`.
        """
        limit = page_limit(params.limit, MAX_LISTED)
        page = await asyncio.to_thread(self._page, params, limit)
        self._last = self._last if page.next_cursor else None
        return page

    async def tree(self, params: TreeGetParams) -> TreeGetResult:
        """Return a page of a session's tree. Raises KodeError as `list` does."""
        limit = page_limit(params.limit, MAX_NODES)
        page = await asyncio.to_thread(self._tree, params, limit)
        self._last = self._last if page.next_cursor else None
        return page

    async def read_blob(self, params: BlobReadParams) -> BlobReadResult:
        """Read a page of a blob. Raises KodeError `BlobNotFound`, `InvalidParams`, `Storage`."""
        page = await asyncio.to_thread(self._read_blob, params)
        self._last = self._last if page.next_offset else None
        return page

    def _load(self, session_id: str) -> Conversation:
        """Load a session, on a thread. Takes the file state first, so a later write reloads it."""
        state, last = self.store.state(session_id), self._last
        if last is None or last[:2] != (session_id, state):
            last = self._last = session_id, state, self.store.load(session_id).tree()
        return last[2]

    def _page(self, params: MessageListParams, limit: int) -> MessageListResult:
        conversation = self._load(params.session_id)
        if params.all:
            messages = conversation.messages
        else:
            messages = conversation.path(params.leaf_id or conversation.head)
        rest = _after(messages, params.cursor)
        page, cursor = message_page(rest, params.session_id, limit, self.max_inline_bytes)
        return MessageListResult(messages=page, next_cursor=cursor)

    def _tree(self, params: TreeGetParams, limit: int) -> TreeGetResult:
        conversation = self._load(params.session_id)
        rest = _after(conversation.messages, params.cursor)
        return TreeGetResult(
            nodes=tuple(_tree_node(message, conversation) for message in rest[:limit]),
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
        offset, length = blob_window(params)
        found = self.store.read_artifact(place.session_id, place.artifact_id, offset, length)
        return blob_page(*found, params) if found else None

    def _block_page(self, place: BlobPlace, params: BlobReadParams) -> BlobReadResult | None:
        text = self._text(place)
        if text is None:
            return None
        data = text.encode(errors="replace")
        offset, length = blob_window(params)
        return blob_page(len(data), data[offset : offset + length], params)

    def _text(self, place: BlobPlace) -> str | None:
        """Find a text in the messages, or in the journal, which holds unfinished messages."""
        messages = self._load(place.session_id).messages
        text = text_at([block for one in messages for block in one.content], place)
        if text is not None:
            return text
        events = self.store.load_events(place.session_id)
        return text_at([one.block for one in events if isinstance(one, BlockCompleted)], place)


def message_page(
    messages: Sequence[Message], session_id: str, limit: int, max_inline_bytes: int
) -> tuple[tuple[Message, ...], str | None]:
    """Return the messages that fit on a page, and a cursor if more follow."""
    page: list[Message] = []
    size = 0
    for message in messages:
        short = shorten_message(message, session_id, max_inline_bytes)
        size += len(msgspec.json.encode(short))
        if len(page) == limit or (page and size > MAX_PAGE_BYTES):
            return tuple(page), page[-1].id
        page.append(short)
    return tuple(page), None


def _tree_node(message: Message, conversation: Conversation) -> TreeNode:
    """Return the node of a message; one whose parent was lost is a root."""
    lines = (line.strip() for text in texts_of(message.content) for line in text.splitlines())
    return TreeNode(
        message_id=message.id,
        role=message.role,
        parent_id=conversation.parent_of(message.id),
        depth=message.depth,
        version=message.version,
        created_at=message.created_at,
        turn_id=message.turn_id,
        origin=message.origin,
        text=next((line for line in lines if line), "")[:_TEXT_CHARS],
        tools=tuple(call.name for call in message.calls),
        is_api_error_message=message.is_api_error_message,
    )


def _after(messages: Sequence[Message], cursor: str | None) -> Sequence[Message]:
    """Return the messages after the one that `cursor` names. Raises KodeError `MessageNotFound`."""
    if cursor is None:
        return messages
    for position, message in enumerate(messages):
        if message.id == cursor:
            return messages[position + 1 :]
    text = f"There is no message {cursor!r} in this list; begin anew without a cursor."
    raise KodeError("MessageNotFound", text)
