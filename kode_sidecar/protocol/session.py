"""Params and results of `kode/session/*`, and the small questions to the process."""

from typing import Any, Literal

from msgspec import Struct, field

from kode_sidecar.domain.error_info import ErrorInfo

Mode = Literal["review", "ask", "auto", "plan"]


class Empty(Struct, frozen=True):
    """No params, or no result."""


class SessionNewParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`agent` names an agent (`ide-helper`, `coder`), `model` a logical model or provider id."""

    title: str | None = None
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


class SessionNewResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """`seq` is the number of the last event so far; the next has `seq` + 1."""

    session_id: str
    seq: int


class PingParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`echo` comes back unchanged."""

    echo: Any = None


class PingResult(Struct, frozen=True, kw_only=True):
    """The `echo` of the question."""

    echo: Any = None


class SettingView(Struct, frozen=True, kw_only=True):
    """One setting, where it came from; secrets masked."""

    name: str
    value: Any
    source: str


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of the doctor. `hint` says how to mend it."""

    name: str
    ok: bool
    message: str
    hint: str | None = None


class DoctorResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a bug report needs; never a key."""

    version: str
    protocol_version: str
    python: str
    platform: str
    position_encoding: str
    roots: tuple[str, ...]
    settings: tuple[SettingView, ...]
    checks: tuple[Check, ...]
    last_errors: tuple[ErrorInfo, ...] = ()
