"""The interface of a listener that sees all frames of a connection and may delay incoming ones."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.events import DeltaParams
from kode_sidecar.servers.lsp.codec import Notification, RpcDialect, encode
from kode_sidecar.servers.lsp.outbox import Outbox
from kode_sidecar.servers.lsp.reader import EndOfInput

Pop = Callable[[], bytes | EndOfInput | None]


class FrameListener(Protocol):
    """Sees every message after `initialize`, and sits between reader and connection."""

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on which the process serves."""
        ...

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """Return what the connection pops from instead; `pump` makes it try again. On the loop."""
        ...

    def said(self, body: bytes) -> Sequence[bytes]:
        """Take a message to the client, each delta by itself; return the messages to send for it.

        Called from any thread; must not wait.
        """
        ...


class RecordedOutbox(Outbox):
    """An outbox that passes everything put into it to a listener first."""

    def __init__(
        self,
        listener: FrameListener,
        fd: int,
        *,
        on_fatal: Callable[[str], None],
        wait_first: Callable[[], None],
        dialect: RpcDialect,
    ) -> None:
        super().__init__(fd, on_fatal=on_fatal, wait_first=wait_first, dialect=dialect)
        self._listener = listener

    def put(self, body: bytes) -> None:
        """See `Outbox`."""
        for said in self._listener.said(body):
            super().put(said)

    def put_delta(self, delta: BlockDelta) -> None:
        """See `Outbox`."""
        said = self._listener.said(encode(Notification("kode/delta", DeltaParams((delta,)))))
        if len(said) == 1:
            super().put_delta(delta)
            return
        for body in said:
            super().put(body)
