"""The event loop of a process that is recorded: it runs as usual and reports what comes in."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from typing import Any, TypeVar

from kode_sidecar.devtools.recording.programs import ProgramLog
from kode_sidecar.devtools.recording.virtual_time import (
    PlatformLoop,
    call_name,
    program_name,
    ready_callbacks,
    with_end,
)
from kode_sidecar.infrastructure.workspace.ripgrep import find_ripgrep

_T = TypeVar("_T")
_not_recorded: ContextVar[bool] = ContextVar("not_recorded", default=False)


@contextmanager
def not_recorded() -> Generator[None]:
    """Do not report timers and calls that begin in here: their result is recorded by the caller."""
    token = _not_recorded.set(True)
    try:
        yield
    finally:
        _not_recorded.reset(token)


class RecordingLoop(PlatformLoop):
    """Reports timers, calls in threads and programs just before they take effect.

    `timer_rang(seconds)` is called for a timer set for so many seconds ahead, `call_done(name,
    number)` when the `number`th call of that name has returned. What comes from other threads is
    let in at the end of a round, in its order, and has its effect in the next: `ends_round` says
    that this is such a moment.
    """

    def __init__(
        self, timer_rang: Callable[[float], None], call_done: Callable[[str, int], None]
    ) -> None:
        super().__init__()
        self._timer_rang = timer_rang
        self._call_done = call_done
        self._calls: Counter[str] = Counter()
        self.programs: ProgramLog | None = None
        self._search = str(find_ripgrep())
        self._round = self._entered = 0
        self._was_idle = True
        self.ends_round = False
        self._from_threads: deque[asyncio.Handle] = deque()
        self._threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
        self.set_default_executor(self._threads)

    def rounds_since_input(self) -> int | None:
        """Return the rounds since the last input; None if the loop was idle in between.

        The caller reports an input with this call.
        """
        rounds = None if self._was_idle else self._round - self._entered
        self._entered, self._was_idle = self._round, False
        return rounds

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call `callback` at the end of the next round, a place that playback can repeat."""
        loop: Any = self
        loop._check_closed()
        handle = asyncio.Handle(self._end_round, (callback, *args), self, context)
        self._from_threads.append(handle)
        loop._write_to_self()
        return handle

    async def enter(self, coming: Awaitable[_T], note: Callable[[asyncio.Future[_T]], None]) -> _T:
        """Wait for an input, `note` it at the end of a round, and go on in the round after it.

        It comes by a task of its own. Until it is noted the caller waits as the one that gets it in
        playback does, so a cancel that meets an input half-way takes the same place there.
        """
        entered: asyncio.Future[_T] = self.create_future()
        with not_recorded():
            task = asyncio.ensure_future(coming, loop=self)

        def take() -> None:
            error = None if task.cancelled() else task.exception()
            if entered.done():
                return  # given up
            note(task)
            if task.cancelled():
                entered.cancel()
            elif error:
                entered.set_exception(error)
            else:
                entered.set_result(task.result())

        task.add_done_callback(lambda _: self.call_soon_threadsafe(take))
        try:
            return await entered
        finally:
            task.cancel()

    def _end_round(self, callback: Callable[..., object], *args: Any) -> None:
        self.ends_round = True
        try:
            callback(*args)
        finally:
            self.ends_round = False

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer that is noted when it rings."""
        if _not_recorded.get():
            return super().call_at(when, callback, *args, context=context)
        seconds = round(when - self.time(), 3)

        def ring() -> None:
            self._timer_rang(seconds)
            callback(*args)

        return super().call_at(when, ring, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call `func` in a thread, and note when its result is there."""
        if _not_recorded.get():
            return super().run_in_executor(executor, func, *args)
        over = self._numbered(call_name(func))
        future: asyncio.Future[Any] = self.create_future()
        call: Future[Any] = (executor or self._threads).submit(func, *args)

        def arrived() -> None:
            if future.done():
                return  # given up
            over()
            error = call.exception()
            if error is None:
                future.set_result(call.result())
            else:
                future.set_exception(error)

        def returned(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                self.call_soon_threadsafe(arrived)

        call.add_done_callback(returned)
        future.add_done_callback(lambda done: call.cancel() if done.cancelled() else None)
        return future

    async def subprocess_exec(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], program: Any, *args: Any, **options: Any
    ) -> Any:
        """Start a program, and note what it does; of our own search only when it has ended."""
        if self.programs is None or program == self._search:
            factory = with_end(protocol_factory, self._numbered(program_name(program)))
            return await super().subprocess_exec(factory, program, *args, **options)
        key, factory = self.programs.watched(protocol_factory, [program, *args])
        try:
            return await super().subprocess_exec(factory, program, *args, **options)
        except (OSError, ValueError) as error:
            self.programs.failed(key, error)
            raise

    def _numbered(self, name: str) -> Callable[[], None]:
        self._calls[name] += 1
        number = self._calls[name]
        return lambda: self._call_done(name, number)

    def _run_once(self) -> None:
        ready = ready_callbacks(self)
        self._round += 1
        self._was_idle = self._was_idle or not ready
        while self._from_threads:
            ready.append(self._from_threads.popleft())
        super()._run_once()  # type: ignore[misc]
