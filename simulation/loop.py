"""The event loop of a simulated world: one step when nothing is left to do, then the next one.

Time stands until a step lets it pass. Nothing waits for the real clock, for a thread or a socket.
"""

import asyncio
import selectors
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from kode_sidecar.devtools.recording.virtual_time import VirtualTimeLoop, ready_callbacks

MOST_ROUNDS = 20_000
"""A step after which the loop still has not come to rest never will."""


class NeverRests(RuntimeError):
    """A step set off something that goes on for ever without waiting for anything."""


class _NothingToRead(selectors.SelectSelector):
    """No socket is part of a simulated world: asking for one would cost a system call."""

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return nothing, at once."""
        return []


class SimulatedLoop(VirtualTimeLoop):
    """Calls `on_idle` whenever it has nothing left to do; False ends the run.

    Calls for a thread are done at once unless `holds_threads` is set: then `answer_thread` does the
    oldest.
    """

    def __init__(self) -> None:
        super().__init__(_NothingToRead() if sys.platform != "win32" else None)
        self._on_idle: Callable[[], bool] = bool
        self.holds_threads = False
        self._answers: deque[Callable[[], None]] = deque()
        self._rounds = 0

    def play(self, on_idle: Callable[[], bool]) -> None:
        """Run until `on_idle` says that all is over, then end what is left."""
        self._on_idle = on_idle
        try:
            self.run_forever()
        finally:
            self._on_idle = self._nothing_left
            self.holds_threads = False
            self._answers.clear()
            for timer in self.timers():
                timer.handle.cancel()
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.run_forever()

    def _nothing_left(self) -> bool:
        return self.answer_thread()

    def before_round(self, *, idle: bool) -> bool:
        """Let the world take its next step when nothing else is left to do."""
        self._rounds += 1
        if not idle:
            if self._rounds > MOST_ROUNDS:
                self.stop()
                raise NeverRests(f"{MOST_ROUNDS} rounds, and it is still busy")
            return False
        self._rounds = 0
        if self._on_idle():
            return True
        self.stop()
        return False

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Call `func` at once, or when the story lets a thread go on."""
        if not self.holds_threads:
            return super().run_in_executor(executor, func, *args)
        future = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self._answers.append(run)
        return future

    def answer_thread(self) -> bool:
        """Let the oldest call for a thread be done; False when there is none."""
        if not self._answers:
            return False
        self._answers.popleft()()
        return True

    def pass_time(self, until: float) -> bool:
        """Let the first timer ring that is due by then; False, and the time is `until`, if none."""
        due = [timer for timer in self.timers() if timer.when <= until]
        if not due:
            self.advance(until)
            return False
        self.ring(min(due, key=lambda timer: timer.when))
        return True

    @property
    def next_timer(self) -> float | None:
        """When the next timer rings."""
        return min((timer.when for timer in self.timers()), default=None)

    @property
    def is_busy(self) -> bool:
        """Whether something is left to do without any time passing."""
        return bool(ready_callbacks(self))

    def run_whole(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run one coroutine to its end, ringing timers as they come; for what precedes a story."""
        task = self.create_task(work)

        def on_idle() -> bool:
            if task.done():
                return False
            when = self.next_timer
            return self.answer_thread() or (when is not None and self.pass_time(when))

        self._on_idle = on_idle
        self.run_forever()
        return task.result()
