"""Turns, and what the model is asked with: `kode/turn/*` and `kode/context/*`."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.core.domain.budget import Budget
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import PromptBlock, ToolKind
from kode_sidecar.core.protocol.session import Mode


class TurnOptions(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is special about a prompt; kept with it and told to the model.

    `koding`: the answer is meant for the project's notes (AGENTS.md). `koding_context` is what the
    editor adds to the prompt.
    """

    koding: bool = False
    koding_context: str | None = None


class TurnStartParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Start a turn. `parent_id` absent = below the head; `null` = a new root.

    `replaces` is an earlier prompt that this one is an edit of: the turn starts where that one did,
    and the version follows from it. It needs no `parent_id`, and one that differs is refused.

    An empty `input` goes on after `max_tool_rounds`. The same `client_turn_key` gives the same
    turn, with `deduplicated: true`. `mode`, `model` and `effort` are for this turn, and so is
    `budget`: of it and the user's own the stricter limit holds. `effort` is how hard the model
    thinks; `kode/models/list` tells which a model takes, and the nearest one is asked for. `meta`
    and `options` are kept in the prompt's `meta`.
    """

    session_id: str
    input: tuple[PromptBlock, ...]
    parent_id: str | UnsetType | None = UNSET
    replaces: str | None = None
    client_turn_key: str | None = None
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None
    options: TurnOptions | None = None
    budget: Budget | None = None
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
    input: tuple[PromptBlock, ...]


SegmentOrigin = Literal[
    "system", "tools", "summary", "prompt", "answer", "result", "reminder", "steer", "note"
]


class ContextInspectParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which request: that of a turn with these params of `kode/turn/start`.

    While a turn runs they do not count: it is the request of its next step. `body` asks for the
    bytes, too.
    """

    session_id: str
    input: tuple[PromptBlock, ...] = ()
    parent_id: str | UnsetType | None = UNSET
    replaces: str | None = None
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None
    options: TurnOptions | None = None
    body: bool = False


class Segment(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a request. `note` is what the sidecar puts where the API demands a message.

    `message_id` is absent for what is no message of the session, or not yet. `tokens` is its share
    of the request, `counted` says that the model's host has counted it. `bytes` are those of its
    text in UTF-8, `head` is where it begins. `pinned`: the user wants it to stay
    (`kode/context/edit`).
    """

    origin: SegmentOrigin
    tokens: int
    bytes: int
    head: str
    counted: bool = False
    message_id: str | None = None
    pinned: bool = False


class ContextInspectResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The exact next request, in order.

    `model` is the id that is asked for. `tokens` is the size, by the host's own count as far as it
    is `counted`, `safe_tokens` what it will hardly exceed, `window` what the model reads at most;
    absent when that is not known. `compaction_due`: the conversation is summed up before this
    request is sent. `trimmed`: messages are left out or cut, which do not fit. `body` is what goes
    over HTTP, `sha256` and `bytes` are its. `left_out` is what the user left out of this branch,
    with the tokens that it would take about; compactions taken back are among it.
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
    left_out: tuple[Segment, ...] = ()


class ContextEditParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Ids of messages, as the segments of `kode/context/inspect` have them.

    `leave_out`: the model is not told of it; in place of a result alone it finds a sentence, and
    with an answer the results of its calls go. `pin`: no summary and no lack of room takes its
    place. `restore`: as if nothing had been decided. Nothing at all tells what is in force. A
    summary that is left out is a compaction taken back, and restoring puts it into force again.
    """

    session_id: str
    leave_out: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()


class ContextUndoCompactionParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Without `summary_message_id` the newest summary of this branch that is in force."""

    session_id: str
    summary_message_id: str | None = None


class ContextEditResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is in force now, and the next request before and after.

    `reread_tokens` of it stand behind the first change: the model's host, which caches by prefix,
    reads them anew, at the price of fresh input. 0 where the request is the same.
    """

    edits: ContextEdits
    tokens_before: int
    tokens_after: int
    reread_tokens: int


class ContextCompactResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """As the event `context.compacted` tells it."""

    summary_message_id: str
    dropped_messages: int
    tokens_before: int
    tokens_after: int


class ToolsListParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The tools of the agent of one session; `mode` is by default the session's."""

    session_id: str
    mode: Mode | None = None


class ToolView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool on offer to the model. `schema` is the JSON Schema of a call's `input`.

    Neighbouring calls of `read_only` tools run side by side.
    """

    name: str
    kind: ToolKind
    description: str
    schema: dict[str, Any]
    read_only: bool


class ToolsListResult(Struct, frozen=True, kw_only=True):
    """In the order in which the model is told of them."""

    tools: tuple[ToolView, ...]
