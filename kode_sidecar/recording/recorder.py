"""Writes a transcript of this process while it serves."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from kode_sidecar import __version__
from kode_sidecar.boot.system import System
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import IdKind
from kode_sidecar.providers.endpoint import OpenHost
from kode_sidecar.recording.http_tape import RecordingHost
from kode_sidecar.recording.one_by_one import OneByOne
from kode_sidecar.recording.recorded_settings import keys_in, settings_to_record
from kode_sidecar.recording.secret_mask import SecretMask
from kode_sidecar.recording.snapshot import Snapshot
from kode_sidecar.recording.strands import read_frame
from kode_sidecar.recording.transcript import (
    FORMAT,
    AlarmRang,
    Arrived,
    Asked,
    Chance,
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
    TapeLine,
    TranscriptFile,
    WorkDone,
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

T = TypeVar("T")


class Recorder(System):
    """The system as it is, and a record of it: an `Outside`, a `StreamTap`, a `ModelRecord`.

    Nothing is written before `begin`. What cannot be written ends the recording and is told once
    by `log`; the process goes on.
    """

    def __init__(self, wanted: Path) -> None:
        super().__init__()
        self._wanted = wanted
        self._file: TranscriptFile | None = None
        self._path = wanted
        self._asks: Counter[str] = Counter()
        self._held: dict[tuple[str, int], bytes] = {}
        self._draw_id, self._draw_number = self.new_id, random.random
        self._call_later = self.alarm
        self.new_id, self.chance, self.alarm = self._new_id, self._chance, self._alarm
        self.work = self._work
        self._sleeps = count(1)
        self.sleep = self._sleep
        self._inputs = OneByOne()
        self.turn = self._inputs.turn

    def begin(
        self,
        loaded: LoadedSettings,
        roots: Sequence[Path],
        handshake: tuple[bytes, bytes],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """See `Outside`. Raises KodeError `Storage`."""
        self._log = log
        keys = keys_in(loaded)
        self._mask = SecretMask([*keys.values()])
        self._snapshot = Snapshot(roots, [*keys.values()])
        self._file = TranscriptFile(self._wanted)
        self._path = self._file.path
        self._started = self.now()
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
        """All of it so far. Raises KodeError `Storage`."""
        try:
            return self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise not_read(str(self._path), error) from None

    def end(self) -> None:
        """Nothing more is written."""
        self._write(End(t=self._passed()))
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def hosts(self, make: Callable[[], Any]) -> Any:
        """See `Outside`."""
        open_host: OpenHost = make()
        return lambda config: RecordingHost(open_host(config), self)  # type: ignore[reportUnknownLambdaType]

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """See `StreamTap`."""
        came: list[Any] = []
        may_enter = False

        def let_in() -> None:
            nonlocal may_enter
            may_enter = True
            pump()

        def popped() -> Any:
            nonlocal may_enter
            if not came and (item := pop()) is not None:
                came.append(item)
                self._inputs.enter(let_in)
            if not may_enter:
                return None
            may_enter = False
            item = came.pop()
            self._write_input(item)
            return item

        return popped

    def _write_input(self, item: Any) -> None:
        if not isinstance(item, bytes):
            self._write(InputEnded(t=self._passed()))
            return
        if any(mark in item for mark in _FILES_MAY_DIFFER):
            self._write_files()
        self._write(_frame_in(self._passed(), item))

    def said(self, body: bytes) -> None:
        """See `StreamTap`. A recording that is said does not hold itself again."""
        if _EXPORT in body[:300]:
            frame = read_frame(body)
            frame["result"]["text"] = ""
            body = msgspec.json.encode(frame)
        self._write(FrameOut(t=self._passed(), frame=Raw(body)))

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int:
        """See `ModelRecord`."""
        del body
        self._asks[agent] += 1
        ask = self._asks[agent]
        self._write(Asked(t=self._passed(), agent=agent, ask=ask, method=method, path=path))
        return ask

    def opened(self, agent: str, ask: int, status: int, headers: Mapping[str, str]) -> None:
        """See `ModelRecord`."""
        told = {k: v for k, v in headers.items() if k.lower() not in _SECRET_HEADERS}
        self._write(Opened(t=self._passed(), agent=agent, ask=ask, status=status, headers=told))

    def arrived(self, agent: str, ask: int, data: bytes) -> None:
        """See `ModelRecord`. What may be half a key waits for its other half."""
        if not data:
            self._release(agent, ask)
            self._write(Ended(t=self._passed(), agent=agent, ask=ask))
            return
        data = self._held.pop((agent, ask), b"") + data
        whole = self._mask.split(data)
        if whole < len(data):
            self._held[agent, ask] = data[whole:]
        self._write_bytes(agent, ask, data[:whole])

    def failed(self, agent: str, ask: int, error: KodeError) -> None:
        """See `ModelRecord`."""
        self._release(agent, ask)
        self._write(
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
        """See `ModelRecord`."""
        self._release(agent, ask)
        self._write(Left(t=self._passed(), agent=agent, ask=ask))

    def _release(self, agent: str, ask: int) -> None:
        self._write_bytes(agent, ask, self._held.pop((agent, ask), b""))

    def _write_bytes(self, agent: str, ask: int, data: bytes) -> None:
        if data:
            self._write(_arrived(self._passed(), agent, ask, data))

    def _new_id(self, kind: IdKind) -> str:
        drawn = self._draw_id(kind)
        self._write(DrawnId(t=self._passed(), kind=kind, id=drawn))
        return drawn

    def _chance(self) -> float:
        number = self._draw_number()
        self._write(Chance(t=self._passed(), value=number))
        return number

    def _alarm(self, name: str, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        unset = False

        def rung() -> None:
            if not unset:
                self._write(AlarmRang(t=self._passed(), name=name))
                ring()

        cancel = self._call_later(name, seconds, lambda: self._inputs.enter(rung))

        def take_back() -> None:
            nonlocal unset
            unset = True
            cancel()

        return take_back

    async def _sleep(self, seconds: float) -> None:
        await self._work(f"sleep {next(self._sleeps)}", asyncio.sleep(seconds))

    async def _work(self, name: str, done: Awaitable[T]) -> T:
        try:
            return await done
        finally:
            if not isinstance(sys.exception(), asyncio.CancelledError):
                await self.turn()
                self._write(WorkDone(t=self._passed(), name=name))

    def _write_files(self) -> None:
        for line in self._snapshot.changes():
            self._write(msgspec.structs.replace(line, t=self._passed()))

    def _passed(self) -> float:
        return round(self.now() - self._started, 3) if self._file is not None else 0.0

    def _write(self, line: TapeLine) -> None:
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
