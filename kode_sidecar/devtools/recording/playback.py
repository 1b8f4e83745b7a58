"""Plays a recording to this process: what came from outside comes from the recording."""

import asyncio
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kode_sidecar.core.kernel.contracts import Clock, IdKind, NewId
from kode_sidecar.core.settings import LoadedSettings
from kode_sidecar.devtools.recording.folders import FolderNames
from kode_sidecar.devtools.recording.lanes import Lanes
from kode_sidecar.devtools.recording.model_hosts import PlaybackHost
from kode_sidecar.devtools.recording.playback_loop import PlaybackLoop
from kode_sidecar.devtools.recording.recorded_lines import (
    DrawnId,
    FrameIn,
    FrameOut,
    ProgramFound,
    RandomNumber,
)
from kode_sidecar.devtools.recording.recording_file import SessionRecording
from kode_sidecar.devtools.recording.redaction import recorded_settings
from kode_sidecar.devtools.recording.server_hosts import playback_access
from kode_sidecar.devtools.recording.state_files import in_lines
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.journal import JournalTail
from kode_sidecar.servers.lsp import Pop

if TYPE_CHECKING:  # a room that only who has servers pays for
    from kode_sidecar.infrastructure.mcp.contracts import Access, Authorize


class Playback:
    """The `Environment` and the `FrameListener` of a process to which a recording is played.

    Ids and random numbers come in their recorded order; the clock shows the time of the newest
    input.
    """

    def __init__(self, recording: SessionRecording, requests: Path | None) -> None:
        self._recording = recording
        self._lanes = Lanes()
        self._ids: defaultdict[str, deque[str]] = defaultdict(deque)
        self._randoms: deque[float] = deque()
        self._found: defaultdict[str, deque[ProgramFound]] = defaultdict(deque)
        for line in recording.lines:
            if isinstance(line, DrawnId):
                self._ids[line.kind].append(line.id)
            elif isinstance(line, ProgramFound):
                self._found[line.name].append(line)
            elif isinstance(line, RandomNumber):
                self._randoms.append(line.value)
        self._extra_ids = 0
        self._thread = threading.get_ident()
        self._loop = PlaybackLoop(recording.lines, self._lines_of_handshake())
        self._host = PlaybackHost(recording, self._loop, requests)
        self.remembers_hosts = self.has_runs = False
        self.home: Path | None = None
        self.platform: str = recording.head.platform
        self.clock: Clock = _RecordedClock(recording.head.started, self._loop.time)
        self.new_id: NewId = self._new_id
        self.random: Callable[[], float] = self._random

    def new_loop(self) -> PlaybackLoop:
        """Return the loop to serve on."""
        return self._loop

    def begin(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path],
        handshake: tuple[bytes, ...],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """Return the recorded settings."""
        del log
        params = self._recording.initialize_params()
        self._names = FolderNames(self._recording.head, params, [*map(str, roots)])
        self._lanes.received(handshake[-2])
        return recorded_settings(self._recording.head, loaded)

    def hosts(self, make: Callable[[], Any]) -> Any:
        """Return the recorded host; `make` is not called, so no HTTP client is loaded."""
        del make
        return lambda _config: self._host  # type: ignore[reportUnknownLambdaType]

    def found(self, name: str, find: Callable[[], str]) -> str:
        """Return the recorded name of a program's file; nothing is looked for on this machine.

        Raises the recorded KodeError, or `ToolFailed` where nothing was recorded.
        """
        del find
        recorded = self._found[name]
        if not recorded:
            text = f"This is a recording, which does not say which program {name} is: none is run."
            raise KodeError("ToolFailed", text, details={"reason": "not_recorded"})
        line = recorded.popleft()
        if line.code:
            raise KodeError(line.code, line.message, details=line.details)
        return os.path.basename(line.file) or "program"

    def server_access(self, name: str, authorize: "Authorize | None") -> "Access":
        """Return what answers from the recording: no network, no token."""
        del authorize
        return playback_access(name, self._host)

    async def grown(self, tail: JournalTail) -> Sequence[bytes] | None:
        """Return what a journal held by then; nothing on this disk."""
        line = await self._loop.growth_of(tail.session_id)
        if line is None:
            await asyncio.Event().wait()  # nothing more was written until it was left
        lines = line.lines if line else ()
        return [in_lines(text, self._names.here).encode() for text in lines] or None

    def transcript(self) -> str | None:
        """Return an empty text: a recording does not hold itself."""
        return ""

    def end(self) -> None:
        """Close the file of requests."""
        self._host.close()

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """Hold each frame until it is its turn."""
        held: deque[Any] = deque()

        def is_there() -> bool:
            while (item := pop()) is not None:
                held.append(item)
                if not isinstance(item, bytes):
                    self._loop.end()  # the client went: nothing more can come
            return bool(held)

        def popped() -> Any:
            if not is_there():
                return None
            if not isinstance(held[0], bytes):
                return held.popleft()
            if not self._loop.frame_may_come():
                return None
            self._lanes.received(held[0])
            return held.popleft()

        self._loop.frame_is_there, self._loop.take_frame = is_there, pump
        return popped

    def said(self, body: bytes) -> Sequence[bytes]:
        """Count a message of the process: the next input may wait for it."""
        if threading.get_ident() == self._thread:
            self._count(body)
        else:
            self._loop.call_soon_threadsafe(self._count, body)
        return (body,)

    def _count(self, body: bytes) -> None:
        self._loop.said([*self._lanes.said(body)])

    def _lines_of_handshake(self) -> int:
        """Return the number of lines up to the answer to `initialize`."""
        asked = False
        for number, line in enumerate(self._recording.lines, 1):
            asked = asked or isinstance(line, FrameIn)
            if asked and isinstance(line, FrameOut):
                return number
        return len(self._recording.lines)

    def _new_id(self, kind: IdKind) -> str:
        recorded = self._ids[kind]
        if recorded:
            return recorded.popleft()
        self._extra_ids += 1
        return f"{kind[0]}-beyond-{self._extra_ids}"

    def _random(self) -> float:
        return self._randoms.popleft() if self._randoms else 0.5


class _RecordedClock:
    """Shows the time of a recording."""

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
