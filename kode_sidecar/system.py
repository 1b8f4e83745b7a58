"""Time and ids from the operating system; a replay brings its own."""

import os
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the kernel is loaded after the process answers
    from kode_sidecar.kernel.contracts import IdKind

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX_LENGTH = 6


class SystemClock:
    """`kernel.contracts.Clock` on the system's clocks."""

    def timestamp(self) -> str:
        """Now, RFC 3339 in UTC with milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()


class RandomIds:
    """`kernel.contracts.NewId`: UUIDs for sessions and messages, short ids for the many.

    A short id is a letter of its kind, a random prefix of this process and a counter: unique over
    all sessions and restarts, and cheap in every delta.
    """

    def __init__(self) -> None:
        number = int.from_bytes(os.urandom(5), "big")
        self._prefix = _base36(number)[-_PREFIX_LENGTH:].rjust(_PREFIX_LENGTH, "0")
        self._count = 0

    def __call__(self, kind: "IdKind") -> str:
        """A new id, `[a-z0-9-]{1,64}`."""
        if kind in ("session", "message"):
            return str(uuid.uuid4())
        self._count += 1
        return f"{kind[0]}{self._prefix}{_base36(self._count)}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
