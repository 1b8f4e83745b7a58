"""A server that is a recording: a plugin's tests talk to it, and nothing runs behind it.

Requests and answers of the client are matched with those of the recording, in order and by their
method; what the recorded server said after each is said after its match. Notifications of the
client are free.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kode_sidecar.boot.front_door import guard_stdio
from kode_sidecar.errors import INVALID_REQUEST
from kode_sidecar.protocol.base_protocol import FrameDecoder, encode_frame
from kode_sidecar.recording.comparison import Ids, first_difference, shown
from kode_sidecar.recording.places import Places, folder_uris
from kode_sidecar.recording.strands import as_object, read_frame
from kode_sidecar.recording.transcript import FrameIn, FrameOut, Transcript

Json = dict[str, Any]
_READ_BYTES = 64 * 1024


@dataclass
class _Cue:
    """What the client says, and what it hears after it."""

    frame: Json
    said: list[Json] = field(default_factory=list[Json])

    @property
    def name(self) -> str:
        """What is waited for, in words."""
        if "method" in self.frame:
            return str(self.frame["method"])
        return f"the answer to request {self.frame.get('id')!r}"


class OfflineServer:
    """Give it what the client says; it says what was recorded. Sans-IO.

    `tell` gets a line for every request that the recording does not expect, or expects with other
    params. `ended` is set by `exit`.
    """

    def __init__(
        self, transcript: Transcript, say: Callable[[Json], None], tell: Callable[[str], None]
    ) -> None:
        self._transcript = transcript
        self._say = say
        self._tell = tell
        self._cues = _cues(transcript)
        self._ids: dict[object, object] = {}
        self._answers: dict[object, Json] = {}
        self._waiting: list[Json] = []
        self._places: Places | None = None
        self.unexpected = 0
        self.ended = False

    @property
    def left(self) -> Sequence[str]:
        """What the recorded client also said, and this one did not."""
        return [cue.name for cue in self._cues if cue.name not in ("shutdown", "initialize")]

    def hear(self, body: bytes) -> None:
        """A message of the client."""
        frame = read_frame(body)
        method = frame.get("method")
        if method == "exit":
            self.ended = True
        if "id" not in frame:
            return
        if method == "initialize":
            self._places = _places(self._transcript, as_object(frame.get("params")))
        if method is None:
            self._answers[frame["id"]] = frame
        else:
            self._waiting.append(frame)
        self._go_on()

    def _go_on(self) -> None:
        """Play what can be played: a request may come before an answer that is due first."""
        while self._cues or self._waiting:
            due = self._cues[0].frame if self._cues else {}
            if due and "method" not in due:
                answer = self._answers.pop(due.get("id"), None)
                if answer is None:
                    return
                self._play(self._cues.pop(0), answer)
                continue
            if not self._waiting:
                return
            frame = self._waiting.pop(0)
            if due.get("method") == frame["method"]:
                self._play(self._cues.pop(0), frame)
            elif frame["method"] == "shutdown":
                self._say({"jsonrpc": "2.0", "id": frame["id"], "result": None})
            else:
                self._refuse(frame)

    def _play(self, cue: _Cue, frame: Json) -> None:
        if "method" in frame:
            self._ids[cue.frame["id"]] = frame["id"]
        if str(frame.get("method", "")).startswith("kode/"):
            self._compare(cue.frame, frame)
        for said in cue.said:
            here = said if self._places is None else self._places.here(said)
            if "method" not in here:
                here = {**here, "id": self._ids.get(here.get("id"), here.get("id"))}
            self._say(here)

    def _compare(self, recorded: Json, frame: Json) -> None:
        """Params that differ are told; a client's tests decide whether it matters."""
        was, now = recorded.get("params"), frame.get("params")
        if self._places is not None:
            was = self._places.here(was)
        if found := first_difference(was, now, Ids(())):
            at, one, other = found
            self._tell(f"{frame['method']}: {at} was {shown(one)}, now {shown(other)}")

    def _refuse(self, frame: Json) -> None:
        expected = f"{self._cues[0].name} comes next" if self._cues else "it is at its end"
        text = f"The recording does not go on with {frame['method']}: {expected}."
        self.unexpected += 1
        self._tell(text)
        error = {"code": INVALID_REQUEST, "message": text}
        self._say({"jsonrpc": "2.0", "id": frame["id"], "error": error})


def _cues(transcript: Transcript) -> list[_Cue]:
    """What the client said that has an id, and what was said until the next of it."""
    cues: list[_Cue] = []
    for line in transcript.lines:
        if isinstance(line, FrameIn):
            frame = read_frame(bytes(line.frame))
            if "id" in frame:
                cues.append(_Cue(frame))
        elif isinstance(line, FrameOut) and cues:
            cues[-1].said.append(read_frame(bytes(line.frame)))
    return cues


def _places(transcript: Transcript, params: Json) -> Places:
    first = next(line for line in transcript.lines if isinstance(line, FrameIn))
    recorded = as_object(read_frame(bytes(first.frame)).get("params"))
    return Places(transcript.head, recorded, folder_uris(params))


def serve_offline(transcript: Transcript) -> int:
    """Serve on stdin and stdout until the client goes; the exit code.

    0, or 1 when it asked for what the recording does not hold, or not for all of it.
    """
    fd_in, fd_out = guard_stdio()

    def say(message: Json) -> None:
        data = encode_frame(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))
        while data:
            data = data[os.write(fd_out, data) :]

    def tell(line: str) -> None:
        sys.stderr.write(f"kode-sidecar replay: {line}\n")
        sys.stderr.flush()

    server = OfflineServer(transcript, say, tell)
    decoder = FrameDecoder()
    while not server.ended and (data := os.read(fd_in, _READ_BYTES)):
        for body in decoder.feed(data):
            server.hear(body)
    if server.left:
        tell(f"the client never said {server.left[0]}, and {len(server.left) - 1} more after it")
    return 1 if server.unexpected or server.left else 0
