"""`kode-sidecar replay`."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kode_sidecar.client.sidecar_process import DEFAULT_COMMAND
from kode_sidecar.errors import KodeError
from kode_sidecar.recording.comparison import Difference
from kode_sidecar.recording.model_requests import different_requests, without_prompts
from kode_sidecar.recording.offline_server import serve_offline
from kode_sidecar.recording.player import Replayed, play
from kode_sidecar.recording.transcript import FrameIn, FrameOut, Transcript, read_transcript

TAPE_FILE = "tape.jsonl"
REQUESTS_FILE = "requests.json"
SAME, DIFFERENT, UNKNOWN = 0, 1, 2


@dataclass(frozen=True)
class ReplayOptions:
    """`file` is a recording or a folder with `tape.jsonl`, and perhaps `requests.json`, in it.

    `serve`: be the server of the recording. `against` is another build's command line.
    """

    file: Path
    serve: bool = False
    against: str | None = None
    patience: float = 30.0


def replay(options: ReplayOptions, out: TextIO | None = None) -> int:
    """The exit code: 0 the same, 1 a difference, 2 it could not be found out."""
    screen = sys.stdout if out is None else out
    tape = options.file / TAPE_FILE if options.file.is_dir() else options.file
    try:
        transcript = read_transcript(tape)
        if options.serve:
            return serve_offline(transcript)
        program = _program(options.against)
        replayed = asyncio.run(play(tape, transcript, program, options.patience))
    except KodeError as error:
        sys.stderr.write(f"kode-sidecar replay: {error.message}\n")
        return UNKNOWN
    difference = replayed.difference or _asked_differently(tape, replayed)
    screen.write(_report(tape, transcript, difference))
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


def _report(tape: Path, transcript: Transcript, difference: Difference | None) -> str:
    if difference is not None:
        return f"{tape}: not as recorded. The first difference:\n{difference}\n"
    frames_in = sum(isinstance(line, FrameIn) for line in transcript.lines)
    frames_out = sum(isinstance(line, FrameOut) for line in transcript.lines)
    cut = "" if transcript.whole else ", up to where it was cut off"
    return f"{tape}: as recorded, {frames_in} frames in, {frames_out} out{cut}\n"
