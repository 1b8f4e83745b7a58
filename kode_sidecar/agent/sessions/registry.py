"""Create or open the sessions of this process; they run once the agent is loaded."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from kode_sidecar.agent.context.agents import AgentProfile
from kode_sidecar.agent.event_log import (
    NewSession,
    OpenedSession,
)
from kode_sidecar.agent.sessions.files import (
    SessionFolders,
    job_is_read_only,
    mode_of,
    model_of,
    view_of,
    with_meta,
)
from kode_sidecar.core.protocol.session import CommandView, SessionNewParams, SessionNewResult
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.agent.edits import ChangeSets
    from kode_sidecar.agent.sessions.session import Session


class SessionRegistry:
    """Creates sessions, opens those of earlier processes, and looks up open ones.

    A session is on disk before the agent is loaded; code that needs the agent waits in `get`."""

    def __init__(self, folders: SessionFolders) -> None:
        self._folders = folders
        self._defaults = folders.defaults
        self._new: dict[str, NewSession] = {}
        self._sessions: dict[str, Session] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._read_only: dict[str, asyncio.Task[None] | None] = {}
        self._jobs: set[str] = set()
        self._run: Callable[[NewSession], Session] | None = None
        self._repair: Callable[[OpenedSession], None] | None = None
        self._check_model: Callable[[str], None] = _any_model
        self._ready = asyncio.Event()
        self._order = asyncio.Lock()
        self.writing = asyncio.Lock()
        """Held while the files of a session that this process has not opened are being opened."""

    def attach(
        self,
        run: "Callable[[NewSession], Session]",
        repair: Callable[[OpenedSession], None],
        check_model: "Callable[[str], None] | None" = None,
    ) -> None:
        """Take the loaded agent: `run` makes a session that can run, `repair` repairs its files.

        `check_model` raises KodeError for an unknown model name.
        """
        self._run, self._repair = run, repair
        self._check_model = check_model or _any_model
        self._ready.set()

    async def create(self, params: SessionNewParams) -> SessionNewResult:
        """Create a session; it is on disk before this returns.

        Raises KodeError `ConfigInvalid` for an unknown agent or model, `Storage`.
        """
        agent = self._defaults.profile(params.agent or self._defaults.agent)
        if params.model is not None:
            await self.check_model(params.model)
        session_id = self._folders.new_id("session")
        records = await self._folders.create(session_id, agent.name, params)
        self._new[session_id] = self._begun(OpenedSession(records), agent)
        return SessionNewResult(
            session_id=session_id,
            seq=records.journal.last_seq,
            session=view_of(records.meta, self._defaults, None),
        )

    async def open(self, session_id: str) -> "Session":
        """Return a session of this or an earlier process, repaired and ready to run.

        Raises KodeError `SessionNotFound`, `ReadOnly` when another process has it, `Storage`.
        """
        if not self._is_open(session_id):
            opening = self._opening.get(session_id)
            if opening is None:
                opening = asyncio.create_task(self._open(session_id), name=f"open {session_id}")
                self._opening[session_id] = opening
                opening.add_done_callback(lambda _: self._opening.pop(session_id))
            # Shielded, because others may wait for this session when one is cancelled.
            await asyncio.shield(opening)
        return await self.get(session_id)

    async def get(self, session_id: str) -> "Session":
        """Return an open session, once the agent is loaded; callers wait in order of arrival (O10).

        Raises KodeError `SessionNotFound`, `ReadOnly`.
        """
        if session_id in self._opening:
            await asyncio.wait([self._opening[session_id]])
        self._check(session_id)
        async with self._order:  # fair: first come, first served
            await self._ready.wait()
        assert self._run is not None
        self._check(session_id)  # it may have been deleted in the meantime
        if session_id in self._new:
            self._sessions[session_id] = self._run(self._new.pop(session_id))
        return self._sessions[session_id]

    def get_now(self, session_id: str) -> "Session | None":
        """Return a session that can run; None while others wait, to keep the order (O10)."""
        return None if self._order.locked() else self._sessions.get(session_id)

    def running(self) -> "Sequence[Session]":
        """Return the sessions that can run, oldest first."""
        return tuple(self._sessions.values())

    def meta_of(self, session_id: str) -> ConversationMeta | None:
        """Return the metadata of a session open in this process; None for any other."""
        if session_id in self._new:
            return self._new[session_id].opened.records.meta
        session = self._sessions.get(session_id)
        return session.meta if session else None

    def commands_of(self, session_id: str) -> tuple[CommandView, ...]:
        """Return the background commands of a session; none if this process has not opened it."""
        session = self._sessions.get(session_id)
        return session.commands.views if session else ()

    def active_turn(self, session_id: str) -> str | None:
        """Return the id of the running turn, once the client knows it."""
        session = self._sessions.get(session_id)
        return session.active_turn_id if session else None

    def cancel_turn(self, turn_id: str) -> bool:
        """Cancel a turn by its id; True if it was running."""
        return any(session.cancel(turn_id) for session in self._sessions.values())

    def files_changed(self, uris: Sequence[str]) -> None:
        """Check files on disk again, because the client reports that they changed."""
        for session in self._sessions.values():
            session.change_sets.files.look_on_disk(map(canonical_key, uris))

    def mark_read_only(self, session_id: str, *, job: bool = False) -> None:
        """Mark a session as attached for reading only; the session of a `job` stays read-only."""
        if not self._is_open(session_id):
            self._read_only.setdefault(session_id, None)
        if job:
            self._jobs.add(session_id)

    async def settle_job(self, session_id: str) -> bool:
        """Repair the session of a job whose process has ended; False while a process writes to it.

        Raises KodeError `SessionNotFound`, `Storage`.
        """
        await self._ready.wait()
        assert self._repair is not None
        async with self.writing:
            try:
                opened = await asyncio.to_thread(self._folders.open_any, session_id)
            except KodeError as error:
                if error.code != "ReadOnly":
                    raise
                return False
            try:
                await asyncio.to_thread(self._repair, opened)
                await opened.records.save()
            finally:
                opened.records.close()
        return True

    def follow(self, session_id: str, following: Coroutine[Any, Any, None]) -> None:
        """Report what another process does to a session while it is attached for reading.

        `following` ends when the session is deleted.
        """
        if session_id not in self._read_only:
            following.close()
            return

        async def to_its_end() -> None:
            await following
            del self._read_only[session_id]

        self._stop_reading(session_id)
        self._read_only[session_id] = asyncio.create_task(to_its_end(), name=f"read {session_id}")

    def _stop_reading(self, session_id: str) -> None:
        task = self._read_only.pop(session_id, None)
        if task is not None:
            task.cancel()

    def check_may_write(self, session_id: str) -> None:
        """Raise KodeError `ReadOnly` for a session that was attached for reading."""
        if session_id in self._read_only and session_id in self._jobs:
            raise job_is_read_only()
        if session_id in self._read_only:
            raise KodeError(
                "ReadOnly",
                "This session is attached to be read. Attach to it with access `write`, or go on "
                "in a copy of it: kode/session/fork.",
            )

    @property
    def open_ids(self) -> tuple[str, ...]:
        """The ids of the sessions open in this process."""
        return (*self._new, *self._sessions)

    async def remove(self, session_id: str) -> None:
        """Close a session: cancel its turn, wait for its end, close its files."""
        self._stop_reading(session_id)
        if session_id in self._opening:
            await asyncio.wait([self._opening[session_id]])
        new = self._new.pop(session_id, None)
        if new is not None:
            new.opened.records.close()
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.discard()

    async def check_model(self, name: str) -> None:
        """Check a model name once the agent is loaded. Raises KodeError `ConfigInvalid`."""
        await self._ready.wait()
        self._check_model(name)

    def follow_defaults(self) -> None:
        """Apply changed defaults to the sessions that set no mode or model of their own."""
        for session_id, new in self._new.items():
            self._new[session_id] = with_meta(new, new.opened.records.meta)
        for session in self._sessions.values():
            session.follow_defaults()

    async def loaded(self) -> None:
        """Wait until the agent is loaded."""
        await self._ready.wait()

    def change_sets_of(self, change_set_id: str) -> "ChangeSets":
        """Return the change sets of its session. Raises KodeError `ChangeSetNotFound`."""
        for session in self._sessions.values():
            if session.change_sets.has(change_set_id):
                return session.change_sets
        raise KodeError(
            "ChangeSetNotFound",
            f"There is no change set {change_set_id!r} in an open session; use an id from "
            "changeSet.updated, and attach to its session first if an earlier process held it.",
        )

    async def close(self) -> None:
        """Cancel every turn and wait for its end."""
        for session_id in [*self._read_only]:
            self._stop_reading(session_id)
        await asyncio.gather(*(session.close() for session in self._sessions.values()))

    async def _open(self, session_id: str) -> None:
        """Open the files on a thread, wait for the agent, repair the session, save it."""
        async with self.writing:
            opened = await asyncio.to_thread(self._folders.open, session_id)
        try:
            await self._ready.wait()
            assert self._run is not None
            assert self._repair is not None
            await asyncio.to_thread(self._repair, opened)
            await opened.records.save()
            agent = self._agent(opened.records.meta.agent_type or opened.history.agent)
            self._sessions[session_id] = self._run(self._begun(opened, agent))
        except BaseException:
            opened.records.close()
            raise
        self._stop_reading(session_id)

    def _begun(self, opened: OpenedSession, agent: AgentProfile) -> NewSession:
        meta, defaults = opened.records.meta, self._defaults
        mode, model = mode_of(meta, defaults), model_of(meta, defaults)
        return NewSession(opened, agent, mode, model, defaults)

    def _agent(self, name: str) -> AgentProfile:
        """Return the agent of that name, or the default if it no longer exists."""
        if name:
            try:
                return self._defaults.profile(name)
            except KodeError:
                pass
        return self._defaults.profile(self._defaults.agent)

    def _is_open(self, session_id: str) -> bool:
        return session_id in self._new or session_id in self._sessions

    def _check(self, session_id: str) -> None:
        if self._is_open(session_id):
            return
        self.check_may_write(session_id)
        if self._folders.store.exists(session_id):
            text = (
                f"The session {session_id!r} is kept but not open in this process; open it with "
                "kode/session/attach, then send this again."
            )
        else:
            text = f"There is no session {session_id!r}: list the sessions, or begin a new one."
        raise KodeError("SessionNotFound", text)


def _any_model(name: str) -> None:
    """Accept every name, because there is no list of models."""
