"""Plays a transcript to this process: what came from outside comes from the recording."""

import asyncio
import json
import os
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Alarm, Clock, IdKind, NewId, Work
from kode_sidecar.recording.conductor import Conductor, ModelInput
from kode_sidecar.recording.http_tape import TapeHost
from kode_sidecar.recording.one_by_one import OneByOne
from kode_sidecar.recording.recorded_settings import recorded_settings
from kode_sidecar.recording.strands import Strands
from kode_sidecar.recording.transcript import (
    Arrived,
    Chance,
    DrawnId,
    Failed,
    FrameIn,
    FrameOut,
    Opened,
    Transcript,
)
from kode_sidecar.server import Pop
from kode_sidecar.settings import LoadedSettings

T = TypeVar("T")


class Playback:
    """An `Outside`, a `StreamTap` and a `ModelTape`, all of them the recording.

    Time stands at the newest input that came in. What the process asks the model for goes to the
    file `requests`, a line each; asking for more than was recorded is an error of the provider.
    """

    def __init__(self, transcript: Transcript, requests: Path | None) -> None:
        self._transcript = transcript
        self._strands = Strands()
        first = self._hear_handshake()
        self._conductor = Conductor(transcript.lines, OneByOne(), first)
        self._requests = None if requests is None else requests.open("ab")
        self._asks: Counter[str] = Counter()
        self._ids: defaultdict[str, deque[str]] = defaultdict(deque)
        self._chances: deque[float] = deque()
        for line in transcript.lines:
            if isinstance(line, DrawnId):
                self._ids[line.kind].append(line.id)
            elif isinstance(line, Chance):
                self._chances.append(line.value)
        self._extra_ids = 0
        self._sleeps = 0
        self._slept = 0.0
        self.platform: str = transcript.head.platform
        self.clock: Clock = _TapeClock(transcript.head.started, lambda: self._conductor.now)
        self.new_id: NewId = self._new_id
        self.chance: Callable[[], float] = self._chance
        self.now: Callable[[], float] = lambda: self._conductor.now + self._slept
        self.sleep: Callable[[float], Awaitable[None]] = self._sleep
        self.alarm: Alarm = self._alarm
        self.work: Work = self._work

    def begin(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """See `Outside`."""
        del roots, log
        self._loop = asyncio.get_running_loop()
        self._strands.heard(handshake[0])
        return recorded_settings(self._transcript.head, loaded)

    def hosts(self, make: Callable[[], Any]) -> Any:
        """See `Outside`: nothing that could open a connection is even imported."""
        del make
        return lambda _config: TapeHost(self)  # type: ignore[reportUnknownLambdaType]

    def transcript(self) -> str | None:
        """See `Outside`: what a recording holds of itself is nothing."""
        return ""

    def end(self) -> None:
        """See `Outside`."""
        if self._requests is not None:
            self._requests.close()

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """See `StreamTap`: a frame that comes too early waits."""
        held: list[bytes] = []

        def popped() -> Any:
            item = held.pop() if held else pop()
            if not isinstance(item, bytes):
                return item
            if not self._conductor.frame_may_come():
                held.append(item)
                return None
            self._strands.heard(item)
            return item

        self._conductor.on_frame = pump
        return popped

    def said(self, body: bytes) -> None:
        """See `StreamTap`."""
        self._loop.call_soon_threadsafe(self._said, body)

    def _said(self, body: bytes) -> None:
        self._conductor.said([*self._strands.said(body)])

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int:
        """See `ModelTape`."""
        self._asks[agent] += 1
        ask = self._asks[agent]
        if self._requests is not None:
            told = {"agent": agent, "ask": ask, "method": method, "path": path}
            told |= {"body": json.loads(body)} if body else {}
            line = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            os.write(self._requests.fileno(), line)
        return ask

    async def head(self, agent: str, ask: int) -> tuple[int, Mapping[str, str]]:
        """See `ModelTape`."""
        line = await self._next(agent, ask)
        if not isinstance(line, Opened):
            raise _not_recorded(agent, ask)
        return line.status, line.headers

    async def data(self, agent: str, ask: int) -> bytes:
        """See `ModelTape`."""
        line = await self._next(agent, ask)
        return line.data if isinstance(line, Arrived) else b""

    def left(self, agent: str, ask: int) -> None:
        """See `ModelTape`."""
        self._conductor.skip(agent, ask)

    async def _next(self, agent: str, ask: int) -> ModelInput:
        line = await self._conductor.next_of(agent, ask)
        if line is None:
            if self._transcript.was_asked(agent, ask):
                await asyncio.Event().wait()  # nothing more came until it was given up
            raise _not_recorded(agent, ask)
        if isinstance(line, Failed):
            raise KodeError(line.code, line.message, retryable=line.retryable)
        return line

    def _hear_handshake(self) -> int:
        """How many lines are over once `initialize` is answered."""
        asked = False
        for number, line in enumerate(self._transcript.lines, 1):
            asked = asked or isinstance(line, FrameIn)
            if asked and isinstance(line, FrameOut):
                return number
        return len(self._transcript.lines)

    def _new_id(self, kind: IdKind) -> str:
        recorded = self._ids[kind]
        if recorded:
            return recorded.popleft()
        self._extra_ids += 1
        return f"{kind[0]}-beyond-{self._extra_ids}"

    def _chance(self) -> float:
        return self._chances.popleft() if self._chances else 0.5

    async def _sleep(self, seconds: float) -> None:
        """Whoever waits for the clock waits for the recording; an old one does not tell."""
        self._sleeps += 1
        if not await self._conductor.work_done(f"sleep {self._sleeps}"):
            self._slept += seconds

    async def _work(self, name: str, done: Awaitable[T]) -> T:
        try:
            return await done
        finally:
            if not isinstance(sys.exception(), asyncio.CancelledError):
                await self._conductor.work_done(name)

    def _alarm(self, name: str, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        del seconds
        return self._conductor.set_alarm(name, ring)


def _not_recorded(agent: str, ask: int) -> KodeError:
    text = f"The recording holds no answer to question {ask} of {agent}: it was not asked then."
    return KodeError("Provider", text, retryable=False)


class _TapeClock:
    """`kernel.contracts.Clock` by the recording."""

    def __init__(self, started: str, passed: Callable[[], float]) -> None:
        self._started = datetime.fromisoformat(started)
        self._passed = passed

    def timestamp(self) -> str:
        """See `Clock`."""
        now = self._started + timedelta(seconds=self._passed())
        return f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z"

    def monotonic(self) -> float:
        """See `Clock`."""
        return self._passed()
