"""One row of the table of methods."""

from dataclasses import dataclass
from typing import Any, Literal

Direction = Literal["client_to_server", "server_to_client"]
Kind = Literal["request", "notification"]


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
    stability: Literal["stable", "experimental"] = "stable"

    @property
    def kind(self) -> Kind:
        return "notification" if self.result is None else "request"
