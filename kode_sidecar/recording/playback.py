"""Plays a transcript to this process: what came from outside comes from the recording."""

import asyncio
import json
import os
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Clock, IdKind, NewId
from kode_sidecar.recording.lanes import Lanes
from kode_sidecar.recording.model_hosts import PlaybackHost
from kode_sidecar.recording.playback_loop import PlaybackLoop
from kode_sidecar.recording.recorded_settings import recorded_settings
from kode_sidecar.recording.transcript import (
    Arrived,
    DrawnId,
    Failed,
    FrameIn,
    FrameOut,
    ModelInput,
    Opened,
    RandomNumber,
    Transcript,
)
from kode_sidecar.server import Pop
from kode_sidecar.settings import LoadedSettings


class Playback:
    """The recording in the place of everything outside of the process.

    It is the process's `Environment` and its `FrameListener`, and says what model hosts said. Time
    stands at the newest input that came in. What the process asks the model for goes to the file
    `requests`, a line each; asking for more than was recorded is an error of the provider.
    """

    def __init__(self, transcript: Transcript, requests: Path | None) -> None:
        self._transcript = transcript
        self._lanes = Lanes()
        self._requests = None if requests is None else requests.open("ab")
        self._asks: Counter[str] = Counter()
        self._ids: defaultdict[str, deque[str]] = defaultdict(deque)
        self._randoms: deque[float] = deque()
        for line in transcript.lines:
            if isinstance(line, DrawnId):
                self._ids[line.kind].append(line.id)
            elif isinstance(line, RandomNumber):
                self._randoms.append(line.value)
        self._extra_ids = 0
        self._thread = threading.get_ident()
        self._loop = PlaybackLoop(transcript.lines, self._hear_handshake())
        self.platform: str = transcript.head.platform
        self.clock: Clock = _RecordedClock(transcript.head.started, self._loop.time)
        self.new_id: NewId = self._new_id
        self.random: Callable[[], float] = self._random

    def new_loop(self) -> PlaybackLoop:
        """Return the loop to serve on."""
        return self._loop

    def begin(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """Return the recorded settings."""
        del roots, log
        self._lanes.heard(handshake[0])
        return recorded_settings(self._transcript.head, loaded)

    def hosts(self, make: Callable[[], Any]) -> Any:
        """Return the recorded ones: nothing that could open a connection is even imported."""
        del make
        return lambda _config: PlaybackHost(self)  # type: ignore[reportUnknownLambdaType]

    def transcript(self) -> str | None:
        """Return nothing, which is what a recording holds of itself."""
        return ""

    def end(self) -> None:
        """Close the file of requests."""
        if self._requests is not None:
            self._requests.close()

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """Hold each frame until it is its turn."""
        held: deque[Any] = deque()

        def is_there() -> bool:
            while (item := pop()) is not None:
                held.append(item)
                if not isinstance(item, bytes):
                    self._loop.end()  # nobody will say what is missing
            return bool(held)

        def popped() -> Any:
            if not is_there():
                return None
            if not isinstance(held[0], bytes):
                return held.popleft()
            if not self._loop.frame_may_come():
                return None
            self._lanes.heard(held[0])
            return held.popleft()

        self._loop.frame_is_there, self._loop.take_frame = is_there, pump
        return popped

    def said(self, body: bytes) -> None:
        """Count what the process says: the next input may wait for it."""
        if threading.get_ident() == self._thread:
            self._count(body)
        else:
            self._loop.call_soon_threadsafe(self._count, body)

    def _count(self, body: bytes) -> None:
        self._loop.said([*self._lanes.said(body)])

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int:
        """Write the request down and return its number among those of the agent."""
        self._asks[agent] += 1
        ask = self._asks[agent]
        if self._requests is not None:
            told = {"agent": agent, "ask": ask, "method": method, "path": path}
            told |= {"body": json.loads(body)} if body else {}
            line = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            os.write(self._requests.fileno(), line)
        return ask

    async def head(self, agent: str, ask: int) -> tuple[int, Mapping[str, str]]:
        """Return status and headers. Raises KodeError as recorded, or because nothing was."""
        line = await self._next(agent, ask)
        if not isinstance(line, Opened):
            raise _not_recorded(agent, ask)
        return line.status, line.headers

    async def data(self, agent: str, ask: int) -> bytes:
        """Return the next bytes, nothing at the end. Raises as `head` does."""
        line = await self._next(agent, ask)
        return line.data if isinstance(line, Arrived) else b""

    async def rest(self, agent: str, ask: int) -> None:
        """Wait until the end of the answer had come."""
        await self._loop.next_of(agent, ask)

    def left(self, agent: str, ask: int) -> None:
        """Leave out the rest of the answer."""
        self._loop.give_up(agent, ask)

    async def _next(self, agent: str, ask: int) -> ModelInput:
        line = await self._loop.next_of(agent, ask)
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

    def _random(self) -> float:
        return self._randoms.popleft() if self._randoms else 0.5


def _not_recorded(agent: str, ask: int) -> KodeError:
    text = f"The recording holds no answer to question {ask} of {agent}: it was not asked then."
    return KodeError("Provider", text, retryable=False)


class _RecordedClock:
    """The `Clock` of a recording."""

    def __init__(self, started: str, passed: Callable[[], float]) -> None:
        self._started = datetime.fromisoformat(started)
        self._passed = passed

    def timestamp(self) -> str:
        """Return the recorded time of day."""
        now = self._started + timedelta(seconds=self._passed())
        return f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z"

    def monotonic(self) -> float:
        """Return the seconds since the recording began."""
        return self._passed()
