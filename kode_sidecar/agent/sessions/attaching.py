"""Attach clients to sessions, to write or to read along, with all content in one answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kode_sidecar.agent.event_log import LOSS, EventHistory
from kode_sidecar.agent.sessions.files import JOB, SessionFolders, view_of
from kode_sidecar.agent.sessions.reading import MAX_LISTED, MAX_PAGE_BYTES, message_page
from kode_sidecar.agent.sessions.registry import SessionRegistry
from kode_sidecar.core.domain.agent_event import BlockCompleted, Event, Notice
from kode_sidecar.core.domain.change_set import ChangeSet
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import Message, ToolResultBlock
from kode_sidecar.core.protocol.change_set import ChangeSetView
from kode_sidecar.core.protocol.events import shorten, shorten_message
from kode_sidecar.core.protocol.session import OpenBlock, SessionAttachParams, SessionAttachResult
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta
from kode_sidecar.infrastructure.records.journal import JournalTail, StoredEvent, decode_lines
from kode_sidecar.infrastructure.records.spending import Totals

if TYPE_CHECKING:
    from kode_sidecar.agent.sessions.session import Session

Grown = Callable[[JournalTail], Awaitable[Sequence[bytes] | None]]
"""Waits for new lines of a journal; None when its session is deleted."""


@dataclass(frozen=True)
class FollowedSessions:
    """Reports the events that another process writes to the journal of a session.

    `report` sends events to the client, `flow` waits until its queue has room. A journal holds no
    deltas: a block appears when it begins, and its text when it is complete.
    """

    grown: Grown
    report: Callable[[str, Sequence[Event]], None]
    flow: Callable[[], Awaitable[None]]

    async def follow(self, tail: JournalTail, seq: int) -> None:
        """Report all events after `seq` as they are written, until the session is deleted.

        Skips unknown events of a newer program: the client sees the gap in the numbers.
        """
        while (lines := await self.grown(tail)) is not None:
            events = [
                event
                for event in decode_lines(lines)
                if isinstance(event, Event) and event.seq > seq
            ]
            if events:
                await self.flow()
                seq = events[-1].seq
                self.report(tail.session_id, events)


Release = Callable[[], None]


@dataclass(frozen=True)
class SessionAttachments:
    """Brings a client up to date that has not seen a session from its beginning.

    Texts of more than `max_inline_bytes` are sent as blobs. It reads on threads.
    """

    sessions: SessionRegistry
    folders: SessionFolders
    followed: FollowedSessions
    max_inline_bytes: int

    async def attach(self, params: SessionAttachParams) -> tuple[SessionAttachResult, Release]:
        """Open a session, or only read it; the session of a job is only read.

        Call the second value after replying.

        The result ends exactly where the stream continues: nothing is published in between.
        Open questions are then asked again: a client that comes back cannot answer the old ones.
        Raises KodeError `SessionNotFound`, `ReadOnly`, `ReplayGap`, `InvalidParams`, `Storage`.
        """
        if (params.after_seq or 0) < 0:
            text = "Expected a number from 0 at `$.afterSeq`"
            raise KodeError("InvalidParams", text, details={"path": "$.afterSeq"})
        if params.access == "read" and self.sessions.meta_of(params.session_id) is None:
            return await self._look_at(params)
        try:
            session = await self.sessions.open(params.session_id)
        except KodeError as error:
            if (error.details or {}).get("kind") != JOB:
                raise
            return await self._look_at(params)
        await session.stream.published()  # what was accepted earlier is reported first (O1)
        is_whole = session.stream.hold_to_attach()
        repeat = session.questions.repeater(session.id)
        try:
            if not is_whole and params.after_seq is not None:
                raise _gap("the disk refused some of the events")
            result = await self._of_live(session, params.after_seq)
        except BaseException:
            session.stream.release()
            raise

        def go_on() -> None:
            session.stream.release()
            session.stream.report_failure()
            _report_loss(session)
            if params.access == "write":
                repeat()

        return result, go_on

    async def _look_at(self, params: SessionAttachParams) -> tuple[SessionAttachResult, Release]:
        """Attach for reading. Holds nothing: the client knows a repeated event by its number."""
        session_id = params.session_id
        tail = await asyncio.to_thread(self.folders.store.journal_tail, session_id)
        head = await asyncio.to_thread(self.folders.store.head, session_id)
        result = await asyncio.to_thread(self._read, params)
        is_job = head.kind == JOB
        # Nothing else would ever end the turn of a killed job.
        unfinished = is_job and result.active_turn_id is not None
        if unfinished and await self.sessions.settle_job(session_id):
            result = await asyncio.to_thread(self._read, params)
        self.sessions.mark_read_only(session_id, job=is_job)
        follow = self.followed.follow
        return result, lambda: self.sessions.follow(session_id, follow(tail, result.seq))

    async def detach(self, session_id: str) -> None:
        """Release a session for other processes, after cancelling its turn.

        Raises KodeError `SessionNotFound`.
        """
        if self.sessions.meta_of(session_id) is None and not self.folders.store.exists(session_id):
            raise KodeError("SessionNotFound", f"There is no session {session_id!r}.")
        await self.sessions.remove(session_id)

    async def _of_live(self, session: "Session", after_seq: int | None) -> SessionAttachResult:
        """Return the state of an open session; only a replay's events are read after an await."""
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
        """Read a session from disk that another process may be writing. On a thread."""
        stored = self.folders.store.load(params.session_id)
        events = self.folders.store.load_events(params.session_id)
        history = EventHistory()
        history.feed_all(events)
        seq = events[-1].seq if events else 0
        result = _open_parts(history, seq, next(iter(history.turns), None))
        if params.after_seq is not None:
            replayed = self._replay(params.session_id, events, params.after_seq, seq)
            return msgspec.structs.replace(result, mode="replay", events=replayed)
        # The head file is written later than the journal.
        meta = msgspec.structs.replace(stored.meta, title=history.title or stored.meta.title)
        conversation = stored.tree()
        change_sets = [_reported_view(one, meta.id) for one in history.change_sets.values()]
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
        page, cursor = message_page(
            conversation.messages, meta.id, MAX_LISTED, self.max_inline_bytes
        )
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
        """Return all events after `after_seq` up to `seq`. Raises KodeError `ReplayGap`."""
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
    """Return the parts of the result that are still open: questions, plan, blocks, turn."""
    return SessionAttachResult(
        mode="snapshot",
        seq=seq,
        active_turn_id=active_turn_id,
        pending=tuple(history.questions.values()),
        asks=tuple(history.asks.values()),
        plan=history.plan,
        findings=history.findings,
        last_turn=history.last_turn,
        open_blocks=tuple(
            OpenBlock(block_id=block_id, text=block.text)
            for block_id, block in history.blocks.items()
        ),
    )


def _reported_view(change_set: ChangeSet, session_id: str) -> ChangeSetView:
    """Return a change set as its events reported it; ranges are those of the events."""
    return ChangeSetView(
        change_set_id=change_set.id,
        session_id=session_id,
        turn_id=change_set.turn_id,
        state=change_set.state,
        files=change_set.reported_files(),
    )


def _report_loss(session: "Session") -> None:
    """Report reported messages that can no longer be read, once in a session's life."""
    history = session.stream.history
    if history.lost and not history.loss_reported:
        text = (
            f"{history.lost} message(s) of this session were damaged on disk and are missing from "
            "it. What is left of them lies beside it, in the file whose name ends in .bad."
        )
        session.stream(Notice(code=LOSS, level="warning", message=text))


def _gap(why: str) -> KodeError:
    text = f"No replay: {why}. Attach without `afterSeq` and start from the snapshot."
    return KodeError("ReplayGap", text)
