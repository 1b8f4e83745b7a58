"""The sessions of this process: created at once, run as soon as the agent is loaded."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kode_sidecar.context.agents import agent_profile
from kode_sidecar.errors import KodeError
from kode_sidecar.main_session.session_records import (
    NewSession,
    SessionDefaults,
    SessionRecords,
)
from kode_sidecar.protocol.session import SessionNewParams, SessionNewResult
from kode_sidecar.records.conversation_meta import ConversationMeta
from kode_sidecar.workspace.uris import canonical_key

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.main_session.change_sets import ChangeSets
    from kode_sidecar.main_session.session import Session

# (session id, agent, params) -> the new session's files, saved. Raises KodeError `Storage`.
CreateRecords = Callable[[str, str, SessionNewParams], Awaitable[SessionRecords]]


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
        self._order = asyncio.Lock()

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
        records = await self._create_records(session_id, agent.name, params)
        self._new[session_id] = NewSession(
            id=session_id,
            title=params.title or "",
            agent=agent,
            mode=params.mode or self._defaults.mode,
            model=params.model or self._defaults.model,
            records=records,
            defaults=self._defaults,
        )
        return SessionNewResult(session_id=session_id, seq=records.journal.last_seq)

    async def get(self, session_id: str) -> "Session":
        """Waits for the agent, in order of arrival, and only then for anything (O10).

        Raises KodeError `SessionNotFound`.
        """
        self._check(session_id)
        async with self._order:  # fair: nobody overtakes those who wait for the agent
            await self._ready.wait()
        assert self._run is not None
        self._check(session_id)  # it may have been deleted meanwhile
        if session_id in self._new:
            self._sessions[session_id] = self._run(self._new.pop(session_id))
        return self._sessions[session_id]

    def get_now(self, session_id: str) -> "Session | None":
        """A session that runs already, unless others wait for theirs: nobody is overtaken (O10)."""
        return None if self._order.locked() else self._sessions.get(session_id)

    def meta_of(self, session_id: str) -> ConversationMeta | None:
        """The head of a session of this process; None for any other."""
        if session_id in self._new:
            return self._new[session_id].records.messages.meta
        session = self._sessions.get(session_id)
        return session.meta if session else None

    def active_turn(self, session_id: str) -> str | None:
        """The turn that runs in a session, once its client knows it."""
        session = self._sessions.get(session_id)
        return session.active_turn_id if session else None

    def cancel_turn(self, turn_id: str) -> bool:
        """Cancel a turn by its own id; whether it ran."""
        return any(session.cancel(turn_id) for session in self._sessions.values())

    def files_changed(self, uris: Sequence[str]) -> None:
        """The client says that these files changed on disk."""
        for session in self._sessions.values():
            session.change_sets.files.look_on_disk(map(canonical_key, uris))

    async def remove(self, session_id: str) -> None:
        """Forget a session: its turn is cancelled and over, its files are closed."""
        new = self._new.pop(session_id, None)
        if new is not None:
            new.records.close()
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.discard()

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

    def _check(self, session_id: str) -> None:
        if session_id not in self._new and session_id not in self._sessions:
            raise KodeError(
                "SessionNotFound",
                f"There is no session {session_id!r} in this process; create one with "
                "kode/session/new.",
            )
