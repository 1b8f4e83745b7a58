"""Turns, and what the model is asked with: `kode/turn/*` and `kode/context/*`."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.core.domain.budget import Budget
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import PromptBlock, ToolKind
from kode_sidecar.core.protocol.session import Mode


class TurnOptions(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Options of one prompt; saved with it and sent to the model.

    `koding`: the model proposes its answer as an edit of the project's notes (AGENTS.md).
    `koding_context` is text that the editor adds to the prompt.
    """

    koding: bool = False
    koding_context: str | None = None


class Goal(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a turn goes on for, until it is so; it ends after so many `rounds` or `seconds`.

    `command`, words without a shell, has exited with 0 in `folder` after the last edit; the file
    `deliverable` is there and not empty.
    """

    command: tuple[str, ...] = ()
    folder: str = "."
    deliverable: str = ""
    rounds: int = 6
    seconds: int | None = None


class TurnStartParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Start a turn. `parent_id` absent = below the head; `null` = a new root.

    `replaces` is the earlier prompt that this one edits: the turn starts at its parent and gets the
    next version. It needs no `parent_id`; one that differs is refused.

    A first text that begins with `/name` of `kode/verbs/list` calls that verb: the model gets its
    text before the prompt. All other prompts are text, also those that begin with a slash.

    An empty `input` continues after `max_tool_rounds`. The same `client_turn_key` returns the same
    turn, with `deduplicated: true`. `mode`, `model`, `effort` and `budget` hold for this turn; of
    `budget` and the user's own budget the stricter limit applies. `effort` is how hard the model
    thinks: `kode/models/list` lists what a model supports, and the nearest one is requested. `meta`
    and `options` are saved in the prompt's `meta`. With a `goal` the turn goes on until it is
    reached, or ends with the error `GoalNotReached`; an empty `input` goes on with it.
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
    goal: Goal | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


class TurnStartResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer once the turn is accepted and the prompt saved. `message_id` is the prompt's."""

    turn_id: str
    message_id: str
    deduplicated: bool = False


class TurnCancelParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Cancel the running turn; with `turn_id` only if it is that one."""

    session_id: str
    turn_id: str | None = None


class TurnCancelResult(Struct, frozen=True):
    """`cancelled` is false if no turn was running."""

    cancelled: bool


class TurnSteerParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Add input to the running turn; the model gets it before its next step."""

    session_id: str
    turn_id: str
    input: tuple[PromptBlock, ...]


SegmentOrigin = Literal[
    "system", "tools", "summary", "prompt", "answer", "result", "reminder", "steer", "note"
]


class ContextInspectParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Select the request to inspect: that of a turn with these params of `kode/turn/start`.

    While a turn runs they are ignored, and the request is that of its next step. `body` asks for
    the request body, too.
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
    """A part of a request. A `note` is text of the sidecar where the API demands a message.

    `message_id` is absent if the part is not (yet) a message of the session. `tokens` is its share
    of the request; `counted`: the model's host has counted it. `bytes` is the size of its text in
    UTF-8, `head` the beginning of that text. `pinned`: the user wants it to stay
    (`kode/context/edit`).
    """

    origin: SegmentOrigin
    tokens: int
    bytes: int
    head: str
    counted: bool = False
    message_id: str | None = None
    pinned: bool = False


class CachedPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the host probably still has cached of the next request, at least until that time."""

    tokens: int
    until: str


class PromptCost(Struct, frozen=True, kw_only=True, rename="camel"):
    """Estimated cost of reading the next request; the answer is not included.

    `uncached` is the cost if the host has nothing of it in its cache.
    """

    amount: float
    uncached: float
    currency: str


class ContextInspectResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The exact next request, in order.

    `model` is the requested id. `tokens` is the size, by the host's own count where `counted`;
    `safe_tokens` includes a safety margin; `window` is the most the model reads, absent if
    unknown. `compaction_due`: the conversation is summed up before this request is sent.
    `trimmed`: messages are left out or cut because they do not fit. `body` is the HTTP body,
    `sha256` and `bytes` are its hash and size. `left_out` is what the user left out of this branch,
    with estimated tokens; undone compactions are included. `cached` is absent if nothing is known
    to be cached, `cost` if the price is unknown.
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
    cached: CachedPart | None = None
    cost: PromptCost | None = None


class ContextEditParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Ids of messages, as in the segments of `kode/context/inspect`.

    `leave_out`: the model does not see the message; a sentence replaces a result left out alone,
    and an answer takes the results of its calls with it. `pin`: no summary replaces it, and it is
    never dropped for lack of space. `restore` cancels both. Without ids the answer says what is in
    force. Leaving out a summary undoes its compaction, and restoring the summary redoes it.
    """

    session_id: str
    leave_out: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()


class ContextUndoCompactionParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """`summary_message_id` defaults to the newest summary of this branch that is in force."""

    session_id: str
    summary_message_id: str | None = None


class ContextEditResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is in force now, and the next request before and after.

    `reread_tokens` come after the first change: the model's host caches by prefix and bills them
    as fresh input. 0 if the request is the same.
    """

    edits: ContextEdits
    tokens_before: int
    tokens_after: int
    reread_tokens: int


class ContextCompactResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The same values as in the event `context.compacted`."""

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

    Adjacent calls of `read_only` tools run in parallel.
    """

    name: str
    kind: ToolKind
    description: str
    schema: dict[str, Any]
    read_only: bool


class ToolsListResult(Struct, frozen=True, kw_only=True):
    """The tools in the order in which the model sees them."""

    tools: tuple[ToolView, ...]
