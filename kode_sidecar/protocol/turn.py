"""Params and results of `kode/turn/*`, and the question the server asks the editor."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.domain.agent_event import PermissionOption
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


class PermissionRequestParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Ask the user. No answer in time counts as reject.

    `reason` says why the user is asked, `diff` what exactly a yes is for (unified, may be cut): if
    the call would do anything else by then, it is refused.
    """

    request_id: str
    session_id: str
    turn_id: str
    tool_use_id: str
    title: str
    subject: str
    options: tuple[PermissionOption, ...]
    reason: str = ""
    diff: str = ""


class PermissionRequestResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The chosen option."""

    option_id: str
