"""What is asked of a host, and how long that may take. Light to import, and without HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0, le=86_400)]

REFUSED_ADDRESS = "refused"
"""The `reason` in the details of an error by which nothing was sent to an address."""
STALLED = "silentSeconds"
"""The error detail with the seconds of silence, if a failure was mere silence."""

AT_HOME = 600.0
"""Seconds that a host at home may be silent: it loads a model, reads slowly, and queues."""


class TimeLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Time limits in seconds for a host or a model; None: the default."""

    first_byte: Seconds | None = None
    idle: Seconds | None = None
    pinged: Seconds | None = None

    def over(self, other: "TimeLimits") -> "TimeLimits":
        """Return these limits, with those of `other` for missing ones."""
        return TimeLimits(
            self.first_byte or other.first_byte,
            self.idle or other.idle,
            self.pinged or other.pinged,
        )


@dataclass(frozen=True)
class HttpTimeouts:
    """Timeouts in seconds (W9). There is no total limit.

    `first_byte` runs from the request to the head of the response, including the connection; `idle`
    from the request, then from one read to the next; `pinged` from one piece of content to the
    next, while the host sends only keep-alives.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 120.0
    write: float = 30.0
    pinged: float = 300.0

    def whole(self) -> "HttpTimeouts":
        """Return the timeouts for an answer that is sent only when it is complete."""
        return replace(self, first_byte=self.silence)

    def of(self, limits: TimeLimits) -> "HttpTimeouts":
        """Return the timeouts with the limits of one host or model."""
        return replace(
            self,
            first_byte=limits.first_byte or self.first_byte,
            idle=limits.idle or self.idle,
            pinged=limits.pinged or max(self.pinged, limits.idle or 0.0),
        )

    @property
    def silence(self) -> float:
        """How long the host may say nothing."""
        return max(self.first_byte, self.idle)

    def at_most(self, seconds: float | None) -> "HttpTimeouts":
        """Return the timeouts for a host that may be silent for at most `seconds`."""
        if seconds is None:
            return self
        return replace(
            self,
            first_byte=min(self.first_byte, seconds),
            idle=min(self.idle, seconds),
            pinged=min(self.pinged, seconds),
        )


class HttpRequest(NamedTuple):
    """A request to a host. `asker` names who asks, for recordings; `timeouts` None: the host's."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    asker: str = ""
    timeouts: HttpTimeouts | None = None
