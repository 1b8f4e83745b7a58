"""A place in the stream where somebody may listen, or hold back what comes in."""

from collections.abc import Callable
from typing import Protocol

from kode_sidecar.domain.agent_event import BlockDelta
from kode_sidecar.protocol.events import DeltaParams
from kode_sidecar.server.codec import Notification, encode
from kode_sidecar.server.outbox import Outbox
from kode_sidecar.server.reader import EndOfInput

Pop = Callable[[], bytes | EndOfInput | None]


class StreamTap(Protocol):
    """Hears everything that is said after `initialize`, and sits between reader and connection."""

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """What is popped instead; `pump` has the connection try again. On the loop."""
        ...

    def said(self, body: bytes) -> None:
        """A message to the client, each delta by itself. From any thread, must not wait."""
        ...


class TappedOutbox(Outbox):
    """An outbox that tells of everything that is put into it."""

    def __init__(
        self,
        tap: StreamTap,
        fd: int,
        *,
        on_fatal: Callable[[str], None],
        wait_first: Callable[[], None],
    ) -> None:
        super().__init__(fd, on_fatal=on_fatal, wait_first=wait_first)
        self._tap = tap

    def put(self, body: bytes) -> None:
        """See `Outbox`."""
        self._tap.said(body)
        super().put(body)

    def put_delta(self, delta: BlockDelta) -> None:
        """See `Outbox`."""
        self._tap.said(encode(Notification("kode/delta", DeltaParams((delta,)))))
        super().put_delta(delta)
