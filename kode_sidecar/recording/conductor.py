"""Lets in what came from outside in the order in which it came in when it was recorded.

A recording is a sequence of inputs (frames, bytes of a model, deadlines) with what was said between
them. The next input may come in when everything said before it has been said again, strand by
strand: then whatever it met in the recording it meets now.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kode_sidecar.recording.one_by_one import OneByOne
from kode_sidecar.recording.strands import Part, Strands
from kode_sidecar.recording.transcript import (
    AlarmRang,
    Arrived,
    Ended,
    Failed,
    FrameIn,
    FrameOut,
    Opened,
    TapeLine,
    WorkDone,
)

ModelInput = Opened | Arrived | Ended | Failed
Input = FrameIn | AlarmRang | WorkDone | ModelInput


@dataclass
class _Cue:
    """An input, and how much each strand says between the one before it and this one."""

    line: Input
    said: Counter[str] = field(default_factory=Counter[str])
    skipped: bool = False


class Conductor:
    """On the loop. `now` is the recorded time of the newest input, in seconds.

    `first` is the number of lines that are over when it begins.
    """

    def __init__(self, lines: Sequence[TapeLine], inputs: OneByOne, first: int = 0) -> None:
        self.now = 0.0
        self._cues = list(_cues(lines, first))
        self._position = -1
        self._owed: Counter[str] = Counter()
        self._late: set[str] = set()  # strands that still owe something
        self._of: defaultdict[tuple[str, int] | str, deque[int]] = defaultdict(deque)
        for index, cue in enumerate(self._cues):
            if isinstance(cue.line, WorkDone):
                self._of[cue.line.name].append(index)
            elif not isinstance(cue.line, FrameIn | AlarmRang):
                self._of[cue.line.agent, cue.line.ask].append(index)
        self._tells_of_work = any(isinstance(cue.line, WorkDone) for cue in self._cues)
        self._over = asyncio.Event()
        self._inputs = inputs
        self._looking = False
        self._frame_may_come = False
        self._waiting: dict[int, asyncio.Event] = {}
        self._alarms: defaultdict[str, deque[Callable[[], None]]] = defaultdict(deque)
        self.on_frame: Callable[[], None] = lambda: None
        self._go_on()

    def said(self, parts: Sequence[Part]) -> None:
        """The process said something."""
        for part in parts:
            self._owe(part.strand, -(part.grown or 1))
        self._look()

    def frame_may_come(self) -> bool:
        """May the next frame be handled? True then means that it is."""
        if self._position == len(self._cues):
            return True
        if self._frame_may_come:
            self._frame_may_come = False
            self._go_on()
            self._look()
            return True
        self._look()
        # A client that says more than was recorded is not kept waiting for ever.
        rest = self._cues[self._position :]
        return not any(isinstance(cue.line, FrameIn) for cue in rest)

    async def next_of(self, agent: str, ask: int) -> ModelInput | None:
        """What comes next of an answer, when it is its turn; None: nothing was recorded."""
        mine = self._of[agent, ask]
        if not mine:
            return None
        line = await self._let_in(mine)
        assert not isinstance(line, FrameIn | AlarmRang | WorkDone)
        return line

    async def work_done(self, name: str) -> bool:
        """Returns when it was done in the recording; False and at once if that tells of no work."""
        if not self._tells_of_work:
            return False
        mine = self._of[name]
        if mine:
            await self._let_in(mine)
        else:
            await self._over.wait()  # it was given up before it was done, or the recording ended
        return True

    async def _let_in(self, mine: deque[int]) -> Input:
        index = mine[0]
        arrived = self._waiting[index] = asyncio.Event()
        self._look()
        try:
            await arrived.wait()
        finally:
            self._waiting.pop(index, None)
        # Only now is it in: nothing may overtake it while its reader is being woken.
        mine.popleft()
        self._go_on()
        self._look()
        return self._cues[index].line

    def skip(self, agent: str, ask: int) -> None:
        """Nobody wants the rest of this answer."""
        for index in self._of.pop((agent, ask), ()):
            self._cues[index].skipped = True
        self._look()

    def set_alarm(self, name: str, ring: Callable[[], None]) -> Callable[[], None]:
        """Ring when it rang in the recording; the result takes it back."""
        mine = self._alarms[name]
        mine.append(ring)
        self._look()

        def take_back() -> None:
            with suppress(ValueError):
                mine.remove(ring)

        return take_back

    def _look(self) -> None:
        """Let in what is due and waited for, when nothing else is left to do."""
        if not self._looking:
            self._looking = True
            self._inputs.enter(self._look_now)

    def _look_now(self) -> None:
        self._looking = False
        while self._position < len(self._cues):
            cue = self._cues[self._position]
            if not cue.skipped:
                if not self._is_due():
                    return
                if isinstance(cue.line, FrameIn):
                    self._frame_may_come = True
                    self.on_frame()
                    return
                if not self._rings(cue.line):
                    self._wake_reader()
                    return
                self._look()
            self._go_on()
            if not cue.skipped:
                return

    def _rings(self, line: AlarmRang | WorkDone | ModelInput) -> bool:
        """Is it a deadline that somebody set? Then it is over."""
        if not isinstance(line, AlarmRang) or not self._alarms[line.name]:
            return False
        self.now = line.t
        self._alarms[line.name].popleft()()
        return True

    def _wake_reader(self) -> None:
        arrived = self._waiting.get(self._position)
        if arrived is not None:
            arrived.set()

    def _is_due(self) -> bool:
        """Was everything said? How far a text has grown matters to clients only."""
        if isinstance(self._cues[self._position].line, FrameIn):
            return not self._late
        return all(strand.startswith("block ") for strand in self._late)

    def _go_on(self) -> None:
        """The current input is in; what is said before the next one is owed now."""
        if self._position >= 0:
            self.now = self._cues[self._position].line.t
        self._position += 1
        if self._position == len(self._cues):
            self._over.set()
        else:
            for strand, count in self._cues[self._position].said.items():
                self._owe(strand, count)

    def _owe(self, strand: str, count: int) -> None:
        self._owed[strand] += count
        if self._owed[strand] > 0:
            self._late.add(strand)
        else:
            self._late.discard(strand)


def _cues(lines: Sequence[TapeLine], first: int) -> list[_Cue]:
    strands = Strands()
    cues: list[_Cue] = []
    said: Counter[str] = Counter()
    for index, line in enumerate(lines):
        if isinstance(line, FrameIn):
            strands.heard(bytes(line.frame))
        if index < first:
            continue
        if isinstance(line, FrameOut):
            for part in strands.said(bytes(line.frame)):
                said[part.strand] += part.grown or 1
        elif isinstance(line, FrameIn | AlarmRang | WorkDone | Opened | Arrived | Ended | Failed):
            cues.append(_Cue(line, said))
            said = Counter()
    return cues
