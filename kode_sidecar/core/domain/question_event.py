"""The events about questions to the user: permissions, choices, and decisions on hunks."""

from typing import Literal

from msgspec import field

from kode_sidecar.core.domain.event_parts import EventBase, PermissionOption

ResolvedBy = Literal["user", "policy", "cancel", "timeout"]


class PermissionRequested(EventBase, frozen=True, kw_only=True, tag="permission.requested"):
    """The user is asked, and the tool call waits. Resolved exactly once. `reason` says why."""

    turn_id: str = field(default_factory=str)
    request_id: str
    tool_use_id: str
    title: str
    subject: str
    options: tuple[PermissionOption, ...]
    reason: str = ""


class PermissionResolved(EventBase, frozen=True, kw_only=True, tag="permission.resolved"):
    """The question is answered or closed; `option_id` is absent if nobody chose.

    `comment` is what the user said with a rejection.
    """

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
    option_id: str | None = None
    comment: str = ""


class AskRequested(EventBase, frozen=True, kw_only=True, tag="ask.requested"):
    """The model asks the user to choose (`kode/ask`); the call `block_id` waits for the answer."""

    turn_id: str = field(default_factory=str)
    request_id: str
    question: str
    choices: tuple[str, ...]
    multi: bool = field(default_factory=bool)


class AskResolved(EventBase, frozen=True, kw_only=True, tag="ask.resolved"):
    """The choice is answered or cancelled; `chosen` is absent if nobody answered.

    `text` is an answer in the user's own words.
    """

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
    chosen: tuple[str, ...] | None = None
    text: str = ""


class DecisionRequested(EventBase, frozen=True, kw_only=True, tag="decision.requested"):
    """In the mode `ask` the call `block_id` waits until these hunks are decided.

    There is no other request: `kode/changeSet/decide` answers it. Resolved exactly once.
    """

    turn_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    request_id: str
    change_set_id: str
    hunk_ids: tuple[str, ...]


class DecisionResolved(EventBase, frozen=True, kw_only=True, tag="decision.resolved"):
    """The call continues; after a `timeout` undecided hunks stay pending, as in `review`."""

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
