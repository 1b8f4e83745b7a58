"""The sessions of this process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kode_sidecar.context.agents import agent_profile
from kode_sidecar.errors import KodeError
from kode_sidecar.main_session.change_sets import ChangeSets
from kode_sidecar.main_session.services import SessionRecords, SessionServices
from kode_sidecar.main_session.session import Session, SessionOptions
from kode_sidecar.protocol.session import SessionNewParams, SessionNewResult

# (session id, title, agent, meta) -> the new session's files, saved. Raises KodeError `Storage`.
CreateRecords = Callable[[str, str, str, dict[str, Any]], Awaitable[SessionRecords]]


class SessionRegistry:
    """Creates sessions and finds them again."""

    def __init__(self, services: SessionServices, create_records: CreateRecords) -> None:
        self._services = services
        self._create_records = create_records
        self._sessions: dict[str, Session] = {}

    async def create(self, params: SessionNewParams) -> SessionNewResult:
        """A new session, on disk before this returns.

        Raises KodeError `ConfigInvalid` for an unknown agent, `Storage`.
        """
        defaults = self._services.defaults
        options = SessionOptions(
            agent=agent_profile(params.agent or defaults.agent),
            mode=params.mode or defaults.mode,
            model=params.model or defaults.model,
        )
        session_id = self._services.new_id("session")
        title = params.title or ""
        records = await self._create_records(session_id, title, options.agent.name, params.meta)
        session = Session(session_id, options, self._services, records, title)
        self._sessions[session_id] = session
        return SessionNewResult(session_id=session_id, seq=session.stream.seq)

    def get(self, session_id: str) -> Session:
        """Raises KodeError `SessionNotFound`."""
        session = self._sessions.get(session_id)
        if session is None:
            raise KodeError(
                "SessionNotFound",
                f"There is no session {session_id!r} in this process; create one with "
                "kode/session/new.",
            )
        return session

    def change_sets_of(self, change_set_id: str) -> ChangeSets:
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
