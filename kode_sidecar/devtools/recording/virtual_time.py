"""An event loop with a virtual clock: time stands while anything is left to do, and then jumps.

Its order is the same in every run: callbacks run first come, first served, calls for a thread run
at once on the loop's own thread, and no timer waits for real time. Recordings are played on it, and
simulations can run on it.
"""

import asyncio
import os
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any

if sys.platform == "win32":
    PlatformLoop = asyncio.ProactorEventLoop
else:
    PlatformLoop = asyncio.SelectorEventLoop


class Deadlock(RuntimeError):
    """Every task waits and no timer is set; the text names each task and where it waits."""


@dataclass(frozen=True, eq=False)
class Timer:
    """A callback set for `seconds` ahead, when the clock shows `when`."""

    seconds: float
    when: float
    handle: asyncio.TimerHandle
    ring: Callable[[], None]


class VirtualTimeLoop(PlatformLoop):
    """An event loop without real time. Subclasses say in `before_round` what happens next.

    Programs that are started really run, and are waited for; there is no other input or output.
    """

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)
        self._now = 0.0
        self._ahead: float | None = None
        self._timers: list[Timer] = []
        self._programs = 0

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now if self._ahead is None else time.monotonic() + self._ahead

    def advance(self, now: float) -> None:
        """Set the clock; it never goes back. No timer rings by that alone."""
        self._now = max(self._now, now)

    def use_real_time(self) -> None:
        """Go by the system's clock from here on; timers that were set wait for it."""
        if self._ahead is None:
            self._ahead = self._now - time.monotonic()
            for timer in self.timers():
                super().call_at(timer.when, timer.ring)
            self._timers = []

    def timers(self) -> Sequence[Timer]:
        """Return the timers that may still ring, in the order in which they were set."""
        self._timers = [timer for timer in self._timers if not timer.handle.cancelled()]
        return self._timers

    def ring(self, timer: Timer) -> None:
        """Let a timer ring in the round that comes next; the clock shows its time then."""
        self.advance(timer.when)
        self._timers.remove(timer)
        timer.ring()

    def before_round(self, *, idle: bool) -> bool:
        """Let the next thing happen; `idle` says that nothing else is left to do.

        False when nothing does: then the loop waits for real input. Here the earliest timer rings
        when the loop is idle. Raises Deadlock when there is none.
        """
        if not idle or self._ahead is not None:
            return False
        timer = min(self.timers(), key=lambda timer: timer.when, default=None)
        if timer is None:
            raise Deadlock(_who_waits(self))
        self.ring(timer)
        return True

    def finished(self, name: str, deliver: Callable[[], None]) -> None:
        """Hand over the result of a call for a thread, or start a program, by `deliver()`.

        A subclass may do so later: the loop goes on without it.
        """
        del name
        deliver()

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer; see `asyncio.AbstractEventLoop.call_at`."""
        if self._ahead is not None:
            return super().call_at(when, callback, *args, context=context)
        handle = asyncio.TimerHandle(when, callback, args, self, context)

        def ring() -> None:
            if not handle.cancelled():
                callback(*args)

        def ring_soon() -> None:
            self.call_soon(ring, context=context)

        self._timers.append(Timer(when - self._now, when, handle, ring_soon))
        return handle

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call `func` at once, on this thread, whatever the executor would do."""
        del executor
        future = self.create_future()
        result: Any = None
        failure: Exception | None = None
        try:
            result = func(*args)
        except Exception as error:
            failure = error

        def deliver() -> None:
            if future.done():
                return
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

        self.finished(call_name(func), deliver)
        return future

    async def subprocess_exec(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], program: Any, *args: Any, **options: Any
    ) -> Any:
        """Start a program and count it until it has ended."""
        may_start = asyncio.Event()
        self.finished(program_name(program), may_start.set)
        await may_start.wait()
        self._programs += 1
        started = False

        def ended() -> None:
            self._programs -= 1

        try:
            factory = with_end(protocol_factory, ended)
            result = await super().subprocess_exec(factory, program, *args, **options)
            started = True
            return result
        finally:
            if not started:
                ended()

    def _run_once(self) -> None:
        ready = ready_callbacks(self)
        idle = not ready and not self._programs and not self._stopping  # type: ignore[attr-defined]
        while self.before_round(idle=idle) and idle and not ready:
            pass  # what happened was nobody's concern
        super()._run_once()  # type: ignore[misc]


def ready_callbacks(loop: Any) -> "deque[asyncio.Handle]":
    """Return what is left to do in the loop's next round; there is no public way to ask."""
    return loop._ready


def call_name(func: Callable[..., Any]) -> str:
    """Return the name of a function that is called in a thread, such as `load_skill`."""
    while isinstance(func, partial):
        runs_in_context = isinstance(getattr(func.func, "__self__", None), Context)
        func = func.args[0] if runs_in_context else func.func
    return getattr(func, "__qualname__", type(func).__name__)


def program_name(program: Any) -> str:
    """Return the name of a program's file without its folder and ending."""
    return os.path.splitext(os.path.basename(os.fsdecode(program)))[0]


def with_end(protocol_factory: Callable[[], Any], ended: Callable[[], None]) -> Callable[[], Any]:
    """Make protocols that call `ended` once the program is gone and its pipes are closed."""

    def make() -> Any:
        protocol = protocol_factory()
        connection_lost = protocol.connection_lost
        is_over = False

        def lost(error: Exception | None) -> None:
            nonlocal is_over  # a stream protocol calls it for its input, too
            if not is_over:
                is_over = True
                ended()
            connection_lost(error)

        protocol.connection_lost = lost
        return protocol

    return make


def _who_waits(loop: asyncio.AbstractEventLoop) -> str:
    lines = sorted(f"{task.get_name()} waits {_place(task)}" for task in asyncio.all_tasks(loop))
    return "nothing can happen any more: " + ("; ".join(lines) or "no task is left")


def _place(task: "asyncio.Task[Any]") -> str:
    """Return where a task waits: the innermost coroutine that is written in Python."""
    coroutine: Any = task.get_coro()
    place = "before its first step"
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        place = f"in {coroutine.__qualname__}, {frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = coroutine.cr_await
    return place
