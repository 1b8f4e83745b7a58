"""Values that events and settings hold, apart from the union of all events."""

from typing import Literal, cast, get_args

from msgspec import Struct

from kode_sidecar.core.domain.budget import BudgetScope

Mode = Literal["review", "ask", "auto", "plan"]
"""What becomes of proposed edits."""
Locale = Literal["zh", "en"]
"""The languages of prompts and of what users read."""
Effort = Literal["off", "low", "medium", "high", "max"]
"""How hard a model thinks before it answers."""
EFFORTS: tuple[Effort, ...] = cast(tuple[Effort, ...], get_args(Effort))


class ContextUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`tokens` of the model's `window` that the next request begins with.

    `window` is absent where nobody knows it.
    """

    tokens: int
    window: int | None = None


class PermissionOption(Struct, frozen=True, kw_only=True, rename="camel"):
    """One answer the user can give."""

    option_id: str
    kind: Literal["allow_once", "allow_session", "reject"]
    name: str


class ChangedFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that is not as the model believes. `path` is as people read it."""

    uri: str
    path: str
    change: Literal["changed", "deleted", "unreadable"]


class BudgetUse(Struct, frozen=True, kw_only=True):
    """One limit of a budget, and what is spent of it."""

    scope: BudgetScope
    limit: float
    spent: float


class EventBase(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"
):
    """Common to all events, absent where they do not apply.

    What is not stored has neither `seq` nor `ts`. Each event says anew which of the ids it always
    has.
    """

    seq: int = 0
    ts: str = ""
    turn_id: str = ""
    message_id: str = ""
    block_id: str = ""
