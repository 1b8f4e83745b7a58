"""Session events on their way to the wire: `kode/event` and `kode/delta`."""

from kode_sidecar.domain.agent_event import BlockDelta, Event
from kode_sidecar.protocol.events import EventParams
from kode_sidecar.server.connection import Connection


class Projector:
    """Sends what sessions publish. Order is the outbox's: one FIFO for everything."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def publish(self, session_id: str, event: Event) -> None:
        """One event, one notification."""
        params = EventParams(session_id=session_id, events=(event,))
        self._connection.notify("kode/event", params)

    def publish_delta(self, delta: BlockDelta) -> None:
        """Growth of a block; the outbox merges it with what is unsent."""
        self._connection.notify_delta(delta)

    async def flow(self) -> None:
        """Wait until the outbox has room."""
        await self._connection.flow()
