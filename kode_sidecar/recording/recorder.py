"""Writes a transcript of this process while it serves."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from kode_sidecar import __version__
from kode_sidecar.boot.system import System
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import IdKind
from kode_sidecar.providers.endpoint import OpenHost
from kode_sidecar.recording.lanes import read_frame
from kode_sidecar.recording.model_hosts import RecordingHost
from kode_sidecar.recording.recorded_settings import keys_in, settings_to_record
from kode_sidecar.recording.recording_loop import RecordingLoop
from kode_sidecar.recording.secret_mask import SecretMask
from kode_sidecar.recording.snapshot import Snapshot
from kode_sidecar.recording.transcript import (
    FORMAT,
    AnyInput,
    AnyLine,
    Arrived,
    Asked,
    CallDone,
    DrawnId,
    End,
    Ended,
    Failed,
    FrameIn,
    FrameOut,
    Head,
    InputEnded,
    Left,
    Opened,
    RandomNumber,
    TimerRang,
    TranscriptFile,
    encode_line,
)
from kode_sidecar.records.disk import not_read
from kode_sidecar.server import Pop
from kode_sidecar.settings import LoadedSettings

# After these the editor may have written files; a turn looks at them.
_FILES_MAY_DIFFER = (
    b'"textDocument/didSave"',
    b'"workspace/didChangeWatchedFiles"',
    b'"kode/turn/start"',
    b'"result"',
)
_EXPORT = b'.tape.jsonl","text":"'
_SECRET_HEADERS = ("set-cookie", "authorization")


class Recorder(System):
    """The system as it is, and a record of it.

    It is the process's `Environment` and its `FrameListener`, and notes what hosts say and what
    comes in through the event loop. Nothing is written before `begin`. What cannot be written ends
    the recording and is told once by `log`; the process goes on.
    """

    def __init__(self, wanted: Path) -> None:
        super().__init__()
        self._wanted = wanted
        self._file: TranscriptFile | None = None
        self._path = wanted
        self._asks: Counter[str] = Counter()
        self._held: dict[tuple[str, int], bytes] = {}
        self._draw_id = self.new_id
        self.new_id, self.random = self._new_id, self._random

    def new_loop(self) -> RecordingLoop:
        """Return the loop to serve on."""
        self._loop = RecordingLoop(self._timer_rang, self._call_done)
        return self._loop

    def begin(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """Begin the recording, of a process with these settings. Raises KodeError `Storage`."""
        self._log = log
        keys = keys_in(loaded)
        self._mask = SecretMask([*keys.values()])
        self._snapshot = Snapshot(roots, [*keys.values()])
        self._file = TranscriptFile(self._wanted)
        self._path = self._file.path
        self._started = self.clock.monotonic()
        self._write(
            Head(
                format=FORMAT,
                version=__version__,
                started=self.clock.timestamp(),
                platform=self.platform,
                roots=tuple(map(str, roots)),
                settings=settings_to_record(loaded),
                keyed=tuple(keys),
                problems=loaded.problems,
            )
        )
        self._write_files()
        request, answer = handshake
        self._write(_frame_in(self._passed(), request))
        self.said(answer)
        log(f"recording to {self._path}")
        return loaded

    def transcript(self) -> str | None:
        """Return all of it so far. Raises KodeError `Storage`."""
        try:
            return self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise not_read(str(self._path), error) from None

    def end(self) -> None:
        """Close the recording."""
        self._write(End(t=self._passed()))
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def hosts(self, make: Callable[[], Any]) -> Any:
        """Return the real ones, and note what they say."""
        open_host: OpenHost = make()
        return lambda config: RecordingHost(open_host(config), self)  # type: ignore[reportUnknownLambdaType]

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """Note each frame when it is taken."""
        del pump

        def popped() -> Any:
            item = pop()
            if item is not None:
                self._write_input(item)
            return item

        return popped

    def _write_input(self, item: Any) -> None:
        if not isinstance(item, bytes):
            self._write(InputEnded(t=self._passed()))
            return
        if any(mark in item for mark in _FILES_MAY_DIFFER):
            self._write_files()
        self._write_step(_frame_in(self._passed(), item))

    def said(self, body: bytes) -> None:
        """Note a message to the client. A recording that is said does not hold itself again."""
        if _EXPORT in body[:300]:
            frame = read_frame(body)
            frame["result"]["text"] = ""
            body = msgspec.json.encode(frame)
        self._write(FrameOut(t=self._passed(), frame=Raw(body)))

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int:
        """Note a request and return its number among those of the agent."""
        del body
        self._asks[agent] += 1
        ask = self._asks[agent]
        self._write(Asked(t=self._passed(), agent=agent, ask=ask, method=method, path=path))
        return ask

    def opened(self, agent: str, ask: int, status: int, headers: Mapping[str, str]) -> None:
        """Note the head of an answer."""
        told = {k: v for k, v in headers.items() if k.lower() not in _SECRET_HEADERS}
        self._write_step(
            Opened(t=self._passed(), agent=agent, ask=ask, status=status, headers=told)
        )

    def arrived(self, agent: str, ask: int, data: bytes) -> None:
        """Note bytes of an answer. What may be half a key waits for its other half."""
        if not data:
            self._release(agent, ask)
            self._write_step(Ended(t=self._passed(), agent=agent, ask=ask))
            return
        data = self._held.pop((agent, ask), b"") + data
        whole = self._mask.split(data)
        if whole < len(data):
            self._held[agent, ask] = data[whole:]
        self._write_bytes(agent, ask, data[:whole])

    def failed(self, agent: str, ask: int, error: KodeError) -> None:
        """Note that a request or an answer broke."""
        self._release(agent, ask)
        self._write_step(
            Failed(
                t=self._passed(),
                agent=agent,
                ask=ask,
                code=error.code,
                message=error.message,
                retryable=error.retryable,
            )
        )

    def left(self, agent: str, ask: int) -> None:
        """Note that the rest of an answer is not wanted."""
        self._release(agent, ask)
        self._write(Left(t=self._passed(), agent=agent, ask=ask))

    def _release(self, agent: str, ask: int) -> None:
        self._write_bytes(agent, ask, self._held.pop((agent, ask), b""))

    def _write_bytes(self, agent: str, ask: int, data: bytes) -> None:
        if data:
            self._write_step(_arrived(self._passed(), agent, ask, data))

    def _new_id(self, kind: IdKind) -> str:
        drawn = self._draw_id(kind)
        self._write(DrawnId(t=self._passed(), kind=kind, id=drawn))
        return drawn

    def _random(self) -> float:
        number = random.random()
        self._write(RandomNumber(t=self._passed(), value=number))
        return number

    def _timer_rang(self, seconds: float) -> None:
        """Note that a timer rings that was set for so many seconds ahead."""
        self._write_step(TimerRang(t=self._passed(), seconds=seconds))

    def _call_done(self, name: str, number: int) -> None:
        """Note that the `number`th call of that name is over."""
        self._write_step(CallDone(t=self._passed(), name=name, number=number))

    def _write_files(self) -> None:
        for line in self._snapshot.changes():
            self._write(msgspec.structs.replace(line, t=self._passed()))

    def _passed(self) -> float:
        return round(self.clock.monotonic() - self._started, 3) if self._file is not None else 0.0

    def _write_step(self, line: AnyInput) -> None:
        """Write an input, and how soon after the one before it came."""
        rounds = self._loop.rounds_since_input()
        self._write(msgspec.structs.replace(line, rounds=rounds))

    def _write(self, line: AnyLine) -> None:
        if self._file is None:
            return
        try:
            self._file.append(self._mask.line(encode_line(line)))
        except OSError as error:
            self._file = None
            self._log(f"the recording {self._path} ends here: {error.strerror}")


def _arrived(passed: float, agent: str, ask: int, data: bytes) -> Arrived:
    """Bytes of an answer as a line."""
    try:
        return Arrived(t=passed, agent=agent, ask=ask, text=data.decode())
    except UnicodeDecodeError:
        return Arrived(t=passed, agent=agent, ask=ask, base64=data)


def _frame_in(passed: float, body: bytes) -> FrameIn:
    """A frame as a line: one line, whatever the client's JSON looks like."""
    try:
        if b"\n" in body or b"\r" in body:
            body = msgspec.json.format(body, indent=-1)
        msgspec.json.decode(body, type=Raw)
        body.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return FrameIn(t=passed, text=body.decode("utf-8", "backslashreplace"))
    return FrameIn(t=passed, frame=Raw(body))
