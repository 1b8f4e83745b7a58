"""Params and results of what reads and changes sessions that are kept."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.domain.message import Cost, Message, Usage
from kode_sidecar.protocol.session import Mode


class SessionView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The head of a session. `meta` holds its `roots`; `active_turn_id` is there while one runs.

    `mode` and `model` are what its next turn uses, `updated_at` is when it was last written to.
    """

    session_id: str
    title: str
    agent: str
    mode: Mode
    model: str
    created_at: str
    updated_at: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    active_turn_id: str | None = None


class SessionListParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """By default the sessions whose `meta.roots` name one of the folders that are open now.

    `all` gives those of other folders too; `query` is looked for in titles, prompts and answers,
    whatever the case.
    `limit` is at most 500; `cursor` is the `next_cursor` of the page before.
    """

    cursor: str | None = None
    limit: int = 50
    query: str | None = None
    all: bool = False


class SessionListResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The one last written to comes first. Without `next_cursor` there is no more."""

    sessions: tuple[SessionView, ...]
    next_cursor: str | None = None


class SessionRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """The id is that of `kode/session/new` or `kode/session/list`."""

    session_id: str


class SessionGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`head_id` is the message the next turn starts below, `heads` the last of each branch.

    Totals are over all branches; `cost` is absent when amounts have different currencies.
    """

    session: SessionView
    heads: tuple[str, ...]
    messages: int
    head_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Cost | None = None
    cost_usd: float | None = None


class SessionUpdateParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Absent means unchanged. `null` clears: no title, the settings' mode or model, no `meta`.

    `meta` is replaced whole, but the session's `roots` and `projectRoot` stay unless it names
    them. A running turn keeps its mode and model.
    """

    session_id: str
    title: str | UnsetType | None = UNSET
    mode: Mode | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    meta: dict[str, Any] | UnsetType | None = UNSET


class MessageListParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The messages from the root to `leaf_id` (absent: the head), or `all` branches.

    `limit` is at most 1000; `cursor` is the `next_cursor` of the page before.
    """

    session_id: str
    leaf_id: str | None = None
    all: bool = False
    cursor: str | None = None
    limit: int = 100


class MessageListResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Oldest first. Without `next_cursor` there is no more."""

    messages: tuple[Message, ...]
    next_cursor: str | None = None
