"""`replay --serve --strict` forgives nothing, and nothing hangs it."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame
from tests.support.program import PROGRAM
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Case

pytestmark = pytest.mark.program
Json = dict[str, Any]
EDITS = Case("edits_decide_undo")


def recorded_client() -> list[Json]:
    """What the recorded client said, as it said it."""
    lines = (EDITS.folder / "tape.jsonl").read_text(encoding="utf-8").splitlines()
    return [line["frame"] for line in map(json.loads, lines) if line["lane"] == "in"]


class Player:
    """A client that says what it is given, each answer after its question."""

    def __init__(self) -> None:
        command = [*PROGRAM, "replay", str(EDITS.folder), "--serve", "--strict", "--patience", "4"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._decoder = FrameDecoder()
        self._received: set[object] = set()

    def play(self, frames: Sequence[Json]) -> tuple[int, str]:
        """Say all of it; the exit code, and what was told of it."""
        assert self._process.stdin is not None
        for frame in frames:
            if "method" not in frame:
                self._receive(frame["id"])
            try:
                self._process.stdin.write(encode_frame(json.dumps(frame).encode()))
                self._process.stdin.flush()
            except OSError:
                break
            if frame.get("method") in ("initialize", "shutdown"):
                self._receive(frame["id"])
        _, reported = self._process.communicate(timeout=HANG_SECONDS)
        return self._process.returncode, reported.decode()

    def _receive(self, wanted: object) -> None:
        assert self._process.stdout is not None
        while wanted not in self._received:
            data = self._process.stdout.read1(65536)  # type: ignore[attr-defined]
            if not data:
                return
            self._received |= {json.loads(body).get("id") for body in self._decoder.feed(data)}


def test_who_recorded_it_is_right() -> None:
    assert Player().play(recorded_client()) == (0, "")


def is_applied(frame: Json) -> bool:
    return frame.get("result") == {"applied": True}


def without_first_change(frames: list[Json]) -> list[Json]:
    at = next(i for i, frame in enumerate(frames) if is_applied(frame))
    changes = [i for i, f in enumerate(frames) if f.get("method") == "textDocument/didChange"]
    near = min(changes, key=lambda i: abs(i - at))
    return [frame for i, frame in enumerate(frames) if i != near]


def with_an_error(frames: list[Json]) -> list[Json]:
    frames = without_first_change(frames)
    error = {"code": -32603, "message": "no"}
    at = next(i for i, frame in enumerate(frames) if is_applied(frame))
    wrong = {"jsonrpc": "2.0", "id": frames[at]["id"], "error": error}
    return [*frames[:at], wrong, *frames[at + 1 :]]


def twice(frames: list[Json]) -> list[Json]:
    at = next(i for i, frame in enumerate(frames) if is_applied(frame))
    return [*frames[: at + 1], frames[at], *frames[at + 1 :]]


def silent(frames: list[Json]) -> list[Json]:
    return frames[: next(i for i, frame in enumerate(frames) if is_applied(frame))]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_first_change, "applied-shown"),
        (with_an_error, "was answered with an error"),
        (twice, "was answered twice"),
    ],
)
def test_the_first_fault_is_named(change: Any, says: str) -> None:
    code, reported = Player().play(change(recorded_client()))
    assert code == 1
    assert says in reported


def test_a_client_that_goes_silent_is_told_so() -> None:
    player = Player()
    frames = silent(recorded_client())
    process = player._process
    assert process.stdin is not None
    for frame in frames:
        process.stdin.write(encode_frame(json.dumps(frame).encode()))
    process.stdin.flush()
    assert process.wait(HANG_SECONDS) == 1
    assert process.stderr is not None
    assert "was silent for 4 s" in process.stderr.read().decode()
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


@pytest.mark.parametrize(
    "data", [b"Content-Length: x\r\n\r\n", b"\0" * 100_000, b"Content-Length: 3\r\n\r\n{}}"]
)
def test_no_input_hangs_it(data: bytes) -> None:
    command = [*PROGRAM, "replay", str(EDITS.folder), "--serve", "--strict", "--patience", "2"]
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
