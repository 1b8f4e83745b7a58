"""Turns, and what the model is asked with: `kode/turn/*` and `kode/context/*`."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.domain.message import Block
from kode_sidecar.protocol.session import Mode


class TurnOptions(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is special about a prompt; kept with it and told to the model.

    `koding`: the answer is meant for the project's notes (AGENTS.md). `koding_context` is what the
    editor adds to the prompt.
    """

    koding: bool = False
    koding_context: str | None = None


class TurnStartParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Start a turn. `parent_id` absent = below the head; `null` = a new root.

    `input` holds `text`, `image` and `resource` blocks; empty, it goes on after
    `max_tool_rounds`. The same `client_turn_key` gives the same turn, with `deduplicated: true`.
    `mode` and `model` are for this turn. `meta` and `options` are kept in the prompt's `meta`.
    """

    session_id: str
    input: tuple[Block, ...]
    parent_id: str | UnsetType | None = UNSET
    client_turn_key: str | None = None
    mode: Mode | None = None
    model: str | None = None
    options: TurnOptions | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


class TurnStartResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Sent at acceptance: the prompt is saved. `message_id` is the prompt's."""

    turn_id: str
    message_id: str
    deduplicated: bool = False


class TurnCancelParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Without `turn_id` whatever turn runs; with it only that one."""

    session_id: str
    turn_id: str | None = None


class TurnCancelResult(Struct, frozen=True):
    """`cancelled: false` when nothing ran."""

    cancelled: bool


class TurnSteerParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Say something to the running turn; the model gets it before its next step."""

    session_id: str
    turn_id: str
    input: tuple[Block, ...]


SegmentOrigin = Literal[
    "system", "tools", "summary", "prompt", "answer", "result", "reminder", "steer", "note"
]


class ContextInspectParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which request: that of a turn with these params of `kode/turn/start`.

    While a turn runs they do not count: it is the request of its next step. `body` asks for the
    bytes, too.
    """

    session_id: str
    input: tuple[Block, ...] = ()
    parent_id: str | UnsetType | None = UNSET
    mode: Mode | None = None
    model: str | None = None
    options: TurnOptions | None = None
    body: bool = False


class Segment(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a request. `note` is what the sidecar puts where the API demands a message.

    `message_id` is absent for what is no message of the session, or not yet. `tokens` is its share
    of the request, `counted` says that the model's host has counted it. `bytes` are those of its
    text in UTF-8, `head` is where it begins.
    """

    origin: SegmentOrigin
    tokens: int
    bytes: int
    head: str
    counted: bool = False
    message_id: str | None = None


class ContextInspectResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The exact next request, in order.

    `model` is the id that is asked for. `tokens` is the size, by the host's own count as far as it
    is `counted`, `safe_tokens` what it will hardly exceed, `window` what the model reads at most;
    absent when that is not known. `compaction_due`: the conversation is summed up before this
    request is sent. `trimmed`: messages are left out or cut, which do not fit. `body` is what goes
    over HTTP, `sha256` and `bytes` are its.
    """

    model: str
    tokens: int
    safe_tokens: int
    fits: bool
    segments: tuple[Segment, ...]
    bytes: int
    sha256: str
    counted: bool = False
    window: int | None = None
    compaction_due: bool = False
    trimmed: bool = False
    body: str | None = None


class ContextCompactResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """As the event `context.compacted` tells it."""

    summary_message_id: str
    dropped_messages: int
    tokens_before: int
    tokens_after: int
