"""Plays a transcript against the real process: the editor's part, and a listener."""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.client.sidecar_process import SidecarProcess
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.base_protocol import FrameDecoder, encode_frame
from kode_sidecar.recording.comparison import Difference
from kode_sidecar.recording.model_requests import ModelRequests, read_requests
from kode_sidecar.recording.places import Places, in_texts
from kode_sidecar.recording.score import Score
from kode_sidecar.recording.strands import as_object, read_frame
from kode_sidecar.recording.transcript import FileState, FrameIn, InputEnded, Transcript
from kode_sidecar.recording.workspace_copy import WorkspaceCopy

_END_SECONDS = 10.0
# What would take the place of recorded settings, or is nobody else's.
_FOREIGN = ("KODE_", "KIMI_", "MOONSHOT_", "AGENT_LOG_", "ANTHROPIC_", "OPENAI_")


@dataclass(frozen=True)
class Replayed:
    """`difference` is the first one, None when there is none. `said` are the frames of this run.

    `requests` is what the model was asked.
    """

    difference: Difference | None
    requests: ModelRequests
    said: Sequence[bytes]


async def play(
    file: Path, transcript: Transcript, program: Sequence[str], patience: float
) -> Replayed:
    """Run `program serve --tape file` through its recording.

    `patience`: seconds it may be silent when something is due. Raises KodeError `Storage` and
    `ToolFailed` (the program cannot be started).
    """
    with tempfile.TemporaryDirectory(prefix="kode-replay-") as folder:
        return await _Play(file, transcript, program, patience, Path(folder).resolve()).run()


class _Play:
    def __init__(
        self,
        file: Path,
        transcript: Transcript,
        program: Sequence[str],
        patience: float,
        top: Path,
    ) -> None:
        self._transcript = transcript
        self._patience = patience
        self._requests = top / "requests.jsonl"
        tape = ("serve", "--tape", str(file.absolute()), "--requests", str(self._requests))
        self._command = (*program, *tape)
        self._home = top / "home"
        self._copy = WorkspaceCopy(transcript.head, top / "roots")
        roots = [str(root) for root in self._copy.roots]
        self._places = Places(transcript.head, _initialize(transcript), roots)
        self._score = Score(transcript, self._places)
        self._said: list[bytes] = []
        self._heard = asyncio.Event()
        self._over = False

    async def run(self) -> Replayed:
        try:
            process = await SidecarProcess.spawn(
                self._command, env=_environment(self._home), cwd=self._home.parent
            )
        except OSError as error:
            text = f"{self._command[0]} cannot be started: {error.strerror}"
            raise KodeError("ToolFailed", text) from None
        reading = asyncio.create_task(self._read(process))
        difference = await self._perform(process)
        if difference is None:
            await process.end(_END_SECONDS)
            await asyncio.wait([reading], timeout=_END_SECONDS)
            difference = self._score.difference
        await process.end(0.0)
        reading.cancel()
        requests = read_requests(self._requests, self._places)
        return Replayed(difference, requests, self._said)

    async def _perform(self, process: SidecarProcess) -> Difference | None:
        frame = 0
        files: list[FileState] = []
        for line in self._transcript.lines:
            if isinstance(line, FileState):
                files.append(line)
            elif isinstance(line, FrameIn | InputEnded):
                if missing := await self._await_due(frame, process):
                    return missing
                while files:  # not before all is heard that saw them as they were
                    self._copy.put(files.pop(0))
                if isinstance(line, FrameIn):
                    self._send(process, line)
                else:
                    process.close_stdin()
                frame += 1
        return await self._await_due(frame, process)

    async def _await_due(self, frame: int, process: SidecarProcess) -> Difference | None:
        """Until all is said that comes before a frame; a difference instead."""
        while True:
            self._heard.clear()
            if self._score.difference is not None:
                return self._score.difference
            if self._score.is_due(frame):
                return None
            try:
                if self._over:
                    raise TimeoutError
                async with asyncio.timeout(self._patience):
                    await self._heard.wait()
            except TimeoutError:
                missing = self._score.missing(frame)
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
            frame = self._places.here(msgspec.json.decode(line.frame))
            frame = in_texts(frame, self._score.ids.live)
            if frame.get("method") == "initialize":
                frame["params"]["processId"] = os.getpid()
            body = json.dumps(frame, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._score.sent(body)
        process.write(encode_frame(body))

    async def _read(self, process: SidecarProcess) -> None:
        decoder = FrameDecoder()
        try:
            while data := await process.read():
                for body in decoder.feed(data):
                    self._said.append(body)
                    self._score.heard(body)
                self._heard.set()
        finally:
            self._over = True
            self._heard.set()


def _initialize(transcript: Transcript) -> Mapping[str, Any]:
    """The params of the recorded `initialize`. Raises KodeError `Storage`."""
    first = next((line for line in transcript.lines if isinstance(line, FrameIn)), None)
    frame = {} if first is None else read_frame(bytes(first.frame))
    if frame.get("method") != "initialize":
        text = "The recording ends before the editor said `initialize`: there is nothing to play."
        raise KodeError("Storage", text)
    return as_object(frame.get("params"))


def _environment(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not _is_foreign(name.upper())}
    return {**own, "KODE_HOME": str(home)}


def _is_foreign(name: str) -> bool:
    return name.startswith(_FOREIGN) and not name.startswith("KODE_TEST_")
