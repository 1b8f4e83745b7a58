"""Session events on their way to the wire: `kode/event` and `kode/delta`."""

from collections.abc import Sequence

import msgspec

from kode_sidecar.domain.agent_event import BlockCompleted, BlockDelta, Event
from kode_sidecar.domain.message import ToolResultBlock
from kode_sidecar.protocol.events import EventParams, shorten
from kode_sidecar.server.connection import Connection
from kode_sidecar.server.turn_progress import TurnProgress


class Projector:
    """Sends what sessions publish. Order is the outbox's: one FIFO for everything.

    The journal has each tool result whole; of texts with more than `max_inline_bytes` the client
    gets the head, and reads the rest when somebody wants to see it. `progress`, if there is one,
    is told of every event before it is sent.
    """

    def __init__(
        self, connection: Connection, max_inline_bytes: int, progress: TurnProgress | None
    ) -> None:
        self._connection = connection
        self._max_inline_bytes = max_inline_bytes
        self._progress = progress

    def publish(self, session_id: str, events: Sequence[Event]) -> None:
        """Events that go together, one notification."""
        if self._progress is not None:
            for event in events:
                self._progress.follow(event)
        shortened = tuple(self._shortened(session_id, event) for event in events)
        self._connection.notify("kode/event", EventParams(session_id=session_id, events=shortened))

    def publish_delta(self, delta: BlockDelta) -> None:
        """Growth of a block; the outbox merges it with what is unsent."""
        self._connection.notify_delta(delta)

    async def flow(self) -> None:
        """Wait until the outbox has room."""
        await self._connection.flow()

    def _shortened(self, session_id: str, event: Event) -> Event:
        # What is not stored could not be read later.
        if not (isinstance(event, BlockCompleted) and event.seq):
            return event
        if not isinstance(event.block, ToolResultBlock):
            return event
        block = shorten(event.block, session_id, self._max_inline_bytes)
        return event if block is event.block else msgspec.structs.replace(event, block=block)
