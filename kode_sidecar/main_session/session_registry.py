"""The sessions of this process: created at once, run as soon as the agent is loaded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kode_sidecar.context.agents import agent_profile
from kode_sidecar.errors import KodeError
from kode_sidecar.main_session.session_records import (
    NewSession,
    SessionDefaults,
    SessionRecords,
)
from kode_sidecar.protocol.session import SessionNewParams, SessionNewResult

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.main_session.change_sets import ChangeSets
    from kode_sidecar.main_session.session import Session

# (session id, title, agent, meta) -> the new session's files, saved. Raises KodeError `Storage`.
CreateRecords = Callable[[str, str, str, dict[str, Any]], Awaitable[SessionRecords]]


class SessionRegistry:
    """Creates sessions and finds them again.

    A session is on disk before the agent is loaded; what needs the agent waits in `get`.
    """

    def __init__(
        self,
        defaults: SessionDefaults,
        new_session_id: Callable[[], str],
        create_records: CreateRecords,
    ) -> None:
        self._defaults = defaults
        self._new_session_id = new_session_id
        self._create_records = create_records
        self._new: dict[str, NewSession] = {}
        self._sessions: dict[str, Session] = {}
        self._run: Callable[[NewSession], Session] | None = None
        self._ready = asyncio.Event()

    def attach(self, run: "Callable[[NewSession], Session]") -> None:
        """The agent is loaded: `run` makes a session that can run."""
        self._run = run
        self._ready.set()

    async def create(self, params: SessionNewParams) -> SessionNewResult:
        """A new session, on disk before this returns.

        Raises KodeError `ConfigInvalid` for an unknown agent, `Storage`.
        """
        agent = agent_profile(params.agent or self._defaults.agent, self._defaults.window_messages)
        session_id = self._new_session_id()
        title = params.title or ""
        records = await self._create_records(session_id, title, agent.name, params.meta)
        self._new[session_id] = NewSession(
            id=session_id,
            title=title,
            agent=agent,
            mode=params.mode or self._defaults.mode,
            model=params.model or self._defaults.model,
            records=records,
        )
        return SessionNewResult(session_id=session_id, seq=records.journal.last_seq)

    def find(self, session_id: str) -> "Session | None":
        """The session if anything was asked of it yet. Raises KodeError `SessionNotFound`."""
        if session_id not in self._new and session_id not in self._sessions:
            raise KodeError(
                "SessionNotFound",
                f"There is no session {session_id!r} in this process; create one with "
                "kode/session/new.",
            )
        return self._sessions.get(session_id)

    async def get(self, session_id: str) -> "Session":
        """Waits for the agent, and only then for anything. Raises KodeError `SessionNotFound`."""
        session = self.find(session_id)
        if session is not None:
            return session
        await self._ready.wait()
        assert self._run is not None
        if session_id in self._new:
            self._sessions[session_id] = self._run(self._new.pop(session_id))
        return self._sessions[session_id]

    async def loaded(self) -> None:
        """Wait until the agent is there."""
        await self._ready.wait()

    def change_sets_of(self, change_set_id: str) -> "ChangeSets":
        """The session part that holds a change set. Raises KodeError `ChangeSetNotFound`."""
        for session in self._sessions.values():
            if session.change_sets.has(change_set_id):
                return session.change_sets
        raise KodeError(
            "ChangeSetNotFound",
            f"There is no change set {change_set_id!r}; use an id from changeSet.updated.",
        )

    async def close(self) -> None:
        """Cancel every turn and wait for them."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
