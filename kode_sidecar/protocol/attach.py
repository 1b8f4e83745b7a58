"""Params and results of what opens, leaves, copies and writes out sessions that are kept."""

from typing import Literal

from msgspec import Struct, field

from kode_sidecar.domain.agent_event import Event, PermissionRequested
from kode_sidecar.domain.message import Cost, Message, Usage
from kode_sidecar.protocol.change_set import ChangeSetView
from kode_sidecar.protocol.session_records import SessionView

Access = Literal["write", "read"]
ExportFormat = Literal["md", "jsonl", "tape"]


class SessionAttachParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`after_seq` is the last event you have folded: you get those after it, else a snapshot.

    With `write` the session is yours, as after `kode/session/new`, and its events stream. With
    `read` you get a snapshot and no events, and whatever would change the session is refused.
    """

    session_id: str
    after_seq: int | None = None
    access: Access = "write"


class OpenBlock(Struct, frozen=True, kw_only=True, rename="camel"):
    """A block that still grows: `text` is what its deltas have brought so far."""

    block_id: str
    text: str


class SessionAttachResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A replay (`events`) or a snapshot (the rest); the next event has `seq` + 1.

    In a snapshot `messages` are those of all branches, oldest first; with `cursor` there are more:
    go on with `kode/message/list` and `all`. `open_messages` are begun and not complete yet, with
    the blocks so far. `pending` are the questions that wait for the user.
    """

    mode: Literal["replay", "snapshot"]
    seq: int
    events: tuple[Event, ...] = ()
    session: SessionView | None = None
    messages: tuple[Message, ...] = ()
    cursor: str | None = None
    open_messages: tuple[Message, ...] = ()
    head_id: str | None = None
    change_sets: tuple[ChangeSetView, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: Cost | None = None
    cost_usd: float | None = None
    active_turn_id: str | None = None
    pending: tuple[PermissionRequested, ...] = ()
    open_blocks: tuple[OpenBlock, ...] = ()


class SessionForkParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The history of the new session is the path to `message_id`, by default to the head."""

    session_id: str
    message_id: str | None = None


class SessionForkResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The new session, kept and not open: attach to it."""

    session_id: str


class SessionExportParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`md` is the current branch to be read, `jsonl` all messages as they are kept.

    A `tape` exists only of a process that was started to record.
    """

    session_id: str
    format: ExportFormat


class SessionExportResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole text, and a name for a file of it."""

    file_name: str
    text: str
