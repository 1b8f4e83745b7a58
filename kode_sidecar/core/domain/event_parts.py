"""Values that events and settings share, separate from the union of all events."""

from typing import Literal, cast, get_args

from msgspec import Struct

from kode_sidecar.core.domain.budget import BudgetScope

Mode = Literal["review", "ask", "auto", "keep", "plan"]
"""How proposed edits are handled."""
APPLYING_MODES: frozenset[Mode] = frozenset({"auto", "keep"})
"""The modes that apply edits without a question."""
Locale = Literal["zh", "en"]
"""The languages of prompts and of texts for users."""
Effort = Literal["off", "low", "medium", "high", "max"]
"""How hard a model thinks before it answers."""
EFFORTS: tuple[Effort, ...] = cast(tuple[Effort, ...], get_args(Effort))


Attention = Literal["done", "blocked", "failed"]
"""Why the user is wanted: a turn is done, waits for an answer, or has failed."""


class ContextUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `tokens` of the model's `window` that the next request starts with.

    `window` is absent if unknown.
    """

    tokens: int
    window: int | None = None


class PermissionOption(Struct, frozen=True, kw_only=True, rename="camel"):
    """One answer the user can give.

    `allow_always` is written to the user's own settings, and holds for every session to come.
    """

    option_id: str
    kind: Literal["allow_once", "allow_session", "allow_always", "reject"]
    name: str


class ChangedFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that changed since the model saw it. `path` is for display."""

    uri: str
    path: str
    change: Literal["changed", "deleted", "unreadable"]


class BudgetUse(Struct, frozen=True, kw_only=True):
    """One limit of a budget, and the amount spent."""

    scope: BudgetScope
    limit: float
    spent: float


class EventBase(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"
):
    """The fields of all events, absent where they do not apply.

    An event that is not stored has neither `seq` nor `ts`. Each event redeclares the ids that it
    always has. With `attention` the user is wanted: notify them if they look elsewhere, but not for
    what a replay repeats.
    """

    seq: int = 0
    ts: str = ""
    turn_id: str = ""
    message_id: str = ""
    block_id: str = ""
    attention: Attention | None = None
