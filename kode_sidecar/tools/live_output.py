"""What a program writes, told to the user while it runs: the newest lines, not too often."""

import asyncio
import re
from collections.abc import Callable
from types import TracebackType

from kode_sidecar.text.shown_text import without_controls

EVERY_SECONDS = 0.1
_KEPT_BYTES = 4_000
_LINES = 10
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def plain_lines(text: str) -> str:
    """Return a text without colours; of a line written over and over, the last state."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).rstrip("\n")


class LiveOutput:
    """Give it the output as it comes. Use with `with`: afterwards nothing more is told.

    `tell` is the progress of a call: each time all that is to be shown, so that one may be lost.
    """

    def __init__(self, tell: Callable[[str, int | None, int | None], None]) -> None:
        self._tell = tell
        self._newest = b""
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "LiveOutput":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __call__(self, output: bytes) -> None:
        """Take the next piece of it."""
        self._newest = (self._newest + output)[-_KEPT_BYTES:]
        if self._timer is None and output:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(EVERY_SECONDS, self._tell_newest)

    def _tell_newest(self) -> None:
        self._timer = None
        lines = plain_lines(self._newest.decode("utf-8", "replace")).split("\n")[-_LINES:]
        text = without_controls("\n".join(lines))
        if text.strip():
            self._tell(text, None, None)
