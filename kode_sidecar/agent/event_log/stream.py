"""Number the events of a session, write them to the journal, then publish them, in one order."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import TYPE_CHECKING, cast

import msgspec

from kode_sidecar.agent.event_log.activity_log import ActivityLog
from kode_sidecar.agent.event_log.editor_port import EditorPort
from kode_sidecar.agent.event_log.history import EventHistory
from kode_sidecar.core.domain.agent_event import (
    BlockDelta,
    Event,
    MessageCompleted,
    Notice,
    is_stored,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationFiles

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.core.kernel.contracts import Clock

# Few events are held during a save; above this number, producers wait.
HELD_LIMIT = 1_000


class SessionStream:
    """The `Emit` of a session.

    A stored event gets the next `seq` and is in the journal before it is published. While
    `hold` is in force nothing is published: a reply that acknowledges a save goes first.
    Holds nest.
    When the journal cannot be written, events go out without `seq`, after a notice that
    says so, and `flow` raises until `recover` is called. `history` tracks what is still open,
    `activity` writes the log.
    """

    def __init__(
        self,
        records: ConversationFiles,
        editor: EditorPort,
        clock: "Clock",
        history: EventHistory | None = None,
        activity: ActivityLog | None = None,
    ) -> None:
        self._session_id = records.meta.id
        self._journal = records.journal
        self._save = records.save
        self._growth = records.growth
        self._editor = editor
        self._clock = clock
        self._holds = 0
        self._held: list[Event | BlockDelta] = []
        self._released = asyncio.Event()
        self._released.set()
        self._failure: KodeError | None = None
        self._unstored: list[Event] = []
        self.seq = records.journal.last_seq
        self.history = history or EventHistory()
        self._activity = activity
        self._cancelling = False

    def __call__(self, event: Event | BlockDelta) -> int:
        """Store and publish an event; return its `seq`, or 0 if it is not stored."""
        if isinstance(event, BlockDelta):
            if (block := self.history.blocks.get(event.block_id)) is not None:
                block.parts.append(event.add)
                self._growth.add(event)
            self._send(event)
            return 0
        if self._activity is not None:
            self._activity.event(event, self.history)
        if not is_stored(event):
            self._send(event)
            return 0
        stamped = self._stamped(event)
        if self._failure is None:
            try:
                self._journal.append(stamped)
            except KodeError as error:
                self.not_saved(error)
        if self._failure is not None:
            self._unstored.append(event)
            self.history.feed(event)
            self._send(event)
            return 0
        self.seq += 1
        self.history.feed(stamped)
        if isinstance(event, MessageCompleted) and not self.history.blocks:
            self._growth.clear()
        self._send(stamped)
        return self.seq

    async def flow(self) -> None:
        """Wait for room downstream. Raises as `kernel.contracts.Emit.flow` says."""
        if self._cancelling:
            raise asyncio.CancelledError
        if self._failure is not None:
            raise self._failure
        if len(self._held) > HELD_LIMIT:
            await self._released.wait()
        await self._editor.flow()
        if self._cancelling:  # while it waited: what comes next must not begin
            raise asyncio.CancelledError

    def hold(self) -> None:
        """Publish nothing until each hold is released."""
        self._holds += 1
        self._released.clear()

    def cancel(self) -> None:
        """Make `flow` raise from now on, and hold the last events of the turn."""
        if not self._cancelling:
            self._cancelling = True
            self.hold()

    def hold_end(self) -> None:
        """Hold the last events of a turn, unless `cancel` holds them already."""
        if not self._cancelling:
            self.hold()

    def release(self) -> None:
        """End one hold; with the last one publish what was held, in order and together."""
        self._holds -= 1
        if self._holds:
            return
        held, self._held = self._held, []
        for is_delta, run in groupby(held, lambda event: isinstance(event, BlockDelta)):
            if is_delta:
                for delta in run:
                    self._publish(delta)
            else:
                self._editor.publish(self._session_id, tuple(cast(Iterable[Event], run)))
        self._released.set()

    @asynccontextmanager
    async def saving(self) -> AsyncGenerator[None]:
        """Hold, and save what the body did. The caller releases after replying.

        On failure no reply follows, so everything is released at once.
        """
        self.hold()
        try:
            yield
            await self.save()
        except BaseException:
            self.release()
            raise

    async def save(self) -> None:
        """Save all emitted events, including those the journal refused, to acknowledge them.

        Raises KodeError `Storage`.
        """
        if self._unstored:
            self._write_unstored()
        await self._save()

    async def save_published(self) -> None:
        """Save what was published already; on failure publish a notice, and make `flow` raise."""
        try:
            await self._save()
        except KodeError as error:
            self.not_saved(error)

    async def published(self) -> None:
        """Wait until nothing is held, so that all earlier events are published."""
        while self._holds:
            await self._released.wait()

    def hold_to_attach(self) -> bool:
        """Hold for a client that attaches; return whether the journal has all events.

        What it refused is written first: it is part of the answer, and published after it to a
        client that has seen it without a number.
        """
        self.hold()
        if self._unstored:
            with suppress(KodeError):
                self._write_unstored()
        return not self._unstored

    def report_failure(self) -> None:
        """Repeat the notice about a failed write: a client that has just attached knows of none."""
        if self._failure is not None:
            self.not_saved(self._failure)

    def forget_held(self) -> None:
        """End one hold and drop what was held: an attaching client gets it in the snapshot."""
        self._held.clear()
        self.release()

    def recover(self) -> None:
        """Write unstored events to the journal, and publish them again with their numbers.

        Raises KodeError `Storage` if writing fails again.
        """
        self._cancelling = False
        self._write_unstored()

    def _write_unstored(self) -> None:
        while self._unstored:
            stamped = self._stamped(self._unstored[0])
            try:
                self._journal.append(stamped)
            except KodeError as error:
                self._failure = error
                raise
            del self._unstored[0]
            self.seq += 1
            self._send(stamped)
        self._failure = None

    def not_saved(self, error: KodeError) -> None:
        """Publish a notice about a failed write, and make `flow` raise it."""
        self._failure = error
        self._send(Notice(code="NotSaved", level="error", message=error.message))

    def _stamped(self, event: Event) -> Event:
        return msgspec.structs.replace(event, seq=self.seq + 1, ts=self._clock.timestamp())

    def _send(self, event: Event | BlockDelta) -> None:
        if not self._holds:
            self._publish(event)
        else:
            self._held.append(event)

    def _publish(self, event: Event | BlockDelta) -> None:
        if isinstance(event, BlockDelta):
            self._editor.publish_delta(event)
        else:
            self._editor.publish(self._session_id, (event,))
