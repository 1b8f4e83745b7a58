"""Passes on what a server notes about the progress of a call, as often as a person can read it.

It stands alone because a server may send a note with every byte, and each one becomes an event.
"""

from collections.abc import Callable

from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.core.timer_context import TimerContext

EVERY_SECONDS = 0.1
_NOTE_CHARS = 200
_MOST_STEPS = 2**53


class NewestProgress(TimerContext):
    """Reports a note at once if none was reported lately; else the newest one a moment later.

    Leaving the `with` block drops what was not reported: the result says more.
    """

    def __init__(self, report: Callable[[str, int | None, int | None], None]) -> None:
        self._report = report
        self._newest: tuple[str, float | None, float | None] | None = None

    def __call__(self, message: str, done: float | None, total: float | None) -> None:
        """Take a note."""
        self._newest = message, done, total
        if self._timer is None:
            self._report_newest()

    def _report_newest(self) -> None:
        self._timer = None
        if self._newest is None:
            return
        (message, done, total), self._newest = self._newest, None
        self._call_later(EVERY_SECONDS, self._report_newest)
        text = cut_line(one_line(without_controls(message)), _NOTE_CHARS)
        if done is None or total is None or not (0 <= done <= _MOST_STEPS >= total > 0):
            self._report(text, None, None)
        else:
            self._report(text, int(done), int(total))
