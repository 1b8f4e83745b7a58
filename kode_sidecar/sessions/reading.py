"""Reading sessions: pages of messages, large texts, and attaching to one."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kode_sidecar.domain.agent_event import BlockCompleted, Event, Notice
from kode_sidecar.domain.change_set import ChangeSet
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Message, TextBlock, ToolResultBlock, ToolUseBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import LOSS, EventHistory
from kode_sidecar.protocol.change_set import ChangeSetView
from kode_sidecar.protocol.events import (
    ArtifactPlace,
    BlobPlace,
    BlobReadParams,
    BlobReadResult,
    blob_page,
    blob_window,
    place_of,
    shorten,
    shorten_message,
    text_at,
)
from kode_sidecar.protocol.session import (
    MessageListParams,
    MessageListResult,
    OpenBlock,
    SessionAttachParams,
    SessionAttachResult,
    TreeGetParams,
    TreeGetResult,
    TreeNode,
    page_limit,
)
from kode_sidecar.records.conversation_files import ConversationMeta
from kode_sidecar.records.conversation_store import ConversationStore
from kode_sidecar.records.journal import StoredEvent
from kode_sidecar.records.spending import Totals
from kode_sidecar.sessions.files import SessionFolders, view_of
from kode_sidecar.sessions.registry import SessionRegistry

if TYPE_CHECKING:
    from kode_sidecar.sessions.session import Session

MAX_LISTED = 1_000
MAX_NODES = 5_000
_FIRST_PAGE = MAX_LISTED + 1  # of a snapshot, to know whether there is more
MAX_PAGE_BYTES = 4 * 1024 * 1024
_TEXT_CHARS = 120


class StoredMessages:
    """Reads on threads. Texts of more than `max_inline_bytes` are told as blobs.

    Between two pages of a session it is kept, as long as its files stay as they are.
    """

    def __init__(self, store: ConversationStore, max_inline_bytes: int) -> None:
        self.store = store
        self.max_inline_bytes = max_inline_bytes
        self._last: tuple[str, object, Conversation] | None = None

    async def list(self, params: MessageListParams) -> MessageListResult:
        """A page, ended early at 4 MiB.

        Raises KodeError `SessionNotFound`, `MessageNotFound`, `InvalidParams`, `Storage`.
        """
        limit = page_limit(params.limit, MAX_LISTED)
        page = await asyncio.to_thread(self._page, params, limit)
        self._last = self._last if page.next_cursor else None
        return page

    async def tree(self, params: TreeGetParams) -> TreeGetResult:
        """The tree of a session. Raises KodeError as `list` does."""
        limit = page_limit(params.limit, MAX_NODES)
        page = await asyncio.to_thread(self._tree, params, limit)
        self._last = self._last if page.next_cursor else None
        return page

    async def read_blob(self, params: BlobReadParams) -> BlobReadResult:
        """A page of a large text. Raises KodeError `BlobNotFound`, `InvalidParams`, `Storage`."""
        page = await asyncio.to_thread(self._read_blob, params)
        self._last = self._last if page.next_offset else None
        return page

    def _load(self, session_id: str) -> Conversation:
        """On a thread. Its state is taken before: what is written meanwhile is read next time."""
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
        """In the messages, or where a message that is not whole yet has its blocks: the journal."""
        messages = self._load(place.session_id).messages
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


def _tree_node(message: Message, conversation: Conversation) -> TreeNode:
    """One node. A message whose parent was lost is a root."""
    texts = (block.text for block in message.content if isinstance(block, TextBlock))
    lines = (line.strip() for text in texts for line in text.splitlines())
    return TreeNode(
        message_id=message.id,
        role=message.role,
        parent_id=conversation.parent_of(message.id),
        depth=message.depth,
        version=message.version,
        created_at=message.created_at,
        turn_id=str(message.meta.get("turnId", "")),
        origin=str(message.meta.get("origin", "")),
        text=next((line for line in lines if line), "")[:_TEXT_CHARS],
        tools=tuple(block.name for block in message.content if isinstance(block, ToolUseBlock)),
        is_api_error_message=message.is_api_error_message,
    )


def _after(messages: Sequence[Message], cursor: str | None) -> Sequence[Message]:
    """What comes after the message that `cursor` names. Raises KodeError `MessageNotFound`."""
    if cursor is None:
        return messages
    for position, message in enumerate(messages):
        if message.id == cursor:
            return messages[position + 1 :]
    text = f"There is no message {cursor!r} in this list; begin anew without a cursor."
    raise KodeError("MessageNotFound", text)


Release = Callable[[], None]


@dataclass(frozen=True)
class SessionAttachments:
    """What a client gets that did not see a session from its beginning.

    Texts of more than `max_inline_bytes` are told as blobs. Reading happens on threads.
    """

    sessions: SessionRegistry
    folders: SessionFolders
    max_inline_bytes: int

    async def attach(self, params: SessionAttachParams) -> tuple[SessionAttachResult, Release]:
        """Open a session, or look at one. Call the second value after replying.

        What the result tells ends where the stream goes on: nothing is published in between.
        Questions that wait are then asked again: whoever comes back could not answer the old ones.
        Raises KodeError `SessionNotFound`, `ReadOnly`, `ReplayGap`, `InvalidParams`, `Storage`.
        """
        if (params.after_seq or 0) < 0:
            text = "Expected a number from 0 at `$.afterSeq`"
            raise KodeError("InvalidParams", text, details={"path": "$.afterSeq"})
        if params.access == "read" and self.sessions.meta_of(params.session_id) is None:
            result = await asyncio.to_thread(self._read, params)
            self.sessions.mark_read_only(params.session_id)
            return result, lambda: None  # nothing is held
        session = await self.sessions.open(params.session_id)
        page = session.conversation.messages[:_FIRST_PAGE]
        if params.after_seq is None and not session.conversation.is_read(page):
            await asyncio.to_thread(session.conversation.whole, page)
        await session.stream.published()  # what was accepted before is told before (O1)
        session.stream.hold()
        repeat = session.questions.repeater(session.id)
        try:
            result = await self._of_live(session, params.after_seq)
        except BaseException:
            session.stream.release()
            raise

        def go_on() -> None:
            session.stream.release()
            _tell_loss(session)
            repeat()

        return result, go_on

    async def detach(self, session_id: str) -> None:
        """Leave a session to others: its turn is cancelled and over, its lock is released.

        Raises KodeError `SessionNotFound`.
        """
        if self.sessions.meta_of(session_id) is None and not self.folders.store.exists(session_id):
            raise KodeError("SessionNotFound", f"There is no session {session_id!r}.")
        await self.sessions.remove(session_id)

    async def _of_live(self, session: "Session", after_seq: int | None) -> SessionAttachResult:
        """All but the events of a replay is taken before the first await."""
        seq, history = session.stream.seq, session.stream.history
        result = _open_parts(history, seq, session.active_turn_id)
        if after_seq is not None:
            stored = await asyncio.to_thread(self.folders.store.load_events, session.id)
            events = await asyncio.to_thread(self._replay, session.id, stored, after_seq, seq)
            return msgspec.structs.replace(result, mode="replay", events=events)
        return self._snapshot(
            result,
            session.meta,
            session.conversation,
            history,
            session.change_sets.all_views(),
            session.totals,
        )

    def _read(self, params: SessionAttachParams) -> SessionAttachResult:
        """On a thread: what is on disk of a session that another process may be writing to."""
        stored = self.folders.store.load(params.session_id)
        events = self.folders.store.load_events(params.session_id)
        history = EventHistory()
        history.feed_all(events)
        seq = events[-1].seq if events else 0
        result = _open_parts(history, seq, next(iter(history.turns), None))
        if params.after_seq is not None:
            replayed = self._replay(params.session_id, events, params.after_seq, seq)
            return msgspec.structs.replace(result, mode="replay", events=replayed)
        # The file of the head is written some time after the journal.
        meta = msgspec.structs.replace(stored.meta, title=history.title or stored.meta.title)
        conversation = stored.tree()
        change_sets = [_told_view(told, meta.id) for told in history.change_sets.values()]
        totals = Totals(spent=self.folders.store.spending(params.session_id))
        return self._snapshot(result, meta, conversation, history, change_sets, totals)

    def _snapshot(
        self,
        result: SessionAttachResult,
        meta: ConversationMeta,
        conversation: Conversation,
        history: EventHistory,
        change_sets: Sequence[ChangeSetView],
        totals: Totals,
    ) -> SessionAttachResult:
        first = conversation.whole(conversation.messages[:_FIRST_PAGE])
        page, cursor = message_page(first, meta.id, MAX_LISTED, self.max_inline_bytes)
        return msgspec.structs.replace(
            result,
            session=view_of(meta, self.folders.defaults, result.active_turn_id),
            messages=page,
            cursor=cursor,
            open_messages=tuple(self._open_messages(conversation, history, meta.id)),
            head_id=conversation.head,
            change_sets=tuple(change_sets),
            usage=totals.usage,
            cost=totals.cost,
            cost_usd=totals.cost_usd,
        )

    def _open_messages(
        self, conversation: Conversation, history: EventHistory, session_id: str
    ) -> list[Message]:
        opened = (one.message(session_id) for one in history.messages.values())
        return [
            shorten_message(message, session_id, self.max_inline_bytes)
            for message in opened
            if message.id not in conversation
        ]

    def _replay(
        self, session_id: str, stored: Sequence[StoredEvent], after_seq: int, seq: int
    ) -> tuple[Event, ...]:
        """The events after `after_seq` up to `seq`, every one of them."""
        events = [
            self._shortened(session_id, event)
            for event in stored
            if isinstance(event, Event) and after_seq < event.seq <= seq
        ]
        if after_seq > seq or len(events) != seq - after_seq:
            raise _gap(f"the events {after_seq + 1} to {seq} are not all there")
        if sum(len(msgspec.json.encode(event)) for event in events) > MAX_PAGE_BYTES:
            raise _gap("there are too many events since then")
        return tuple(events)

    def _shortened(self, session_id: str, event: Event) -> Event:
        if not (isinstance(event, BlockCompleted) and isinstance(event.block, ToolResultBlock)):
            return event
        block = shorten(event.block, session_id, self.max_inline_bytes)
        return msgspec.structs.replace(event, block=block)


def _open_parts(history: EventHistory, seq: int, active_turn_id: str | None) -> SessionAttachResult:
    """What is under way."""
    return SessionAttachResult(
        mode="snapshot",
        seq=seq,
        active_turn_id=active_turn_id,
        pending=tuple(history.questions.values()),
        open_blocks=tuple(
            OpenBlock(block_id=block_id, text=block.text)
            for block_id, block in history.blocks.items()
        ),
    )


def _told_view(change_set: ChangeSet, session_id: str) -> ChangeSetView:
    """Return a change set as its events have told it; ranges are those of the announcements."""
    return ChangeSetView(
        change_set_id=change_set.id,
        session_id=session_id,
        turn_id=change_set.turn_id,
        state=change_set.state,
        files=change_set.told_files(),
    )


def _tell_loss(session: "Session") -> None:
    """Messages that were told and cannot be read any more are told of, once in a session's life."""
    history = session.stream.history
    if history.lost and not history.loss_told:
        text = (
            f"{history.lost} message(s) of this session were damaged on disk and are missing from "
            "it. What is left of them lies beside it, in the file whose name ends in .bad."
        )
        session.stream(Notice(code=LOSS, level="warning", message=text))


def _gap(why: str) -> KodeError:
    text = f"No replay: {why}. Attach without `afterSeq` and start from the snapshot."
    return KodeError("ReplayGap", text)
