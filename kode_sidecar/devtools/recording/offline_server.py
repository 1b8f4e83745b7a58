"""`replay --serve`: a server for the tests of plugins that says what the recorded server said.

The client's requests and answers are matched with those of the recording, in order and by method.
Each is followed by what the recorded server said after its match. Notifications are not matched.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame
from kode_sidecar.devtools.recording.comparison import Ids, first_difference, shown
from kode_sidecar.devtools.recording.folders import FolderNames, folder_uris
from kode_sidecar.devtools.recording.isolation import isolate
from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.devtools.recording.recorded_lines import FrameIn, FrameOut
from kode_sidecar.devtools.recording.recording_file import SessionRecording
from kode_sidecar.errors import INVALID_REQUEST
from kode_sidecar.servers.boot.stdio_handshake import guard_stdio

Json = dict[str, Any]
_READ_BYTES = 64 * 1024


@dataclass
class _RecordedExchange:
    """A request or answer of the recorded client, and what the server said until the next one."""

    frame: Json
    said: list[Json] = field(default_factory=list[Json])

    @property
    def name(self) -> str:
        """The method of the request, or which answer it is."""
        if "method" in self.frame:
            return str(self.frame["method"])
        return f"the answer to request {self.frame.get('id')!r}"


class OfflineServer:
    """Answers each message of the client as the recorded server did. Sans-IO.

    `report` gets a line for every request that the recording does not expect, or expects with other
    params. `ended` is True after `exit`.
    """

    def __init__(
        self,
        recording: SessionRecording,
        say: Callable[[Json], None],
        report: Callable[[str], None],
    ) -> None:
        self._recording = recording
        self._say = say
        self._report = report
        self._exchanges = _exchanges(recording)
        self._ids: dict[object, object] = {}
        self._answers: dict[object, Json] = {}
        self._waiting: list[Json] = []
        self._names: FolderNames | None = None
        self.unexpected = 0
        self.ended = False

    @property
    def left(self) -> Sequence[str]:
        """The requests and answers of the recorded client that this one has not sent."""
        return [
            exchange.name
            for exchange in self._exchanges
            if exchange.name not in ("shutdown", "initialize")
        ]

    def receive(self, body: bytes) -> None:
        """Take a message of the client and say what follows it."""
        frame = read_frame(body)
        method = frame.get("method")
        if method == "exit":
            self.ended = True
        if "id" not in frame:
            return
        if method == "initialize":
            recorded, here = self._recording.initialize_params(), as_object(frame.get("params"))
            self._names = FolderNames(self._recording.head, recorded, folder_uris(here))
        if method is None:
            self._answers[frame["id"]] = frame
        else:
            self._waiting.append(frame)
        self._go_on()

    def _go_on(self) -> None:
        """Say what can be said: a request may arrive before an answer that is due first."""
        while self._exchanges or self._waiting:
            due = self._exchanges[0].frame if self._exchanges else {}
            if due and "method" not in due:
                answer = self._answers.pop(due.get("id"), None)
                if answer is None:
                    return
                self._play(self._exchanges.pop(0), answer)
                continue
            if not self._waiting:
                return
            frame = self._waiting.pop(0)
            if due.get("method") == frame["method"]:
                self._play(self._exchanges.pop(0), frame)
            elif frame["method"] == "shutdown":
                self._say({"jsonrpc": "2.0", "id": frame["id"], "result": None})
            else:
                self._refuse(frame)

    def _play(self, exchange: _RecordedExchange, frame: Json) -> None:
        if "method" in frame:
            self._ids[exchange.frame["id"]] = frame["id"]
        if str(frame.get("method", "")).startswith("kode/"):
            self._compare(exchange.frame, frame)
        for said in exchange.said:
            here = said if self._names is None else self._names.here(said)
            if "method" not in here:
                here = {**here, "id": self._ids.get(here.get("id"), here.get("id"))}
            self._say(here)

    def _compare(self, recorded: Json, frame: Json) -> None:
        """Report params that differ; the client's tests decide whether it matters."""
        was, now = recorded.get("params"), frame.get("params")
        if self._names is not None:
            was = self._names.here(was)
        if found := first_difference(was, now, Ids(())):
            at, one, other = found
            self._report(f"{frame['method']}: {at} was {shown(one)}, now {shown(other)}")

    def _refuse(self, frame: Json) -> None:
        expected = (
            f"{self._exchanges[0].name} comes next" if self._exchanges else "it is at its end"
        )
        text = f"The recording does not go on with {frame['method']}: {expected}."
        self.unexpected += 1
        self._report(text)
        error = {"code": INVALID_REQUEST, "message": text}
        self._say({"jsonrpc": "2.0", "id": frame["id"], "error": error})


def _exchanges(recording: SessionRecording) -> list[_RecordedExchange]:
    """Return the recorded requests and answers with what followed each of them."""
    exchanges: list[_RecordedExchange] = []
    for line in recording.lines:
        if isinstance(line, FrameIn):
            frame = read_frame(bytes(line.frame))
            if "id" in frame:
                exchanges.append(_RecordedExchange(frame))
        elif isinstance(line, FrameOut) and exchanges:
            exchanges[-1].said.append(read_frame(bytes(line.frame)))
    return exchanges


def serve_offline(
    recording: SessionRecording,
    *,
    patience: float | None = None,
    note: Callable[[bool, bytes], None] = lambda _by_client, _body: None,
) -> int:
    """Serve on stdin and stdout until the client goes, and return the exit code.

    It is 1 when the client sent what the recording does not expect, or not all of it, or nothing
    for `patience` seconds; else 0. `note` gets every message, and whether the client said it.
    """
    isolate()
    fd_in, fd_out = guard_stdio()

    def say(message: Json) -> None:
        body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        note(False, body)
        data = encode_frame(body)
        while data:
            data = data[os.write(fd_out, data) :]

    server = OfflineServer(recording, say, report)
    decoder = FrameDecoder()
    for data in _arrivals(fd_in, patience):
        for body in decoder.feed(data):
            note(True, body)
            server.receive(body)
        if server.ended or decoder.failure is not None:
            break
    if decoder.failure is not None:
        report(f"the client's frames cannot be told apart: {decoder.failure}")
        return 1
    if server.left:
        report(f"the client never said {server.left[0]}, and {len(server.left) - 1} more after it")
    return 1 if server.unexpected or server.left else 0


def report(line: str) -> None:
    """Say something to the author of the client."""
    sys.stderr.write(f"kode-sidecar replay: {line}\n")
    sys.stderr.flush()


def _arrivals(fd: int, patience: float | None) -> Iterator[bytes]:
    """Yield what is read until the end, or until nothing came for `patience` seconds.

    A thread reads: pipes cannot be waited for everywhere.
    """
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while data := os.read(fd, _READ_BYTES):
            arrived.put(data)
        arrived.put(b"")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            data = arrived.get(timeout=patience)
        except queue.Empty:
            report(f"the client was silent for {patience:g} s (--patience)")
            return
        if not data:
            return
        yield data
