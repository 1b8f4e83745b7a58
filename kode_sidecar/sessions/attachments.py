"""Opening sessions that are kept, and leaving them: a replay or a snapshot, then the stream."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kode_sidecar.domain.agent_event import BlockCompleted, Event, Notice
from kode_sidecar.domain.conversation import Conversation
from kode_sidecar.domain.message import Message, ToolResultBlock
from kode_sidecar.errors import KodeError
from kode_sidecar.event_log import LOSS, EventHistory, SessionDefaults, ToldChangeSet
from kode_sidecar.protocol.change_set import ChangeSetView
from kode_sidecar.protocol.events import shorten, shorten_message
from kode_sidecar.protocol.session import OpenBlock, SessionAttachParams, SessionAttachResult
from kode_sidecar.records.conversation_meta import ConversationMeta
from kode_sidecar.records.conversation_store import ConversationStore
from kode_sidecar.records.journal import StoredEvent
from kode_sidecar.sessions.meta import view_of
from kode_sidecar.sessions.reading import MAX_LISTED, MAX_PAGE_BYTES, message_page
from kode_sidecar.sessions.registry import SessionRegistry
from kode_sidecar.turns import Totals

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.sessions.session import Session

Release = Callable[[], None]


@dataclass(frozen=True)
class SessionAttachments:
    """What a client gets that did not see a session from its beginning.

    Texts of more than `max_inline_bytes` are told as blobs. Reading happens on threads.
    """

    sessions: SessionRegistry
    store: ConversationStore
    defaults: SessionDefaults
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
            return result, _nothing
        session = await self.sessions.open(params.session_id)
        page = _first_page(session.conversation)
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
        if self.sessions.meta_of(session_id) is None and not self.store.exists(session_id):
            raise KodeError("SessionNotFound", f"There is no session {session_id!r}.")
        await self.sessions.remove(session_id)

    async def _of_live(self, session: "Session", after_seq: int | None) -> SessionAttachResult:
        """All but the events of a replay is taken before the first await."""
        seq, history = session.stream.seq, session.stream.history
        result = _open_parts(history, seq, session.active_turn_id)
        if after_seq is not None:
            events = await asyncio.to_thread(self._events, session.id, after_seq, seq)
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
        stored = self.store.load(params.session_id)
        events = self.store.load_events(params.session_id)
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
        totals = Totals(spent=self.store.spending(params.session_id))
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
        page, cursor = message_page(
            conversation.whole(_first_page(conversation)),
            meta.id,
            MAX_LISTED,
            self.max_inline_bytes,
        )
        return msgspec.structs.replace(
            result,
            session=view_of(meta, self.defaults, result.active_turn_id),
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

    def _events(self, session_id: str, after_seq: int, seq: int) -> tuple[Event, ...]:
        return self._replay(session_id, self.store.load_events(session_id), after_seq, seq)

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


def _told_view(told: ToldChangeSet, session_id: str) -> ChangeSetView:
    """A change set as its events have told it; ranges are those of the announcements."""
    files = {
        hunk.file.uri: msgspec.structs.replace(
            hunk.file,
            hunks=tuple(one.view for one in told.hunks.values() if one.file.uri == hunk.file.uri),
        )
        for hunk in told.hunks.values()
    }
    return ChangeSetView(
        change_set_id=told.id,
        session_id=session_id,
        turn_id=told.turn_id,
        state=told.updated.state,
        files=tuple(files.values()),
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


def _first_page(conversation: Conversation) -> Sequence[Message]:
    """What a snapshot begins with, and one more; nothing is read."""
    return conversation.messages[: MAX_LISTED + 1]


def _gap(why: str) -> KodeError:
    text = f"No replay: {why}. Attach without `afterSeq` and start from the snapshot."
    return KodeError("ReplayGap", text)


def _nothing() -> None:
    """Nothing was held."""
