"""Everything that happens in a session, as a closed union of small values.

They are journal records and wire events at once. `seq` (1, 2, 3 … per session, no gaps) and
`ts` (RFC 3339, UTC) are stamped by the session when an event is stored; an event that is
not stored has neither. `BlockDelta` is no event: it is never stored and has no number.
"""

from typing import Any, Literal

from msgspec import Struct, field

from kode_sidecar.domain.change_set import ChangeSetState, FileView
from kode_sidecar.domain.error_info import ErrorInfo
from kode_sidecar.domain.message import Block, Cost, Role, Usage

StopReason = Literal[
    "end_turn",
    "cancelled",
    "max_tool_rounds",
    "max_tokens",
    "refusal",
    "error",
    "interrupted",
]
ResolvedBy = Literal["user", "policy", "cancel", "timeout"]
NoticeLevel = Literal["info", "warning", "error"]
ScoutState = Literal["running", "reporting", "done", "failed", "timed_out", "cancelled"]


class EventBase(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"
):
    """Common to all events, absent where they do not apply.

    What is not stored has neither `seq` nor `ts`.
    """

    seq: int = 0
    ts: str = ""
    turn_id: str = ""
    message_id: str = ""
    block_id: str = ""


class TurnStarted(EventBase, frozen=True, kw_only=True, tag="turn.started"):
    """First event of a turn; `message_id` is the user's prompt."""

    agent: str = ""
    mode: str = ""


class TurnSteered(EventBase, frozen=True, kw_only=True, tag="turn.steered"):
    """The user said something while the turn runs; the model gets it before its next step.

    It then enters the tree as a message with `meta.origin` = `steer`.
    """

    input: tuple[Block, ...]


class TurnCompleted(EventBase, frozen=True, kw_only=True, tag="turn.completed"):
    """Last event of a turn, exactly once. `duration_ms` is wall time."""

    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)
    cost: Cost | None = None
    cost_usd: float | None = None
    duration_ms: int = 0
    error: ErrorInfo | None = None


class MessageAdded(EventBase, frozen=True, kw_only=True, tag="message.added"):
    """A message takes its place in the tree. Its blocks follow, then `message.completed`.

    `parent_id` is absent at a root. `version` counts the siblings that replace each other: an
    edited prompt is version 2.
    """

    role: Role
    parent_id: str | None = None
    depth: int = 0
    version: int = 1
    created_at: str = ""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


class MessageCompleted(EventBase, frozen=True, kw_only=True, tag="message.completed"):
    """The message is on disk; with what is known only at its end.

    With `is_api_error_message` its last block is the text of the error that ends the turn.
    """

    usage: Usage | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    duration_ms: int | None = None
    response_id: str | None = None
    provider: str | None = None
    model: str | None = None
    is_api_error_message: bool = False


class BlockStarted(EventBase, frozen=True, kw_only=True, tag="block.started"):
    """A block opens; `block` holds its type and what is known. Deltas may follow."""

    block: Block


class BlockCompleted(EventBase, frozen=True, kw_only=True, tag="block.completed"):
    """The whole block; authoritative over any deltas. Once per block."""

    block: Block


class BlockDropped(EventBase, frozen=True, kw_only=True, tag="block.dropped"):
    """The block belongs to a discarded attempt: remove what was shown. Instead of completed."""

    reason: str = ""


class ToolProgress(EventBase, frozen=True, kw_only=True, tag="tool.progress"):
    """Not stored. How far a running tool is; it never reaches the model."""

    tool_use_id: str
    sibling_tool_use_ids: tuple[str, ...] = ()
    message: str = ""
    completed: int | None = None
    total: int | None = None


class ModelWaiting(EventBase, frozen=True, kw_only=True, tag="model.waiting"):
    """Not stored. The turn waits for the model; whatever else comes of the turn ends it.

    `silent`: nothing came for `silent_ms`, said again while it lasts: models think for minutes.
    `retrying`: the host is asked again in `retry_in_ms`, for the `attempt`th time.
    """

    state: Literal["silent", "retrying"]
    message: str
    silent_ms: int | None = None
    retry_in_ms: int | None = None
    attempt: int | None = None


class ScoutUpdated(EventBase, frozen=True, kw_only=True, tag="scout.updated"):
    """How far a scout of the `explore` call `tool_use_id` is; not stored while it is `running`.

    `reporting`: a report is all that is left to it, or it is handing it in. The other states are
    its last. `tool_calls` are those it made besides.
    """

    scout_id: str
    tool_use_id: str
    title: str
    state: ScoutState
    tool_calls: int = 0
    elapsed_ms: int = 0


class ChangeSetUpdated(EventBase, frozen=True, kw_only=True, tag="changeSet.updated"):
    """Proposed edits changed. A hunk travels whole once, afterwards as id and state."""

    change_set_id: str
    state: ChangeSetState
    files: tuple[FileView, ...] = ()


class PermissionOption(Struct, frozen=True, kw_only=True, rename="camel"):
    """One answer the user can give."""

    option_id: str
    kind: Literal["allow_once", "allow_session", "reject"]
    name: str


class PermissionRequested(EventBase, frozen=True, kw_only=True, tag="permission.requested"):
    """The user is asked; the tool call waits. Resolved exactly once. `reason` says why."""

    request_id: str
    tool_use_id: str
    title: str
    subject: str
    options: tuple[PermissionOption, ...]
    reason: str = ""


class PermissionResolved(EventBase, frozen=True, kw_only=True, tag="permission.resolved"):
    """The question has its answer; `option_id` is absent when nobody chose."""

    request_id: str
    by: ResolvedBy
    option_id: str | None = None


class ChangedFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that is not as the model believes. `path` is as people read it."""

    uri: str
    path: str
    change: Literal["changed", "deleted", "unreadable"]


class FreshnessChanged(EventBase, frozen=True, kw_only=True, tag="freshness.changed"):
    """Others changed files that the model has read; it is told before its next step.

    Once per file until the model was told, or has read it again.
    """

    files: tuple[ChangedFile, ...]


class ContextCompacted(EventBase, frozen=True, kw_only=True, tag="context.compacted"):
    """A summary takes the place of messages in what the model sees; they stay where they are.

    `dropped_messages` is how many of them the model no longer sees, `tokens_before` and
    `tokens_after` are estimates of the next request. The summary is a message with `meta.origin` =
    `compaction`, told before this event; moving the head to its parent undoes it.
    """

    dropped_messages: int
    tokens_before: int
    tokens_after: int
    summary_message_id: str


class SessionUpdated(EventBase, frozen=True, kw_only=True, tag="session.updated"):
    """Something of the session changed; absent means unchanged.

    An empty `title` means that it has none any more; `mode` and `model` are what is in force now.
    `head_id` is the message the next turn starts below; empty: before the first one.
    """

    title: str | None = None
    head_id: str | None = None
    mode: str | None = None
    model: str | None = None
    meta: dict[str, Any] | None = None


class UsageUpdated(EventBase, frozen=True, kw_only=True, tag="usage.updated"):
    """Running totals of the session."""

    usage: Usage
    cost: Cost | None = None
    cost_usd: float | None = None


class Notice(EventBase, frozen=True, kw_only=True, tag="notice"):
    """Something a user should see once. `code` is stable, `message` is for reading."""

    code: str
    message: str
    level: NoticeLevel = "info"


Event = (
    TurnStarted
    | TurnSteered
    | TurnCompleted
    | MessageAdded
    | MessageCompleted
    | BlockStarted
    | BlockCompleted
    | BlockDropped
    | ToolProgress
    | ModelWaiting
    | ScoutUpdated
    | ChangeSetUpdated
    | PermissionRequested
    | PermissionResolved
    | FreshnessChanged
    | ContextCompacted
    | SessionUpdated
    | UsageUpdated
    | Notice
)


def is_stored(event: Event) -> bool:
    """Does it get a number and a place in the journal?"""
    if isinstance(event, ScoutUpdated):
        return event.state != "running"
    return not isinstance(event, ToolProgress | ModelWaiting)


class BlockDelta(Struct, frozen=True, gc=False, rename="camel"):
    """Growth of an open block: `add` goes at offset `at`, counted in Unicode code points."""

    block_id: str
    at: int
    add: str
