"""Everything that happens in a session, as a closed union of small values.

They are both journal records and wire events. The session sets `seq` (1, 2, 3 … per session, no
gaps) and `ts` (RFC 3339, UTC) when it stores an event; an event that is not stored has neither.
`BlockDelta` is no event: it is never stored and has no number.
"""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, field

from kode_sidecar.core.domain.change_set import ChangeSetState, FileView, Range
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import BudgetUse, ChangedFile, ContextUse, EventBase
from kode_sidecar.core.domain.finding import FindingView
from kode_sidecar.core.domain.message import Block, Cost, LostUsage, Message, Role, Usage
from kode_sidecar.core.domain.question_event import (
    AskRequested,
    AskResolved,
    DecisionRequested,
    DecisionResolved,
    PermissionRequested,
    PermissionResolved,
)

StopReason = Literal[
    "end_turn",
    "cancelled",
    "max_tool_rounds",
    "max_tokens",
    "budget",
    "refusal",
    "error",
    "interrupted",
]
PlanState = Literal["pending", "in_progress", "done"]
NoticeLevel = Literal["info", "warning", "error"]
ScoutState = Literal["running", "reporting", "done", "failed", "timed_out", "cancelled"]


def _info() -> NoticeLevel:
    return "info"


class TurnStarted(EventBase, frozen=True, kw_only=True, tag="turn.started"):
    """First event of a turn; `message_id` is the user's prompt."""

    turn_id: str = field(default_factory=str)
    message_id: str = field(default_factory=str)
    agent: str = field(default_factory=str)
    mode: str = field(default_factory=str)


class TurnSteered(EventBase, frozen=True, kw_only=True, tag="turn.steered"):
    """The user added input to the running turn; the model gets it before its next step.

    It then enters the tree as a message with `meta.origin` = `steer`.
    """

    turn_id: str = field(default_factory=str)
    input: tuple[Block, ...]


class TurnCompleted(EventBase, frozen=True, kw_only=True, tag="turn.completed"):
    """Last event of a turn, exactly once. `duration_ms` is wall time.

    `context` says how full the model's window is; absent if no model was asked. `estimated`: of an
    answer that was cut off the host had not reported all that it charges for.
    """

    turn_id: str = field(default_factory=str)
    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)
    context: ContextUse | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    duration_ms: int = field(default_factory=int)
    error: ErrorInfo | None = None
    estimated: bool = False


class MessageAdded(EventBase, frozen=True, kw_only=True, tag="message.added"):
    """A message takes its place in the tree. Its blocks follow, then `message.completed`.

    `parent_id` is absent at a root. `version` counts the prompts that replace each other: an
    edited one is version 2, and `replaces` is the one it was made from.
    """

    message_id: str = field(default_factory=str)
    role: Role
    parent_id: str | None = None
    depth: int = field(default_factory=int)
    version: int = field(default_factory=lambda: 1)
    replaces: str | None = None
    created_at: str = field(default_factory=str)
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    def message(self, session_id: str, content: Iterable[Block]) -> Message:
        """Return the message with the blocks that followed the event."""
        return Message(
            id=self.message_id,
            session_id=session_id,
            role=self.role,
            content=tuple(content),
            parent_id=self.parent_id,
            depth=self.depth,
            version=self.version,
            replaces=self.replaces,
            created_at=self.created_at,
            meta=self.meta,
        )


class MessageCompleted(EventBase, frozen=True, kw_only=True, tag="message.completed"):
    """The message is on disk; the fields are known only at its end.

    With `is_api_error_message` its last block is the text of the error that ends the turn. `lost`
    is what failed attempts used; totals include it, `usage` and `cost` do not.
    """

    message_id: str = field(default_factory=str)
    usage: Usage | None = None
    cost: Cost | None = None
    cost_usd: float | None = None
    lost: LostUsage | None = None
    duration_ms: int | None = None
    response_id: str | None = None
    provider: str | None = None
    model: str | None = None
    is_api_error_message: bool = False


class BlockStarted(EventBase, frozen=True, kw_only=True, tag="block.started"):
    """A block opens; `block` holds its type and what is known. Deltas may follow."""

    message_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    block: Block


class BlockCompleted(EventBase, frozen=True, kw_only=True, tag="block.completed"):
    """The whole block; authoritative over any deltas. Once per block."""

    message_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    block: Block


class BlockDropped(EventBase, frozen=True, kw_only=True, tag="block.dropped"):
    """The block belongs to a discarded attempt: remove it. Sent instead of `block.completed`."""

    message_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    reason: str = ""


class ToolProgress(EventBase, frozen=True, kw_only=True, tag="tool.progress"):
    """Not stored. The progress of a running tool; it never reaches the model."""

    turn_id: str = field(default_factory=str)
    message_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    tool_use_id: str
    sibling_tool_use_ids: tuple[str, ...] = ()
    message: str = ""
    completed: int | None = None
    total: int | None = None


class ModelWaiting(EventBase, frozen=True, kw_only=True, tag="model.waiting"):
    """Not stored. The turn waits for the model; any other event of the turn ends the wait.

    `silent`: nothing arrived for `silent_ms`, repeated while it lasts: models think for minutes.
    `retrying`: the host is asked again in `retry_in_ms`, for the `attempt`th time, after the error
    `code`. Nothing is sent yet while it is `limited` (the host's rate limit lets the request go in
    `retry_in_ms`) or `queued` (the host answers other requests of ours first); `sent` ends both.
    `compacting`: the conversation is summed up to make room.
    """

    state: Literal["silent", "retrying", "limited", "queued", "sent", "compacting"]
    message: str
    silent_ms: int | None = None
    retry_in_ms: int | None = None
    attempt: int | None = None
    code: str | None = None


class ScoutUpdated(EventBase, frozen=True, kw_only=True, tag="scout.updated"):
    """The progress of a scout of the `explore` call `block_id`; not stored while it is `running`.

    `reporting`: it may only report now, or is doing so. The other states are final. `tool_calls`
    counts its calls without the report.
    """

    turn_id: str = field(default_factory=str)
    scout_id: str
    tool_use_id: str
    title: str
    state: ScoutState
    tool_calls: int = field(default_factory=int)
    elapsed_ms: int = field(default_factory=int)


class ChangeSetUpdated(EventBase, frozen=True, kw_only=True, tag="changeSet.updated"):
    """Proposed edits changed. A hunk is sent whole once, afterwards as id and state."""

    turn_id: str = field(default_factory=str)
    change_set_id: str
    state: ChangeSetState
    files: tuple[FileView, ...] = field(default_factory=tuple[FileView, ...])


class FormingHunk(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one finished edit would change: whole lines, as in a proposed hunk."""

    range: Range
    old_text: str
    new_text: str


class ChangeSetForming(EventBase, frozen=True, kw_only=True, tag="changeSet.forming"):
    """Not stored. The changes so far of the call `block_id`, which is still being written.

    `hunks` are all its finished edits of one file, in the editor's text of `version`. Each file of
    a call has its own events; a new file has its lines so far. The hunks have no ids and cannot be
    decided: remove them at `block.completed` or `block.dropped`; `changeSet.updated` then has the
    result.
    """

    turn_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    uri: str
    path: str
    hunks: tuple[FormingHunk, ...]
    version: int | None = None


class PlanItem(Struct, frozen=True, kw_only=True):
    """A step of the model's plan, as one line."""

    text: str
    state: PlanState


class PlanUpdated(EventBase, frozen=True, kw_only=True, tag="plan.updated"):
    """The model's present list of steps; it replaces the one before and may be empty."""

    turn_id: str = field(default_factory=str)
    items: tuple[PlanItem, ...]


class ReviewUpdated(EventBase, frozen=True, kw_only=True, tag="review.updated"):
    """All findings of the session's code reviews; they replace those before.

    Not stored while a review is `running` and has found these so far: they cannot be decided yet.
    `tool_use_id` is the call that reviews; absent after a decision. `not_reviewed` counts the files
    that nobody looked at; `kode/review/list` names them.
    """

    tool_use_id: str = ""
    running: bool = False
    findings: tuple[FindingView, ...]
    summary: str = field(default_factory=str)
    not_reviewed: int = field(default_factory=int)


class FreshnessChanged(EventBase, frozen=True, kw_only=True, tag="freshness.changed"):
    """Others changed files that the model has read; the model is notified before its next step.

    Sent once per file until the model has been notified or has read it again.
    """

    files: tuple[ChangedFile, ...]


class ContextCompacted(EventBase, frozen=True, kw_only=True, tag="context.compacted"):
    """A summary replaces messages in what the model sees; the messages stay in the tree.

    `dropped_messages` is how many of them the model no longer sees, `tokens_before` and
    `tokens_after` are estimates of the next request. The summary is a message with `meta.origin` =
    `compaction`, sent before this event; `kode/context/undoCompaction` undoes it.
    """

    dropped_messages: int
    tokens_before: int
    tokens_after: int
    summary_message_id: str


class SessionUpdated(EventBase, frozen=True, kw_only=True, tag="session.updated"):
    """Fields of the session changed; absent means unchanged.

    An empty `title` means that it no longer has one; `mode` and `model` are those now in force.
    `head_id` is the message the next turn starts below; empty: before the first one.
    `effort` is empty if the model decides. `context_edits` is everything that is now left out of
    the context or pinned to it.
    """

    title: str | None = None
    head_id: str | None = None
    mode: str | None = None
    model: str | None = None
    meta: dict[str, Any] | None = None
    draft: str | None = None
    effort: str | None = None
    context_edits: ContextEdits | None = None


class UsageUpdated(EventBase, frozen=True, kw_only=True, tag="usage.updated"):
    """Running totals of the session.

    `context` says how full the model's window is; absent if no model was asked.
    """

    usage: Usage
    context: ContextUse | None = None
    cost: Cost | None = None
    cost_usd: float | None = None


class BudgetUpdated(EventBase, frozen=True, kw_only=True, tag="budget.updated"):
    """Sent before a request if a budget is set; stored when a limit is `near` or `reached`.

    `forecast` is the likely cost of the request. `reached`: it is not sent, and the turn ends.
    """

    turn_id: str = field(default_factory=str)
    currency: str
    state: Literal["within", "near", "reached"]
    uses: tuple[BudgetUse, ...]
    forecast: float


class Notice(EventBase, frozen=True, kw_only=True, tag="notice"):
    """Something the user should see once. `code` is stable, `message` is for people."""

    code: str
    message: str
    level: NoticeLevel = field(default_factory=_info)


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
    | ChangeSetForming
    | PermissionRequested
    | PermissionResolved
    | AskRequested
    | AskResolved
    | DecisionRequested
    | DecisionResolved
    | PlanUpdated
    | ReviewUpdated
    | FreshnessChanged
    | ContextCompacted
    | SessionUpdated
    | UsageUpdated
    | BudgetUpdated
    | Notice
)


def is_stored(event: Event) -> bool:
    """True if the event gets a number and is written to the journal."""
    if isinstance(event, ScoutUpdated):
        return event.state != "running"
    if isinstance(event, BudgetUpdated):
        return event.state != "within"
    if isinstance(event, ReviewUpdated):
        return not event.running
    return not isinstance(event, ChangeSetForming | ToolProgress | ModelWaiting)


class BlockDelta(Struct, frozen=True, gc=False, rename="camel"):
    """Growth of an open block: `add` starts at offset `at`, counted in Unicode code points."""

    block_id: str
    at: int
    add: str
