"""Params and results of `kode/review/*`."""

from typing import Literal

from msgspec import Struct

from kode_sidecar.core.domain.event_parts import Effort, Mode
from kode_sidecar.core.domain.finding import FindingView

UserState = Literal["dismissed", "resolved", "open"]


class ReviewListParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The findings of one session."""

    session_id: str


class ReviewListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """All findings at their present places; `not_reviewed` is what the latest review left out."""

    findings: tuple[FindingView, ...]
    summary: str
    not_reviewed: tuple[str, ...]


class ReviewDecideParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The user's word on a finding; the model reads the `reason`.

    `dismissed`: on purpose or wrong; `resolved`: done; `open`: look at it again.
    """

    session_id: str
    finding_id: str
    state: UserState
    reason: str = ""


class ReviewAskParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`prompt` is what the user says about the findings, such as "Fix this"; their data go along.

    The other members are as in `kode/turn/start`.
    """

    session_id: str
    finding_ids: tuple[str, ...]
    prompt: str
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None
    client_turn_key: str | None = None
