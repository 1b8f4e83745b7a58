"""Writes a recording of this process while it serves."""

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from kode_sidecar import __version__
from kode_sidecar.core.kernel.contracts import IdKind
from kode_sidecar.core.settings import LoadedSettings
from kode_sidecar.core.text.secret_text import SecretMask
from kode_sidecar.devtools.recording.folders import FolderReader
from kode_sidecar.devtools.recording.grease import Grease
from kode_sidecar.devtools.recording.lanes import read_frame
from kode_sidecar.devtools.recording.model_hosts import AnswerLog, RecordingHost
from kode_sidecar.devtools.recording.programs import ProgramLog
from kode_sidecar.devtools.recording.recorded_lines import (
    FORMAT,
    AnyLine,
    CallDone,
    DrawnId,
    FrameIn,
    FrameOut,
    InputEnded,
    JournalGrown,
    ProgramFound,
    RandomNumber,
    RecordedInput,
    RecordingEnd,
    RecordingHead,
    TimerRang,
    encode_line,
)
from kode_sidecar.devtools.recording.recording_file import RecordingFile
from kode_sidecar.devtools.recording.recording_loop import RecordingLoop
from kode_sidecar.devtools.recording.redaction import (
    HiddenTexts,
    PieceMask,
    borrowed,
    keys_in,
    other_secrets,
    settings_to_record,
)
from kode_sidecar.devtools.recording.server_hosts import recording_access
from kode_sidecar.devtools.recording.state_files import StateReader
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.endpoint import OpenHost
from kode_sidecar.infrastructure.records.disk import not_read
from kode_sidecar.infrastructure.records.journal import JournalTail
from kode_sidecar.infrastructure.records.json_record import unsealed
from kode_sidecar.servers.boot.system import System
from kode_sidecar.servers.lsp import Pop

if TYPE_CHECKING:  # a room that only who has servers pays for
    from kode_sidecar.infrastructure.mcp.contracts import Access, Authorize

# Before these are handled the editor may have written files, which a turn then reads.
_FILES_MAY_DIFFER = (
    b'"textDocument/didSave"',
    b'"workspace/didChangeWatchedFiles"',
    b'"kode/turn/start"',
    b'"result"',
)
_EXPORT = b'.tape.jsonl","text":"'


class Recorder(System):
    """The `Environment` and the `FrameListener` of a process that is recorded.

    Nothing is written before `begin`. A failing disk ends the recording, which is logged once; the
    process goes on.
    """

    def __init__(self, wanted: Path, grease: Grease | None = None) -> None:
        super().__init__()
        self.remembers_hosts = False
        self.home = None
        self._grease = grease
        self._wanted = wanted
        self._file: RecordingFile | None = None
        self._path = wanted
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
        handshake: tuple[bytes, ...],
        log: Callable[[str], None],
    ) -> LoadedSettings:
        """Begin the recording, of a process with these settings. Raises KodeError `Storage`."""
        self._log = log
        keys = keys_in(loaded)
        self._mask = SecretMask([*loaded.keys, *keys.values(), *other_secrets(loaded)])
        self._pieces, self._hidden = PieceMask(self._mask), HiddenTexts()
        self._answers = AnswerLog(self._write_event, self._loop.enter)
        self._folders = FolderReader(roots, self._mask)
        self._kept = StateReader(loaded.settings.storage_root, roots)
        self._loop.programs = ProgramLog(self._write_event)
        self._file = RecordingFile(self._wanted)
        self._path = self._file.path
        self._started = self.clock.monotonic()
        settings = settings_to_record(loaded)
        *early, request, answer = handshake
        self._write(
            RecordingHead(
                format=FORMAT,
                version=__version__,
                started=self.clock.timestamp(),
                platform=self.platform,
                roots=tuple(map(str, roots)),
                settings=settings,
                keyed=tuple(keys),
                borrowed=tuple(borrowed(loaded)),
                defaults=tuple(name for name in settings if name not in loaded.sources),
                problems=loaded.problems,
                greased=self._grease is not None,
                early=tuple(str(read_frame(one).get("method", "")) for one in early),
            )
        )
        self._write_files()
        for line in (*self._kept.models(), *self._kept.servers()):
            self._write(line)
        self._write(_frame_in(request))
        self._note(answer)
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
        self._write(RecordingEnd())
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def hosts(self, make: Callable[[], Any]) -> Any:
        """Return the real ones, and note what they say."""
        open_host: OpenHost = make()
        return lambda config: RecordingHost(open_host(config), self._answers)  # type: ignore[reportUnknownLambdaType]

    def found(self, name: str, find: Callable[[], str]) -> str:
        """Look for a program, and note the name of its file, never its folder."""
        try:
            place = find()
        except KodeError as error:
            details = error.details
            self._write(
                ProgramFound(name=name, code=error.code, message=error.message, details=details)
            )
            raise
        self._write(ProgramFound(name=name, file=os.path.basename(os.path.realpath(place))))
        return place

    def server_access(self, name: str, authorize: "Authorize | None") -> "Access":
        """Return the real ones, and note what the server says; no token is noted."""
        return recording_access(name, authorize, self._answers)

    async def grown(self, tail: JournalTail) -> Sequence[bytes] | None:
        """Note what another process writes to a journal."""

        def note(task: asyncio.Future[Sequence[bytes] | None]) -> None:
            if task.cancelled() or task.exception():
                return
            texts = tuple(unsealed(line).decode("utf-8", "replace") for line in task.result() or ())
            self._write_event(JournalGrown(session_id=tail.session_id, lines=texts))

        return await self._loop.enter(tail.grown(), note)

    def incoming(self, pop: Pop, pump: Callable[[], None]) -> Pop:
        """Note each frame when it is taken: at the end of a round, as it is played."""

        def popped() -> Any:
            if not self._loop.ends_round:
                self._loop.call_soon_threadsafe(pump)
                return None
            item = pop()
            if item is not None:
                self._write_input(item)
            return item

        return popped

    def _write_input(self, item: Any) -> None:
        if not isinstance(item, bytes):
            self._write(InputEnded())
            return
        if any(mark in item for mark in _FILES_MAY_DIFFER):
            self._write_files()
        for line in self._kept.asked_for(item):
            self._write(line)
        self._write_event(_frame_in(self._hidden.without(item)))

    def said(self, body: bytes) -> Sequence[bytes]:
        """Note a message to the client. An answer that is the recording itself is left empty."""
        bodies = (body,) if self._grease is None else self._grease.said(body)
        for one in bodies:
            self._note(one)
        return bodies

    def _note(self, body: bytes) -> None:
        if _EXPORT in body[:300]:
            frame = read_frame(body)
            frame["result"]["text"] = ""
            body = msgspec.json.encode(frame)
        self._write(FrameOut(frame=Raw(body)))

    def _new_id(self, kind: IdKind) -> str:
        drawn = self._draw_id(kind)
        self._write(DrawnId(kind=kind, id=drawn))
        if kind == "session":
            self._kept.write_here(drawn)
        return drawn

    def _random(self) -> float:
        number = random.random()
        self._write(RandomNumber(value=number))
        return number

    def _timer_rang(self, seconds: float) -> None:
        """Note that a timer rings, set for so many seconds ahead."""
        self._write_event(TimerRang(seconds=seconds))

    def _call_done(self, name: str, number: int) -> None:
        """Note that the `number`th call of that name returned."""
        self._write_event(CallDone(name=name, number=number))

    def _write_files(self) -> None:
        for line in self._folders.changes():
            self._write(line)

    def _write_event(self, line: AnyLine) -> None:
        """Write a line, and for an input how soon after the one before it came."""
        if isinstance(line, RecordedInput):
            line = msgspec.structs.replace(line, rounds=self._loop.rounds_since_input())
        self._write(line)

    def _write(self, line: AnyLine) -> None:
        if self._file is None:
            return
        if not isinstance(line, RecordingHead):
            line = msgspec.structs.replace(line, t=round(self.clock.monotonic() - self._started, 3))
        try:
            text = encode_line(line).decode("latin-1")
            stars = self._pieces.stars(text, self._file.size)
            self._file.append(self._mask.stars(text, json_line=True).encode("latin-1"))
            self._file.put_stars(stars)
        except OSError as error:
            self._file = None
            self._log(f"the recording {self._path} ends here: {error.strerror}")


def _frame_in(body: bytes) -> FrameIn:
    """Return a frame as one line, even if the client's JSON has several."""
    try:
        if b"\n" in body or b"\r" in body:
            body = msgspec.json.format(body, indent=-1)
        msgspec.json.decode(body, type=Raw)
        body.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return FrameIn(text=body.decode("utf-8", "backslashreplace"))
    return FrameIn(frame=Raw(body))
