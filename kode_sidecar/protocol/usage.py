"""Params and result of `kode/usage/get`: what was used, over all sessions that are kept."""

from typing import Literal

from msgspec import Struct

from kode_sidecar.domain.message import Cost, Usage

UsageKey = Literal["message", "turn", "session", "day", "model"]


class UsageGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What to count: all sessions or one, from the day `since` to the day `until`, both included.

    Days are written `2026-01-31`; one begins at midnight in a zone so many minutes (at most 840)
    ahead of UTC. `by` says what gets a row of its own; several names make a row for each
    combination.
    """

    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    by: tuple[UsageKey, ...] = ("day", "model")
    utc_offset_minutes: int = 0


class UsageSum(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a number of answers used. `costs` is one amount for each currency.

    `cost_usd` is absent where no answer told it.
    """

    answers: int
    usage: Usage
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None


class UsageRow(UsageSum, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The same, of those with this day, model, session, turn and message, as `by` asked."""

    day: str | None = None
    model: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    message_id: str | None = None


class UsageGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Rows in the order of their keys. Sessions that were deleted are not counted."""

    rows: tuple[UsageRow, ...]
    total: UsageSum
    unreadable_sessions: int = 0
