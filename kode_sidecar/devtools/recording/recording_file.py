"""A recording as a file: read as a whole, and written line by line by one process."""

import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.devtools.recording.recorded_lines import (
    FORMAT,
    AnswerBytes,
    AnswerLeft,
    AnyLine,
    FrameIn,
    ModelAsked,
    RecordingEnd,
    RecordingHead,
    data_of,
    decode_line,
    with_data,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_made
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS

_MOST_NAMES = 1_000
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class SessionRecording:
    """A recording as read; `whole` is False when the process was killed before its end."""

    head: RecordingHead
    lines: Sequence[AnyLine]
    whole: bool

    def initialize_params(self) -> dict[str, Any]:
        """Return the params of the recorded `initialize`. Raises KodeError `Storage`."""
        first = next((line for line in self.lines if isinstance(line, FrameIn)), None)
        frame = {} if first is None else read_frame(bytes(first.frame))
        if frame.get("method") != "initialize":
            text = (
                "The recording ends before the editor said `initialize`: there is nothing to play."
            )
            raise KodeError("Storage", text)
        return as_object(frame.get("params"))

    def was_asked(self, agent: str, ask: int) -> bool:
        """Return whether an agent sent that many requests to its model."""
        return any(
            isinstance(line, ModelAsked) and (line.agent, line.ask) == (agent, ask)
            for line in self.lines
        )


def read_recording(path: Path) -> SessionRecording:
    """Return the recording, up to the last whole line.

    Raises KodeError `Storage` for a file that cannot be read, is damaged, or is no recording.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KodeError("Storage", f"not readable: {path}: {error.strerror}") from None
    raw_lines = data.split(b"\n")[:-1]
    if not raw_lines:
        raise _foreign(path, "it has no whole line")
    head = _head(path, raw_lines[0])
    lines = [head, *(_decoded(path, number, raw) for number, raw in enumerate(raw_lines[1:], 2))]
    _divide_by_reads(lines)
    return SessionRecording(head, lines, isinstance(lines[-1], RecordingEnd))


def _divide_by_reads(lines: list[AnyLine]) -> None:
    """Give each read of an answer the bytes that it held back: another line brought them."""
    waiting: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        if not isinstance(line, AnswerBytes | AnswerLeft):
            continue
        reads, data = waiting[line.agent, line.ask], data_of(line)
        if data:
            for earlier in reads:
                held = lines[earlier]
                assert isinstance(held, AnswerBytes)
                is_last = isinstance(line, AnswerLeft) and earlier == reads[-1]
                size = len(data) if is_last else held.held
                lines[earlier] = replace(held, **_members(data_of(held) + data[:size]))
                data = data[size:]
            reads.clear()
            lines[index] = replace(line, **_members(data))
        if isinstance(line, AnswerBytes) and line.held:
            reads.append(index)


def _members(data: bytes) -> dict[str, Any]:
    return {"text": None, "base64": None, **with_data(data)}


def _head(path: Path, raw: bytes) -> RecordingHead:
    try:
        head = decode_line(raw)
    except DECODE_ERRORS:
        head = None
    if not isinstance(head, RecordingHead):
        raise _foreign(path, "its first line is no `head`")
    if head.format > FORMAT:
        raise _foreign(path, f"it has format {head.format}, this program reads {FORMAT}")
    if head.format < FORMAT:
        text = (
            f"{path} has the recording format {head.format}, this program reads {FORMAT} only: "
            "record anew with `kode-sidecar serve --record FILE`."
        )
        raise KodeError("Storage", text)
    return head


def _decoded(path: Path, number: int, raw: bytes) -> AnyLine:
    try:
        return decode_line(raw)
    except DECODE_ERRORS as error:
        text = f"{path} is damaged: line {number} cannot be read ({error}); the lines before it can"
        raise KodeError("Storage", text) from None


def _foreign(path: Path, why: str) -> KodeError:
    text = f"{path} is no recording of `kode-sidecar serve --record`, or of a newer one: {why}"
    return KodeError("Storage", text)


class RecordingFile:
    """A new file for one recording, readable by its owner only. No existing file is overwritten.

    If `wanted` exists the name is `name-2.ext` and so on, because an editor restarts a process with
    the same command line. Raises KodeError `Storage`.
    """

    def __init__(self, wanted: Path) -> None:
        names = (wanted.with_stem(f"{wanted.stem}-{count}") for count in range(2, _MOST_NAMES))
        for path in (wanted, *names):
            try:
                self._fd = os.open(path, _FLAGS, 0o600)
            except FileExistsError:
                continue
            except OSError as error:
                raise not_made(path, error) from None
            self.path = path
            break
        else:
            raise KodeError("Storage", f"{wanted} and many more recordings are there: remove some")
        self._lock = threading.Lock()
        self.size = 0

    def append(self, line: bytes) -> None:
        """Write a line; may be called from any thread. Raises OSError."""
        data = line + b"\n"
        with self._lock:
            self.size += len(data)
            while data:
                data = data[os.write(self._fd, data) :]

    def put_stars(self, places: Sequence[int]) -> None:
        """Write a star over the byte at each place. Raises OSError."""
        with self._lock:
            for place in places:
                os.lseek(self._fd, place, os.SEEK_SET)
                os.write(self._fd, b"*")
            os.lseek(self._fd, self.size, os.SEEK_SET)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
