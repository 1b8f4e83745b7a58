"""One row of the table of methods."""

from dataclasses import dataclass
from typing import Any, Literal

Direction = Literal["client_to_server", "server_to_client"]
Kind = Literal["request", "notification"]
Stability = Literal["stable", "experimental"]

STABLE = frozenset(
    f"kode/{name}"
    for name in (
        *("session/new", "session/list", "session/attach", "session/detach"),
        *("turn/start", "turn/cancel", "turn/steer", "changeSet/decide", "changeSet/undo"),
        *("event", "delta", "permission/request"),
    )
)
"""The core that every client of this major version can rely on; the rest may change in a minor one.
"""


@dataclass(frozen=True)
class Method:
    """One method. `errors` are codes of `errors.ERRORS` besides InvalidParams and InternalError."""

    name: str
    summary: str
    params: type[Any]
    result: type[Any] | None = None
    errors: tuple[str, ...] = ()
    direction: Direction = "client_to_server"
    since: str = "0.9"

    @property
    def kind(self) -> Kind:
        return "notification" if self.result is None else "request"

    @property
    def stability(self) -> Stability:
        return "stable" if self.name in STABLE else "experimental"
