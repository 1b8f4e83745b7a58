"""Params and results that create, list, read, change, attach and fork sessions; message trees."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.core.domain.agent_event import (
    AskRequested,
    DecisionRequested,
    Event,
    PermissionRequested,
    PlanItem,
    TurnCompleted,
)
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.event_parts import Effort, Mode
from kode_sidecar.core.domain.finding import FindingView
from kode_sidecar.core.domain.message import Cost, Message, Role, Usage
from kode_sidecar.core.protocol.change_set import ChangeSetView
from kode_sidecar.errors import KodeError

SessionKind = Literal["job"]


class SessionNewParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`agent` names an agent (`ide-helper`, `coder`), `model` a logical model or provider id.

    `effort` is how hard the model thinks; by default the model decides.
    """

    title: str | None = None
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


def page_limit(limit: int, most: int) -> int:
    """Return the size of a page, at most `most`. Raises KodeError `InvalidParams` below 1."""
    if limit < 1:
        text = f"Expected a number from 1 to {most} at `$.limit`"
        raise KodeError("InvalidParams", text, details={"path": "$.limit"})
    return min(limit, most)


class SessionView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A session without its messages. `meta` holds its `roots`; `active_turn_id` is present while
    a turn runs, `draft` is an unsent prompt. `effort` is absent if the model decides,
    `context_edits` if nothing is left out of the context or pinned to it.

    `mode` and `model` are those of its next turn, `updated_at` is when it was last written to.
    `kind` is absent for a conversation with a user; `job` is the session of a run and read-only.
    """

    session_id: str
    title: str
    agent: str
    mode: Mode
    model: str
    created_at: str
    updated_at: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    draft: str = field(default_factory=str)
    effort: Effort | None = None
    context_edits: ContextEdits | None = None
    active_turn_id: str | None = None
    kind: SessionKind | None = None


class SessionNewResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """`seq` is the number of the last event so far; the next has `seq` + 1.

    `session` has its mode, model and agent, whether the client chose them or the settings.
    """

    session_id: str
    seq: int
    session: SessionView


class SessionListParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """List the sessions whose `meta.roots` name one of the folders that are open now.

    `all` includes those of other folders; `query` is searched for in titles, prompts and answers,
    ignoring case.
    `limit` is at most 500; `cursor` is the `next_cursor` of the page before.
    """

    cursor: str | None = None
    limit: int = 50
    query: str | None = None
    all: bool = False


class SessionListResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The most recently written first. No `next_cursor`: this is the last page."""

    sessions: tuple[SessionView, ...]
    next_cursor: str | None = None


class SessionRef(Struct, frozen=True, kw_only=True, rename="camel"):
    """Names a session; the id comes from `kode/session/new` or `kode/session/list`."""

    session_id: str


CommandState = Literal["running", "exited", "stopped", "timed_out", "too_much_output", "failed"]


class CommandView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A command that the model runs in the background. `exit_code` is there once it has one."""

    command_id: str
    title: str
    state: CommandState
    started_at: str
    exit_code: int | None = None


class SessionGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`head_id` is the message the next turn starts below, `heads` the last of each branch.

    Totals are over all branches; `cost` is absent when amounts have different currencies.
    `commands` run in the background, or did; they end with the session's process.
    """

    session: SessionView
    heads: tuple[str, ...]
    messages: int
    head_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Cost | None = None
    cost_usd: float | None = None
    commands: tuple[CommandView, ...] = ()


class SessionUpdateParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Absent means unchanged. `null` clears: no title, the settings' mode or model, no `meta`.

    `meta` is replaced as a whole, but the session's `roots` and `projectRoot` stay unless it names
    them. A running turn keeps its mode, model and effort. `draft` is a prompt not sent yet.
    """

    session_id: str
    title: str | UnsetType | None = UNSET
    mode: Mode | UnsetType | None = UNSET
    model: str | UnsetType | None = UNSET
    effort: Effort | UnsetType | None = UNSET
    meta: dict[str, Any] | UnsetType | None = UNSET
    draft: str | UnsetType | None = UNSET


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
    """Oldest first. No `next_cursor`: this is the last page."""

    messages: tuple[Message, ...]
    next_cursor: str | None = None


Access = Literal["write", "read"]
ExportFormat = Literal["md", "jsonl", "tape"]


class SessionAttachParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`after_seq` is the last event you have folded: you get those after it, else a snapshot.

    With `write` the session is yours, as after `kode/session/new`. With `read` you follow what
    another process does in it, and requests that would change it are refused. Events stream either
    way; a reader gets no deltas, each text arrives whole with its block.
    """

    session_id: str
    after_seq: int | None = None
    access: Access = "write"


class OpenBlock(Struct, frozen=True, kw_only=True, rename="camel"):
    """A block that is still growing: `text` is the sum of its deltas so far."""

    block_id: str
    text: str


class SessionAttachResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A replay (`events`) or a snapshot (the rest); the next event has `seq` + 1.

    In a snapshot `messages` are those of all branches, oldest first; `cursor` means there are more:
    continue with `kode/message/list` and `all`. `open_messages` are not complete yet and have their
    blocks so far. `pending` and `asks` wait for the user, `last_turn` is the end of the newest
    finished turn, `plan` the model's newest list of steps,
    `findings` those of code reviews as `review.updated` last reported them.
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
    last_turn: TurnCompleted | None = None
    pending: tuple[PermissionRequested | DecisionRequested, ...] = field(
        default_factory=tuple[PermissionRequested | DecisionRequested, ...]
    )
    asks: tuple[AskRequested, ...] = field(default_factory=tuple[AskRequested, ...])
    plan: tuple[PlanItem, ...] = ()
    findings: tuple[FindingView, ...] = ()
    open_blocks: tuple[OpenBlock, ...] = ()


class SessionForkParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Copy the path to `message_id` (default: the head) into a new session."""

    session_id: str
    message_id: str | None = None


class SessionForkResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The new session; it is saved but not open: attach to it.

    Its title is that of the original with a number, `Tea (2)`; `forkedFrom` in its `meta` names
    the `sessionId` and the `messageId` of its origin.
    """

    session_id: str


class SessionExportParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`md` is the current branch for readers, `jsonl` all messages as saved.

    A `tape` exists only if the process was started to record.
    """

    session_id: str
    format: ExportFormat


class SessionExportResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole text, and a suggested file name."""

    file_name: str
    text: str


class TreeNode(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A message without its blocks. `parent_id` is absent at a root.

    `origin` marks `user` messages that are no prompts: `reminder`, `steer`, `compaction`. `text` is
    the first line of its text, cut; `tools` are the tools it calls.
    """

    message_id: str
    role: Role
    parent_id: str | None = None
    depth: int = 0
    version: int = 1
    created_at: str = ""
    turn_id: str = ""
    origin: str = ""
    text: str = ""
    tools: tuple[str, ...] = ()
    is_api_error_message: bool = False


class TreeGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`limit` is at most 5000; `cursor` is the `next_cursor` of the page before."""

    session_id: str
    cursor: str | None = None
    limit: int = 1_000


class TreeGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All messages in the order written, so parents come first.

    `head_id` is the message the next turn starts below; absent before the first one. No
    `next_cursor`: this is the last page.
    """

    nodes: tuple[TreeNode, ...]
    head_id: str | None = None
    next_cursor: str | None = None


class TreeSetHeadParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Set the head to `message_id`; `null` is before the first message."""

    session_id: str
    message_id: str | None
