"""Folds all sessions of a connection as they stream, and waits for conditions in them."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json


class Follows(Protocol):
    """A session that takes the stream: `ClientSession`, or one that also checks it."""

    @property
    def seq(self) -> int:
        """The number of the newest stored event."""
        ...

    def attach(self, sent: Json) -> None:
        """Take the answer of `kode/session/attach`."""
        ...

    def event(self, event: Json) -> bool:
        """Take an event; return False if it has come before."""
        ...

    def delta(self, delta: Json) -> str:
        """Return the new text of a delta, "" if it is of another session."""
        ...


S = TypeVar("S", bound=Follows)
S_contra = TypeVar("S_contra", contravariant=True)
T = TypeVar("T")


class Listener(Protocol[S_contra]):
    """Receives the stream as it comes."""

    def event(self, session: S_contra, event: Json) -> None:
        """Called after an event was folded."""
        ...

    def growth(self, session: S_contra, block_id: str, added: str) -> None:
        """Called after an open block grew by `added`."""
        ...


class Watch(Generic[S]):
    """Follows all sessions. Create it before the first session, so that no event is missed.

    `follow(id, seq)` makes the fold of a session, which continues after event number `seq`.
    """

    def __init__(
        self, client: Client, follow: Callable[[str, int], S], listener: Listener[S] | None = None
    ) -> None:
        self.sessions: dict[str, S] = {}
        self._client = client
        self._follow = follow
        self._listener = listener
        self._waiting: list[asyncio.Event] = []
        client.subscribe(self._receive)
        client.on_lost(self._wake)

    def session(self, session_id: str, seq: int = 0) -> S:
        """Return the fold of a session; a new one starts at `seq`, from `kode/session/new`."""
        if session_id not in self.sessions:
            self.sessions[session_id] = self._follow(session_id, seq)
        return self.sessions[session_id]

    async def attach(
        self,
        session_id: str,
        after: S | None = None,
        *,
        access: str = "write",
        within: float | None = None,
    ) -> S:
        """Attach to a session: continue from `after`, or from a snapshot. Raises RpcError."""
        params: dict[str, Any] = {"sessionId": session_id, "access": access}
        if after is not None:
            params["afterSeq"] = after.seq

        def take(result: Any) -> None:
            session = after if result["mode"] == "replay" else None
            session = self._follow(session_id, 0) if session is None else session
            session.attach(result)
            self.sessions[session_id] = session

        await self._client.request("kode/session/attach", params, within, take)
        return self.sessions[session_id]

    async def until(self, condition: Callable[[], T | None], within: float | None = None) -> T:
        """Wait until `condition()` is true, checked after each notification; return its value.

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
            if added := session.delta(delta):
                if self._listener is not None:
                    self._listener.growth(session, delta["blockId"], added)
                return
