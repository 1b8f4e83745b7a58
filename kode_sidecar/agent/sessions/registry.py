"""The sessions of this process: created or opened at once, run as soon as the agent is loaded."""

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
from kode_sidecar.core.protocol.session import SessionNewParams, SessionNewResult
from kode_sidecar.core.text.uris import canonical_key
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import ConversationMeta

if TYPE_CHECKING:  # loaded by a thread, after the process answers
    from kode_sidecar.agent.edits import ChangeSets
    from kode_sidecar.agent.sessions.session import Session


class SessionRegistry:
    """Creates sessions, opens those of earlier processes, and finds them again.

    A session is on disk before the agent is loaded; what needs the agent waits in `get`."""

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
        """Held while files of a session that is not open here are opened."""

    def attach(
        self,
        run: "Callable[[NewSession], Session]",
        repair: Callable[[OpenedSession], None],
        check_model: "Callable[[str], None] | None" = None,
    ) -> None:
        """The agent is loaded: `run` makes a session that can run, `repair` puts one in order.

        `check_model` raises KodeError for a name that stands for no model.
        """
        self._run, self._repair = run, repair
        self._check_model = check_model or _any_model
        self._ready.set()

    async def create(self, params: SessionNewParams) -> SessionNewResult:
        """A new session, on disk before this returns.

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
        """A session of this process, or one of an earlier one, in order and ready to run.

        Raises KodeError `SessionNotFound`, `ReadOnly` when another process has it, `Storage`.
        """
        if not self._is_open(session_id):
            opening = self._opening.get(session_id)
            if opening is None:
                opening = asyncio.create_task(self._open(session_id), name=f"open {session_id}")
                self._opening[session_id] = opening
                opening.add_done_callback(lambda _: self._opening.pop(session_id))
            # Somebody else may wait for the same: it goes on when one of them gives up.
            await asyncio.shield(opening)
        return await self.get(session_id)

    async def get(self, session_id: str) -> "Session":
        """Waits for the agent, in order of arrival, and only then for anything (O10).

        Raises KodeError `SessionNotFound`, `ReadOnly`.
        """
        if session_id in self._opening:
            await asyncio.wait([self._opening[session_id]])
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
            return self._new[session_id].opened.records.meta
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

    def mark_read_only(self, session_id: str, *, job: bool = False) -> None:
        """Note that a client attached to this session only to read; that of a `job` stays so."""
        if not self._is_open(session_id):
            self._read_only.setdefault(session_id, None)
        if job:
            self._jobs.add(session_id)

    async def settle_job(self, session_id: str) -> bool:
        """Put the session of a job in order whose process is gone; False while one writes to it.

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
        """Tell of what another process does to a session, as long as it is attached to be read.

        `following` ends when the session is gone.
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
        """Raises KodeError `ReadOnly` for a session that was attached to be read."""
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
        """The sessions that are open here."""
        return (*self._new, *self._sessions)

    async def remove(self, session_id: str) -> None:
        """Forget a session: its turn is cancelled and over, its files are closed."""
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
        """Wait for the agent, which knows. Raises KodeError `ConfigInvalid`."""
        await self._ready.wait()
        self._check_model(name)

    def follow_defaults(self) -> None:
        """The defaults have changed: sessions that name no mode or model of their own go along."""
        for session_id, new in self._new.items():
            self._new[session_id] = with_meta(new, new.opened.records.meta)
        for session in self._sessions.values():
            session.follow_defaults()

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
            f"There is no change set {change_set_id!r} in an open session; use an id from "
            "changeSet.updated, and attach to its session first if an earlier process held it.",
        )

    async def close(self) -> None:
        """Cancel every turn and wait for them."""
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
        """Return the agent it was held with, or the default where that one is gone."""
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
            text = f"There is no session {session_id!r}; create one with kode/session/new."
        raise KodeError("SessionNotFound", text)


def _any_model(name: str) -> None:
    """Nobody knows the models."""
