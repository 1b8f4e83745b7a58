"""The files of sessions, and the head of each: made, opened, changed, shown."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from kode_sidecar.agent.event_log import (
    EventHistory,
    NewSession,
    OpenedSession,
    SessionDefaults,
    SessionStream,
)
from kode_sidecar.core.domain.agent_event import SessionUpdated
from kode_sidecar.core.domain.context_edits import NO_EDITS
from kode_sidecar.core.protocol.session import (
    Mode,
    SessionNewParams,
    SessionUpdateParams,
    SessionView,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import (
    ConversationFiles,
    ConversationMeta,
    HeadMark,
)
from kode_sidecar.infrastructure.records.conversation_store import ConversationStore
from kode_sidecar.infrastructure.records.rebuilding import LOST
from kode_sidecar.infrastructure.records.saver import Saver

if TYPE_CHECKING:
    from kode_sidecar.core.kernel.contracts import Clock, NewId

_PLACES = ("roots", "projectRoot")
_MODES = cast(tuple[Mode, ...], get_args(Mode))


def mode_of(meta: ConversationMeta, defaults: SessionDefaults) -> Mode:
    """The mode that a session's next turn has."""
    known: dict[object, Mode] = {mode: mode for mode in _MODES}
    return known.get(meta.mode, defaults.mode)


def model_of(meta: ConversationMeta, defaults: SessionDefaults) -> str:
    """The model that a session's next turn asks."""
    return meta.model or defaults.model


def updated(meta: ConversationMeta, params: SessionUpdateParams) -> ConversationMeta:
    """The head after an update."""
    changes: dict[str, Any] = {}
    if params.title is not UNSET:
        changes["title"] = params.title or ""
    for name in ("mode", "model", "effort", "draft"):
        if (value := getattr(params, name)) is not UNSET:
            changes[name] = value or UNSET
    if not isinstance(params.meta, UnsetType):
        places = {name: meta.meta[name] for name in _PLACES if name in meta.meta}
        changes["meta"] = {**places, **(params.meta or {})}
    return msgspec.structs.replace(meta, **changes)


def with_head(meta: ConversationMeta, head_id: str | None, newest: str | None) -> ConversationMeta:
    """The head of the session after the head of its tree was moved."""
    mark = UNSET if head_id == newest else HeadMark(head_id, newest)
    return msgspec.structs.replace(meta, head=mark)


def with_meta(session: NewSession, meta: ConversationMeta) -> NewSession:
    """A session's options after its head was changed."""
    mode, model = mode_of(meta, session.defaults), model_of(meta, session.defaults)
    return replace(session, mode=mode, model=model)


def update_event(
    params: SessionUpdateParams, meta: ConversationMeta, defaults: SessionDefaults
) -> SessionUpdated:
    """What is told of an update that led to `meta`."""
    return SessionUpdated(
        title=None if params.title is UNSET else meta.title,
        mode=None if params.mode is UNSET else mode_of(meta, defaults),
        model=None if params.model is UNSET else model_of(meta, defaults),
        effort=None if params.effort is UNSET else meta.known_effort or "",
        meta=None if params.meta is UNSET else meta.meta,
        draft=None if params.draft is UNSET else meta.draft or "",
    )


def changes_nothing(params: SessionUpdateParams) -> bool:
    """Return whether an update changes nothing."""
    told = {params.title, params.mode, params.model, params.effort, params.draft}
    return told == {UNSET} and params.meta is UNSET


def view_of(
    meta: ConversationMeta, defaults: SessionDefaults, active_turn_id: str | None
) -> SessionView:
    """A head as the editor is shown it."""
    return SessionView(
        session_id=meta.id,
        title=meta.title,
        agent=meta.agent_type,
        mode=mode_of(meta, defaults),
        model=model_of(meta, defaults),
        created_at=meta.created_at,
        updated_at=meta.updated_at,
        meta=meta.meta,
        draft=meta.draft or "",
        effort=meta.known_effort,
        context_edits=None if meta.edits == NO_EDITS else meta.edits,
        active_turn_id=active_turn_id,
        kind="job" if meta.kind == JOB else None,
    )


async def save_head(
    records: ConversationFiles,
    stream: SessionStream,
    meta: ConversationMeta,
    event: SessionUpdated,
    undo: Callable[[], SessionUpdated],
) -> Callable[[], None]:
    """Write another head of an open session and tell of it; what to call after the reply.

    `undo` says what held before. Raises KodeError `Storage`; then that is in force again, and told.
    """
    before = records.meta
    try:
        async with stream.saving():
            records.write_meta(meta)
            stream(event)
    except BaseException:
        if records.meta is meta:
            records.write_meta(before)
            stream(undo())
            with suppress(KodeError):  # the file may hold the change already
                await records.save()
        raise
    return stream.release


JOB = "job"
"""The kind of a job's session. The run writes it, and nobody else."""


def job_is_read_only() -> KodeError:
    """Return the error for who wants to write to the session of a job."""
    text = (
        "This is the session of a job, which is only read. Go on in a copy of it: "
        "kode/session/fork."
    )
    return KodeError("ReadOnly", text, details={"kind": JOB})


@dataclass(frozen=True)
class SessionFolders:
    """Makes and opens the files of sessions; each is locked until its records are closed.

    `defaults` fill in what the head of a session leaves open. `roots` are the URIs of the open
    folders, which a new session remembers.
    """

    store: ConversationStore
    saver: Saver
    clock: "Clock"
    new_id: "NewId"
    defaults: SessionDefaults
    roots: Callable[[], Sequence[str]]

    async def create(
        self, session_id: str, agent: str, params: SessionNewParams, kind: str = ""
    ) -> ConversationFiles:
        """The files of a new session, saved. Raises KodeError `Storage`."""
        now = self.clock.timestamp()
        roots = list(self.roots())
        places: dict[str, Any] = {"roots": roots}
        if roots:
            places["projectRoot"] = roots[0]
        records = self.store.create(
            ConversationMeta(
                id=session_id,
                kind=kind or UNSET,
                title=params.title or "",
                agent_type=agent,
                created_at=now,
                updated_at=now,
                meta={**places, **params.meta},
                mode=params.mode or UNSET,
                model=params.model or UNSET,
                effort=params.effort or UNSET,
            )
        )
        try:
            await records.save()
        except BaseException:
            records.close()
            with suppress(KodeError):  # what was refused is not there
                await asyncio.to_thread(self.store.delete, session_id)
            raise
        return records

    def open(self, session_id: str) -> OpenedSession:
        """The files of a session that is kept, and what is in them; blocks.

        Raises KodeError `SessionNotFound`, `ReadOnly`, also for that of a job, `Storage`.
        """
        if self.store.head(session_id).kind == JOB:
            raise job_is_read_only()
        return self.open_any(session_id)

    def open_any(self, session_id: str) -> OpenedSession:
        """As `open`, also the session of a job: to put it in order, not to go on with it."""
        opened = self.store.open(session_id)
        writer, history = opened.writer, EventHistory()
        try:
            history.feed_all(writer.journal.take_events())
            if history.title and not writer.meta.title:
                writer.rename(history.title)  # the head was written before its title was
            spent = self.store.scouts_spending(session_id)
        except BaseException:
            writer.close()
            raise
        conversation = opened.stored.tree()
        gone = history.completed_messages.difference(conversation.ids)
        stand_ins = [one for one in conversation.messages if one.origin == LOST]
        history.lost = len(gone) + len(stand_ins)
        return OpenedSession(writer, conversation, history, spent)
