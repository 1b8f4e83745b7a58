"""The head of a session: what it leaves open, how it is changed, how it is shown."""

from dataclasses import replace
from typing import Any, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType

from kode_sidecar.domain.agent_event import SessionUpdated
from kode_sidecar.event_log import NewSession, SessionDefaults
from kode_sidecar.protocol.session import Mode, SessionUpdateParams, SessionView
from kode_sidecar.records.conversation_meta import ConversationMeta, HeadMark

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
    if params.mode is not UNSET:
        changes["mode"] = params.mode or UNSET
    if params.model is not UNSET:
        changes["model"] = params.model or UNSET
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
    return replace(session, title=meta.title, mode=mode, model=model)


def update_event(
    params: SessionUpdateParams, meta: ConversationMeta, defaults: SessionDefaults
) -> SessionUpdated:
    """What is told of an update that led to `meta`."""
    return SessionUpdated(
        title=None if params.title is UNSET else meta.title,
        mode=None if params.mode is UNSET else mode_of(meta, defaults),
        model=None if params.model is UNSET else model_of(meta, defaults),
        meta=None if params.meta is UNSET else meta.meta,
    )


def changes_nothing(params: SessionUpdateParams) -> bool:
    """Whether an update leaves everything as it is."""
    return {params.title, params.mode, params.model} == {UNSET} and params.meta is UNSET


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
        active_turn_id=active_turn_id,
    )
