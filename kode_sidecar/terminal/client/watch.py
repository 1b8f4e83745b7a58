"""All sessions of a connection, folded as they stream, and waiting for something in them."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import SessionFold, attached
from kode_sidecar.terminal.client.session_view import BlockView, Json, TurnView

T = TypeVar("T")


class Listener(Protocol):
    """Who wants to see the stream as it comes."""

    def event(self, session: SessionFold, event: Json) -> None:
        """After an event was folded."""
        ...

    def growth(self, session: SessionFold, block: BlockView, added: str) -> None:
        """After an open block grew by `added`."""
        ...


class Watch:
    """Make it before the first session, so that no event is missed."""

    def __init__(self, client: Client, listener: Listener | None = None) -> None:
        self.sessions: dict[str, SessionFold] = {}
        self._client = client
        self._listener = listener
        self._waiting: list[asyncio.Event] = []
        client.subscribe(self._receive)
        client.on_lost(self._wake)

    def session(self, session_id: str, seq: int = 0) -> SessionFold:
        """The fold of a session; `seq` as `kode/session/new` or `attach` said, at first sight."""
        return self.sessions.setdefault(session_id, SessionFold(session_id, seq))

    async def attach(
        self,
        session_id: str,
        after: SessionFold | None = None,
        *,
        access: str = "write",
        within: float | None = None,
    ) -> SessionFold:
        """`kode/session/attach`: go on from `after`, or from a snapshot. Raises RpcError."""
        params: dict[str, Any] = {"sessionId": session_id, "access": access}
        if after is not None:
            params["afterSeq"] = after.seq

        def take(result: Any) -> None:
            self.sessions[session_id] = attached(session_id, result, after)

        await self._client.request("kode/session/attach", params, within, take)
        return self.sessions[session_id]

    async def until(self, condition: Callable[[], T | None], within: float | None = None) -> T:
        """Wait until `condition()` gives something true, checked after each notification.

        Raises ConnectionLost, or TimeoutError after `within` seconds.
        """
        changed = asyncio.Event()
        self._waiting.append(changed)
        try:
            async with asyncio.timeout(within):
                while not (value := condition()):
                    if self._client.lost is not None:
                        raise self._client.lost
                    await changed.wait()
                    changed.clear()
                return value
        finally:
            self._waiting.remove(changed)

    async def turn_end(
        self, session_id: str, turn_id: str, within: float | None = None
    ) -> TurnView:
        """Wait for the end of a turn."""

        def ended() -> TurnView | None:
            turn = self.session(session_id).turns.get(turn_id)
            return turn if turn is not None and turn.stop_reason is not None else None

        return await self.until(ended, within)

    def _receive(self, method: str, params: Any) -> None:
        if method == "kode/event":
            session = self.session(params["sessionId"])
            for event in params["events"]:
                if session.event(event) and self._listener is not None:
                    self._listener.event(session, event)
        elif method == "kode/delta":
            for delta in params["deltas"]:
                self._grow(delta)
        self._wake()

    def _wake(self) -> None:
        for changed in self._waiting:
            changed.set()

    def _grow(self, delta: Json) -> None:
        for session in self.sessions.values():
            if delta["blockId"] in session.blocks:
                added = session.delta(delta)
                if added and self._listener is not None:
                    self._listener.growth(session, session.blocks[delta["blockId"]], added)
                return
