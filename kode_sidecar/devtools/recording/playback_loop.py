"""The event loop of a process to which a recording is played: it delivers the inputs in order.

A recording is a list of steps: an input, and what the process says before it. A step is taken when
all of that has been said again, lane by lane, and the loop is idle; so the input finds the process
as it was when recorded. An input that came while the process was busy is delivered as many rounds
of the loop after the one before it as it was then.
"""

import asyncio
import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kode_sidecar.devtools.recording.isolation import no_connection
from kode_sidecar.devtools.recording.lanes import (
    Lane,
    LanePart,
    Lanes,
    as_object,
    read_frame,
    session_lane,
)
from kode_sidecar.devtools.recording.programs import ProgramKey, ProgramNumbers, RecordedProgram
from kode_sidecar.devtools.recording.recorded_lines import (
    AnyLine,
    CallDone,
    FrameIn,
    FrameOut,
    JournalGrown,
    ModelInput,
    ProgramInput,
    RecordedInput,
    TimerRang,
)
from kode_sidecar.devtools.recording.virtual_time import Timer, VirtualTimeLoop, ready_callbacks
from kode_sidecar.infrastructure.workspace.ripgrep import find_ripgrep

# How long a busy process waits for the next frame: the player sends it without delay.
_FRAME_SECONDS = 5.0
_LOOK_SECONDS = 0.0005
# A recorded timer was read off a clock that went on meanwhile.
_TIMER_SECONDS = 0.02
_Source = tuple[str, int] | str
# Lanes whose names hold ids; parallel tasks may have got each other's.
_RACING = frozenset({"block", "call", "progress", "scout"})


@dataclass
class _PlaybackStep:
    """An input, and how much each lane says between the input before it and this one."""

    line: RecordedInput
    said: Counter[Lane] = field(default_factory=Counter[Lane])
    given_up: bool = False


class PlaybackLoop(VirtualTimeLoop):
    """Delivers the inputs of a recording, without its first `first` lines.

    `frame_is_there()` and `take_frame()` are about the client's next frame. After the last input
    the loop goes by the system's clock.
    """

    def __init__(self, lines: Sequence[AnyLine], first: int = 0) -> None:
        super().__init__()
        self.frame_is_there: Callable[[], bool] = lambda: False
        self.take_frame: Callable[[], None] = lambda: None
        self._steps = list(_steps(lines, first))
        self._position = -1
        self._round = self._entered = 0
        self._frames_left = sum(isinstance(step.line, FrameIn) for step in self._steps)
        self._frames_due = 0
        self._owed: Counter[Lane] = Counter()
        self._late: set[Lane] = set()  # lanes that still owe something
        self._recorded_calls = {
            step.line.name for step in self._steps if isinstance(step.line, CallDone)
        }
        self._calls: Counter[str] = Counter()
        self._held: dict[tuple[str, int], Callable[[], None]] = {}
        self._programs_by_key: dict[ProgramKey, RecordedProgram] = {}
        self._numbers = ProgramNumbers()
        self._search = str(find_ripgrep())
        self._readers: dict[_Source, asyncio.Future[RecordedInput]] = {}
        self._go_on()

    @property
    def over(self) -> bool:
        """Whether every step has entered."""
        return self._position == len(self._steps)

    def said(self, parts: Sequence[LanePart]) -> None:
        """Count what the process says."""
        for part in parts:
            self._owe(part.lane, -part.size)

    def frame_may_come(self) -> bool:
        """Return whether the client's next frame, which is there, may be handled now.

        True means that it is. A client that says more than was recorded does not wait.
        """
        if not self._frames_due:
            return not self._frames_left
        self._frames_due -= 1
        return True

    async def next_of(self, agent: str, ask: int) -> ModelInput | None:
        """Return what comes next of an answer, when it is its turn; None: nothing was recorded."""
        return cast(ModelInput | None, await self._next((agent, ask)))

    async def growth_of(self, session_id: str) -> JournalGrown | None:
        """Return what comes next in a journal, when it is its turn; None: nothing was recorded."""
        return cast(JournalGrown | None, await self._next(session_id))

    async def _next(self, source: _Source) -> RecordedInput | None:
        if not any(_source(step) == source for step in self._steps[self._position :]):
            return None
        reader = self._readers[source] = self.create_future()
        try:
            return await reader
        finally:
            if self._readers.get(source) is reader:  # another one may read on
                del self._readers[source]

    async def subprocess_exec(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], program: Any, *args: Any, **options: Any
    ) -> Any:
        """Start nothing but our own search: the recording says what the program did.

        Raises OSError where it could not be started, or was not.
        """
        if program == self._search:
            return await super().subprocess_exec(protocol_factory, program, *args, **options)
        key = self._numbers.key([program, *args])
        if not any(_program_of(step.line) == key for step in self._steps[self._position :]):
            text = f"this is a recording, in which {key[0]} did not run (number {key[1]})"
            raise PermissionError(errno.EPERM, text)
        pipes = options.get("stdin"), options.get("stdout"), options.get("stderr")
        recorded = RecordedProgram(self, protocol_factory, pipes)
        self._programs_by_key[key] = recorded
        await recorded.started
        return recorded, recorded.protocol

    async def create_connection(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Raises PermissionError: nothing is connected to."""
        del options
        raise no_connection(args[1:3])

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Raises PermissionError, as `create_connection`."""
        del sock
        raise no_connection(address)

    def give_up(self, agent: str, ask: int) -> None:
        """Leave out the rest of an answer: nobody wants it."""
        for step in self._steps[self._position :]:
            step.given_up = step.given_up or _source(step) == (agent, ask)

    def end(self) -> None:
        """End the recording here. What still waits for it goes on at once."""
        self._position = len(self._steps)
        self._frames_left = 0
        while self._release_oldest_call():
            pass
        self.use_real_time()

    def finished(self, name: str, deliver: Callable[[], None]) -> None:
        """Hold the result of a call until the call was over in the recording."""
        self._calls[name] += 1
        if name in self._recorded_calls and not self.over:
            self._held[name, self._calls[name]] = deliver
        else:
            deliver()

    def before_round(self, *, idle: bool) -> bool:
        """Let in the next input when nothing else is left to do."""
        self._round += 1
        return idle and self._enter_next(idle=True)

    def _run_once(self) -> None:
        super()._run_once()
        # An input that met a busy process comes last in its round, and is dealt with in it.
        while not self.over and self._is_early(self._steps[self._position].line):
            ready = ready_callbacks(self)
            next_round = [ready.popleft() for _ in range(len(ready))]
            entered = self._enter_next(idle=False)
            if entered and ready:
                super(VirtualTimeLoop, self)._run_once()  # type: ignore[misc]
            ready.extendleft(reversed(next_round))
            if not entered:
                break

    def _enter_next(self, *, idle: bool) -> bool:
        """Let in the next input if it is due and waited for; return whether anything happened."""
        if self.over:
            return False
        step = self._steps[self._position]
        if not step.given_up:
            is_due = self._is_due(step.line) if idle else _own_lane(step.line) not in self._late
            if not is_due or not self._enter(step.line, idle=idle):
                return idle and self._leave_out(step.line)
        self._go_on()
        return True

    def _is_early(self, line: RecordedInput) -> bool:
        """Return whether an input came while the process was busy with the one before it."""
        return line.rounds is not None and self._round - self._entered >= line.rounds

    def _is_due(self, line: RecordedInput) -> bool:
        """Return whether everything was said, perhaps with ids that two racing tasks swapped.

        How far a text has grown matters to clients only.
        """
        late = {lane.kind for lane in self._late}
        if not isinstance(line, FrameIn):
            late.discard("block")
        owed: Counter[str] = Counter()
        for lane, count in self._owed.items():
            owed[lane.kind] += count
        return all(kind in _RACING and owed[kind] <= 0 for kind in late)

    def _enter(self, line: RecordedInput, *, idle: bool) -> bool:
        """Let an input have its effect; False when nobody waits for it."""
        if isinstance(line, FrameIn):
            return self._enter_frame(idle=idle)
        if isinstance(line, TimerRang):
            timer = self._timer(line.seconds)
            if timer is not None:
                self.ring(timer)
            return timer is not None
        if isinstance(line, CallDone):
            return self._release_call((line.name, line.number))
        if isinstance(line, ProgramInput):
            program = self._programs_by_key.get((line.program, line.number))
            if program is not None:
                self.call_soon(program.take, line)
            return program is not None
        source = _source_of(line)
        reader = self._readers.get(source) if source else None
        if reader is None or reader.done():
            return False
        self.call_soon(reader.set_result, line)
        return True

    def _enter_frame(self, *, idle: bool) -> bool:
        """Take the client's frame; a busy process goes on only once it is there."""
        patience = time.monotonic() + (0.0 if idle else _FRAME_SECONDS)
        while not self.frame_is_there():
            if time.monotonic() >= patience:
                return False
            time.sleep(_LOOK_SECONDS)
        self._frames_left -= 1
        self._frames_due += 1
        self.call_soon(self.take_frame)
        return True

    def _timer(self, seconds: float) -> Timer | None:
        """Return the timer that was set for so many seconds ahead, if there is one."""
        same = [timer for timer in self.timers() if abs(timer.seconds - seconds) < _TIMER_SECONDS]
        return min(same, key=lambda timer: abs(timer.seconds - seconds), default=None)

    def _leave_out(self, line: RecordedInput) -> bool:
        """Go on where the process is idle and a step has nobody who waits for it.

        What is held may be what is missing. A timer, a call or a program of the recording that this
        process does not know is left out; everything else is waited for.
        """
        if isinstance(line, FrameIn) and self._is_due(line):
            return False
        if self._release_oldest_call():
            return True
        if not isinstance(line, TimerRang | CallDone | ProgramInput) or not self._is_due(line):
            return False
        self._go_on()
        return True

    def _release_call(self, key: tuple[str, int]) -> bool:
        """Deliver the result of that call; False: it is not held."""
        deliver = self._held.pop(key, None)
        if deliver is None:
            return False
        self.call_soon(deliver)
        return True

    def _release_oldest_call(self) -> bool:
        return bool(self._held) and self._release_call(next(iter(self._held)))

    def _go_on(self) -> None:
        """Make the next step the current one; what is said before it is owed now."""
        if self._position >= 0:
            self.advance(self._steps[self._position].line.t)
        self._entered = self._round
        self._position += 1
        if self.over:
            self.end()
            return
        for lane, count in self._steps[self._position].said.items():
            self._owe(lane, count)

    def _owe(self, lane: Lane, count: int) -> None:
        self._owed[lane] += count
        if self._owed[lane] > 0:
            self._late.add(lane)
        else:
            self._late.discard(lane)


def _own_lane(line: RecordedInput) -> Lane | None:
    """Return the lane of the session that an input is for, if it is for one."""
    if isinstance(line, FrameIn):
        params = as_object(read_frame(bytes(line.frame)).get("params"))
        return session_lane(params.get("sessionId"))
    if isinstance(line, ModelInput):
        return session_lane(line.agent.removeprefix("main "))
    return None


def _program_of(line: RecordedInput) -> ProgramKey | None:
    return (line.program, line.number) if isinstance(line, ProgramInput) else None


def _source(step: _PlaybackStep) -> _Source | None:
    return None if step.given_up else _source_of(step.line)


def _source_of(line: RecordedInput) -> _Source | None:
    """Return whom an input is for: an answer by agent and number, a journal by its session."""
    if isinstance(line, JournalGrown):
        return line.session_id
    return (line.agent, line.ask) if isinstance(line, ModelInput) else None


def _steps(lines: Sequence[AnyLine], first: int) -> Iterator[_PlaybackStep]:
    lanes = Lanes()
    said: Counter[Lane] = Counter()
    for index, line in enumerate(lines):
        if isinstance(line, FrameIn):
            lanes.received(bytes(line.frame))
        if index < first:
            continue
        if isinstance(line, FrameOut):
            for part in lanes.said(bytes(line.frame)):
                said[part.lane] += part.size
        elif isinstance(line, RecordedInput):
            yield _PlaybackStep(line, said)
            said = Counter()
