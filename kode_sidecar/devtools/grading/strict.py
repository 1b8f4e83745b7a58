"""`replay --serve --strict`: serves a recording to a plugin's tests and checks the session.

The session is the client's own, so the rules of `grade` apply to its messages.
"""

import time
from pathlib import Path

from msgspec import Raw

from kode_sidecar.devtools.grading.document_rules import Fault
from kode_sidecar.devtools.grading.rules import verdicts
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import (
    FrameIn,
    FrameOut,
    SessionRecording,
    read_frame,
    read_recording,
)
from kode_sidecar.devtools.recording.offline_server import report, serve_offline
from kode_sidecar.devtools.recording.replay import DIFFERENT, TAPE_FILE, UNKNOWN
from kode_sidecar.errors import KodeError


def serve_strict(file: Path, patience: float) -> int:
    """Serve a recording and return the exit code; on 1, stderr names the first fault."""
    try:
        recorded = read_recording(file / TAPE_FILE if file.is_dir() else file)
    except KodeError as error:
        report(error.message)
        return UNKNOWN
    said: list[FrameIn | FrameOut] = []
    began = time.monotonic()

    def note(by_client: bool, body: bytes) -> None:
        at = time.monotonic() - began
        if not by_client:
            said.append(FrameOut(t=at, frame=Raw(body)))
        elif read_frame(body):
            said.append(FrameIn(t=at, frame=Raw(body)))
        else:
            said.append(FrameIn(t=at, text=body.decode("utf-8", "backslashreplace")))

    code = serve_offline(recorded, patience=patience, note=note)
    live = Talk(SessionRecording(recorded.head, said, whole=True))
    faults = [(fault, verdict.rule) for verdict in verdicts(live) for fault in verdict.faults] + [
        (fault, "answered-as-recorded") for fault in _new_errors(Talk(recorded), live)
    ]
    if faults:
        fault, rule = min(faults)
        wanted = f"; expected: {fault.expected}" if fault.expected else ""
        report(f"{rule}: message {fault.line} of this session: {fault.text}{wanted}")
    return DIFFERENT if faults else code


def _new_errors(recorded: Talk, live: Talk) -> list[Fault]:
    """Return the answers that are an error in this session but not in the recording."""
    fine = {
        exchange.request.message["id"]
        for exchange in recorded.questions
        if exchange.answers and exchange.error_code is None
    }
    return [
        Fault(exchange.answers[0].line, f"{exchange.request.method} was answered with an error")
        for exchange in live.questions
        if exchange.error_code is not None and exchange.request.message["id"] in fine
    ]
