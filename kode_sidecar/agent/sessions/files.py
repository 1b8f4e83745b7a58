"""Create and open session files; change and show the metadata in their heads."""

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
from kode_sidecar.infrastructure.records.growth import read_growth
from kode_sidecar.infrastructure.records.rebuilding import LOST
from kode_sidecar.infrastructure.records.saver import Saver

if TYPE_CHECKING:
    from kode_sidecar.core.kernel.contracts import Clock, NewId

_PLACES = ("roots", "projectRoot")
_MODES = cast(tuple[Mode, ...], get_args(Mode))


def mode_of(meta: ConversationMeta, defaults: SessionDefaults) -> Mode:
    """Return the mode of a session's next turn."""
    known: dict[object, Mode] = {mode: mode for mode in _MODES}
    return known.get(meta.mode, defaults.mode)


def model_of(meta: ConversationMeta, defaults: SessionDefaults) -> str:
    """Return the model of a session's next turn."""
    return meta.model or defaults.model


def updated(meta: ConversationMeta, params: SessionUpdateParams) -> ConversationMeta:
    """Return the metadata after an update."""
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
    """Return the metadata after the head of the tree moved to `head_id`."""
    mark = UNSET if head_id == newest else HeadMark(head_id, newest)
    return msgspec.structs.replace(meta, head=mark)


def with_meta(session: NewSession, meta: ConversationMeta) -> NewSession:
    """Return a session's options after its metadata changed."""
    mode, model = mode_of(meta, session.defaults), model_of(meta, session.defaults)
    return replace(session, mode=mode, model=model)


def update_event(
    params: SessionUpdateParams, meta: ConversationMeta, defaults: SessionDefaults
) -> SessionUpdated:
    """Return the event that reports an update which led to `meta`."""
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
    reported = {params.title, params.mode, params.model, params.effort, params.draft}
    return reported == {UNSET} and params.meta is UNSET


def view_of(
    meta: ConversationMeta, defaults: SessionDefaults, active_turn_id: str | None
) -> SessionView:
    """Return the metadata as the editor shows it."""
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
    """Save and report the new metadata of an open session. Call the result after replying.

    Raises KodeError `Storage`, after restoring the old metadata; `undo` gives the event for that.
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
"""The kind of a job's session. Only the run itself writes to such a session."""


def job_is_read_only() -> KodeError:
    """Return the error for a client that wants to write to the session of a job."""
    text = (
        "This is the session of a job, which is only read. Go on in a copy of it: "
        "kode/session/fork."
    )
    return KodeError("ReadOnly", text, details={"kind": JOB})


@dataclass(frozen=True)
class SessionFolders:
    """Creates and opens session files; each session stays locked until its records are closed.

    `defaults` fill in what a session's metadata leaves open. `roots` are the URIs of the open
    folders, which a new session stores.
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
        """Create and save the files of a new session. Raises KodeError `Storage`."""
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
            with suppress(KodeError):  # a refused session leaves no files
                await asyncio.to_thread(self.store.delete, session_id)
            raise
        return records

    def open(self, session_id: str) -> OpenedSession:
        """Open a stored session and read its files; blocks.

        Raises KodeError `SessionNotFound`, `Storage`, `ReadOnly` (also for the session of a job).
        """
        if self.store.head(session_id).kind == JOB:
            raise job_is_read_only()
        return self.open_any(session_id)

    def open_any(self, session_id: str) -> OpenedSession:
        """Open a session, even that of a job: it may be repaired, but not continued."""
        opened = self.store.open(session_id)
        writer, history = opened.writer, EventHistory()
        try:
            history.feed_all(writer.journal.take_events())
            for block_id, text in read_growth(writer.folder).items():
                if block_id in history.blocks:
                    history.blocks[block_id].parts.append(text)
            if history.title and not writer.meta.title:
                writer.rename(history.title)  # the title was set after the head was written
            spent = self.store.scouts_spending(session_id)
        except BaseException:
            writer.close()
            raise
        conversation = opened.stored.tree()
        gone = history.completed_messages.difference(conversation.ids)
        stand_ins = [one for one in conversation.messages if one.origin == LOST]
        history.lost = len(gone) + len(stand_ins)
        return OpenedSession(writer, conversation, history, spent)
