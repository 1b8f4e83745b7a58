"""`kode-sidecar replay`: play a recording to the real process and name the first difference."""

import asyncio
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame
from kode_sidecar.core.text.shown_text import visible
from kode_sidecar.devtools.recording.comparison import (
    Difference,
    ModelRequests,
    different_requests,
    read_requests,
    without_prompts,
)
from kode_sidecar.devtools.recording.folders import FolderCopies, FolderNames, in_texts, keep_inside
from kode_sidecar.devtools.recording.isolation import player_environment
from kode_sidecar.devtools.recording.matching import Matcher
from kode_sidecar.devtools.recording.offline_server import serve_offline
from kode_sidecar.devtools.recording.recorded_lines import (
    FrameIn,
    FrameOut,
    InputEnded,
    RecordedFile,
    StateFile,
    StateLock,
)
from kode_sidecar.devtools.recording.recording_file import SessionRecording, read_recording
from kode_sidecar.devtools.recording.state_files import StateCopies
from kode_sidecar.errors import KodeError
from kode_sidecar.terminal.client.sidecar_process import DEFAULT_COMMAND, SidecarProcess

TAPE_FILE = "tape.jsonl"
REQUESTS_FILE = "requests.json"
SAME, DIFFERENT, UNKNOWN = 0, 1, 2
_END_SECONDS = 10.0


@dataclass(frozen=True)
class Replayed:
    """The outcome of one run: its first difference, the model's requests, and the frames said."""

    difference: Difference | None
    requests: ModelRequests
    said: Sequence[bytes]


@dataclass(frozen=True)
class ReplayOptions:
    """What to play: a recording, or a folder with `tape.jsonl` and perhaps `requests.json` in it.

    With `serve` this process is the recorded server, for the tests of a client. `against` is the
    command line of another build, `patience` the seconds that it may be silent.
    """

    file: Path
    serve: bool = False
    against: str | None = None
    patience: float = 30.0


def replay(options: ReplayOptions) -> int:
    """Return the exit code: 0 the same, 1 a difference, 2 the recording cannot be played."""
    tape = options.file / TAPE_FILE if options.file.is_dir() else options.file
    try:
        recording = read_recording(tape)
        if recording.head.greased and not options.serve:
            text = f"{tape} was made with --grease: it is for `grade` and for `replay --serve`."
            raise KodeError("Storage", text)
        if options.serve:
            return serve_offline(recording)
        program = _program(options.against)
        replayed = asyncio.run(play(tape, recording, program, options.patience))
    except KodeError as error:
        sys.stderr.write(f"kode-sidecar replay: {visible(error.message)}\n")
        return UNKNOWN
    difference = replayed.difference or _asked_differently(tape, replayed)
    sys.stdout.write(_report(tape, recording, difference))
    return SAME if difference is None else DIFFERENT


def _program(against: str | None) -> Sequence[str]:
    if against is None:
        return DEFAULT_COMMAND[:-1]
    return shlex.split(against, posix=os.name != "nt")


def _asked_differently(tape: Path, replayed: Replayed) -> Difference | None:
    golden = tape.with_name(REQUESTS_FILE)
    if not golden.exists():
        return None
    try:
        was = json.loads(golden.read_text(encoding="utf-8"))
    except ValueError as error:
        raise KodeError("Storage", f"{golden} is no JSON: {error}") from None
    return different_requests(was, without_prompts(replayed.requests))


def _report(tape: Path, recording: SessionRecording, difference: Difference | None) -> str:
    if difference is not None:
        return f"{tape}: not as recorded. The first difference:\n{difference}\n"
    frames_in = sum(isinstance(line, FrameIn) for line in recording.lines)
    frames_out = sum(isinstance(line, FrameOut) for line in recording.lines)
    cut = "" if recording.whole else ", up to where it was cut off"
    return f"{tape}: as recorded, {frames_in} frames in, {frames_out} out{cut}\n"


async def play(
    file: Path, recording: SessionRecording, program: Sequence[str], patience: float
) -> Replayed:
    """Run `program serve --tape file` and send it what the recorded client sent.

    `patience` is how many seconds the program may be silent while something is due. Raises
    KodeError `Storage`, and `ToolFailed` when the program cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="kode-replay-") as folder:
        return await _ReplayRun(file, recording, program, patience, Path(folder).resolve()).run()


class _ReplayRun:
    """One run of a recording: the client's frames go in, what comes out is matched."""

    def __init__(
        self,
        file: Path,
        recording: SessionRecording,
        program: Sequence[str],
        patience: float,
        top: Path,
    ) -> None:
        self._recording = recording
        self._patience = patience
        self._requests = top / "requests.jsonl"
        tape = ("serve", "--tape", str(file.absolute()), "--requests", str(self._requests))
        self._command = (*program, *tape)
        self._home = top / "home"
        self._folders = FolderCopies(recording.head, top / "roots")
        roots = [str(root) for root in self._folders.roots]
        self._names = FolderNames(recording.head, recording.initialize_params(), roots)
        self._state_folder = StateCopies(self._home, self._names.here)
        self._matcher = Matcher(recording, self._names)
        self._said: list[bytes] = []
        self._received = asyncio.Event()
        self._over = False

    async def run(self) -> Replayed:
        try:
            process = await SidecarProcess.spawn(
                self._command, env=player_environment(self._home), cwd=self._home.parent
            )
        except OSError as error:
            text = f"{self._command[0]} cannot be started: {error.strerror}"
            raise KodeError("ToolFailed", text) from None
        reading = asyncio.create_task(self._read(process))
        try:
            difference = await self._send_frames(process)
            if difference is None:
                await process.end(_END_SECONDS)
                await asyncio.wait([reading], timeout=_END_SECONDS)
                difference = self._matcher.difference
        finally:
            await process.end(0.0)
            reading.cancel()
            self._state_folder.close()
        requests = read_requests(self._requests, self._names)
        return Replayed(difference, requests, self._said)

    async def _send_frames(self, process: SidecarProcess) -> Difference | None:
        frame = 0
        files: list[RecordedFile | StateFile | StateLock] = []
        for line in self._recording.lines:
            if isinstance(line, RecordedFile | StateFile | StateLock):
                files.append(line)
            elif isinstance(line, FrameIn | InputEnded):
                # What met a busy process was sent before: the process itself holds it until then.
                was_waiting = isinstance(line, FrameIn) and line.rounds is not None and not files
                if not was_waiting and (missing := await self._await_due(frame, process)):
                    return missing
                while files:  # not before everything arrived that saw them as they were
                    self._lay_out(files.pop(0))
                if isinstance(line, FrameIn):
                    self._send(process, line)
                else:
                    process.close_stdin()
                frame += 1
        return await self._await_due(frame, process)

    def _lay_out(self, line: RecordedFile | StateFile | StateLock) -> None:
        if isinstance(line, RecordedFile):
            self._folders.write(line)
        else:
            self._state_folder.write(line)

    async def _await_due(self, frame: int, process: SidecarProcess) -> Difference | None:
        """Wait until all is said that came before a frame; return what is missing or differs."""
        while True:
            self._received.clear()
            if self._matcher.difference is not None:
                return self._matcher.difference
            if self._matcher.is_due(frame):
                return None
            try:
                if self._over:
                    raise TimeoutError
                async with asyncio.timeout(self._patience):
                    await self._received.wait()
            except TimeoutError:
                missing = self._matcher.missing(frame)
                assert missing is not None
                return missing._replace(now=f"{missing.now}; {self._why(process)}")

    def _why(self, process: SidecarProcess) -> str:
        if self._over:
            tail = process.stderr_tail.strip()[-2000:]
            return f"the process has ended (exit code {process.exit_code})\n{tail}"
        return f"the process was silent for {self._patience:g} s (--patience)"

    def _send(self, process: SidecarProcess, line: FrameIn) -> None:
        if line.text is not None:
            body = line.text.encode()
        else:
            frame = self._names.here(msgspec.json.decode(line.frame))
            frame = in_texts(frame, self._matcher.ids.live)
            keep_inside(frame, self._home.parent)
            if frame.get("method") == "initialize":
                frame["params"]["processId"] = os.getpid()
            body = json.dumps(frame, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._matcher.sent(body)
        process.write(encode_frame(body))

    async def _read(self, process: SidecarProcess) -> None:
        decoder = FrameDecoder()
        try:
            while data := await process.read():
                for body in decoder.feed(data):
                    self._said.append(body)
                    self._matcher.received(body)
                self._received.set()
        finally:
            self._over = True
            self._received.set()
