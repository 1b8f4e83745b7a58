"""The events about what waits for the user: permissions, choices, and decisions on hunks."""

from typing import Literal

from msgspec import field

from kode_sidecar.core.domain.event_parts import EventBase, PermissionOption

ResolvedBy = Literal["user", "policy", "cancel", "timeout"]


class PermissionRequested(EventBase, frozen=True, kw_only=True, tag="permission.requested"):
    """The user is asked; the tool call waits. Resolved exactly once. `reason` says why."""

    turn_id: str = field(default_factory=str)
    request_id: str
    tool_use_id: str
    title: str
    subject: str
    options: tuple[PermissionOption, ...]
    reason: str = ""


class PermissionResolved(EventBase, frozen=True, kw_only=True, tag="permission.resolved"):
    """The question has its answer; `option_id` is absent when nobody chose."""

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
    option_id: str | None = None


class AskRequested(EventBase, frozen=True, kw_only=True, tag="ask.requested"):
    """The model puts a choice to the user by `kode/ask`; the call `block_id` waits for it."""

    turn_id: str = field(default_factory=str)
    request_id: str
    question: str
    choices: tuple[str, ...]
    multi: bool = field(default_factory=bool)


class AskResolved(EventBase, frozen=True, kw_only=True, tag="ask.resolved"):
    """A choice has its answer, or is taken back; `chosen` is absent when nobody answered."""

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
    chosen: tuple[str, ...] | None = None


class DecisionRequested(EventBase, frozen=True, kw_only=True, tag="decision.requested"):
    """In the mode `ask` the call `block_id` waits until these hunks are decided.

    Nothing is asked beside it: `kode/changeSet/decide` answers. Resolved exactly once.
    """

    turn_id: str = field(default_factory=str)
    block_id: str = field(default_factory=str)
    request_id: str
    change_set_id: str
    hunk_ids: tuple[str, ...]


class DecisionResolved(EventBase, frozen=True, kw_only=True, tag="decision.resolved"):
    """The call goes on; after a `timeout` what was not decided waits on, as in `review`."""

    turn_id: str = field(default_factory=str)
    request_id: str
    by: ResolvedBy
