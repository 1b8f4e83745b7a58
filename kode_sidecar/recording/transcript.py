"""The recording of one process: a line for all that came in, went out, or was up to chance.

Lines of JSON, told apart by their `lane`, in the order in which the event loop met them. A process
that is killed leaves every whole line; a recording that ended well ends with the lane `end`.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.records.disk import not_read, not_saved
from kode_sidecar.records.json_record import DECODE_ERRORS

FORMAT = 1
_MOST_NAMES = 1_000
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Line(Struct, frozen=True, kw_only=True, tag_field="lane", rename="camel", omit_defaults=True):
    """`t`: seconds since the recording began."""

    t: float = 0.0


class Head(Line, frozen=True, kw_only=True, tag="head"):
    """The first line. `settings` are those in force, without keys; `keyed` names the variables
    that held one. `roots` are the open folders, `started` the time of day, RFC 3339.
    """

    format: int
    version: str
    started: str
    platform: str
    roots: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    keyed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class FrameIn(Line, frozen=True, kw_only=True, tag="in"):
    """The client's message when the process took it up; `text` is what was no JSON."""

    frame: Raw = Raw(b"null")
    text: str | None = None


class InputEnded(Line, frozen=True, kw_only=True, tag="in.end"):
    """The client closed its end."""


class FrameOut(Line, frozen=True, kw_only=True, tag="out"):
    """A message to the client when it was said; deltas are merged only later."""

    frame: Raw


class ModelLine(Line, frozen=True, kw_only=True):
    """Of the `ask`th request of one `agent`, counted from 1: answers are raced, lanes are not."""

    agent: str
    ask: int


class Asked(ModelLine, frozen=True, kw_only=True, tag="model.asked"):
    """The request goes out. What it says is not here: it follows from the rest."""

    method: str
    path: str


class Opened(ModelLine, frozen=True, kw_only=True, tag="model.opened"):
    """The head of the answer."""

    status: int
    headers: dict[str, str] = {}


class Arrived(ModelLine, frozen=True, kw_only=True, tag="model.bytes"):
    """What one read brought; `base64` where it is no text by itself."""

    text: str | None = None
    base64: bytes | None = None

    @property
    def data(self) -> bytes:
        return self.base64 if self.base64 is not None else (self.text or "").encode()


class Ended(ModelLine, frozen=True, kw_only=True, tag="model.ended"):
    """The answer's last byte was read."""


class Failed(ModelLine, frozen=True, kw_only=True, tag="model.failed"):
    """The request or the answer broke; `code` and the rest are those of the error raised."""

    code: str
    message: str
    retryable: bool = False


class Left(ModelLine, frozen=True, kw_only=True, tag="model.left"):
    """The process wanted no more of it."""


class DrawnId(Line, frozen=True, kw_only=True, tag="id"):
    """A new id."""

    kind: str
    id: str


class Chance(Line, frozen=True, kw_only=True, tag="chance"):
    """A random number."""

    value: float


class AlarmRang(Line, frozen=True, kw_only=True, tag="alarm"):
    """A deadline passed."""

    name: str


class WorkDone(Line, frozen=True, kw_only=True, tag="work"):
    """What is done beside the event loop was done: a save, a tool. Given up, it has no line."""

    name: str


class FileState(Line, frozen=True, kw_only=True, tag="file"):
    """A file of the workspace as it is from here on; `path` below the root, with slashes.

    Neither `text` nor `base64`: it is gone.
    """

    root: int
    path: str
    text: str | None = None
    base64: bytes | None = None


class FilesLeftOut(Line, frozen=True, kw_only=True, tag="files.leftOut"):
    """How many files of a root are not in the recording: too large, too many, or secret."""

    root: int
    count: int


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The process ended as it should."""


TapeLine = (
    Head
    | FrameIn
    | InputEnded
    | FrameOut
    | Asked
    | Opened
    | Arrived
    | Ended
    | Failed
    | Left
    | DrawnId
    | Chance
    | AlarmRang
    | WorkDone
    | FileState
    | FilesLeftOut
    | End
)
_decoder: msgspec.json.Decoder[TapeLine] = msgspec.json.Decoder(TapeLine)


@dataclass(frozen=True)
class Transcript:
    """A recording as read. `whole`: it has its end, and nothing was cut off."""

    head: Head
    lines: Sequence[TapeLine]
    whole: bool

    def was_asked(self, agent: str, ask: int) -> bool:
        """Did an agent ask its model so often?"""
        return any(
            isinstance(line, Asked) and (line.agent, line.ask) == (agent, ask)
            for line in self.lines
        )


def read_transcript(path: Path) -> Transcript:
    """The recording, up to the last whole line.

    Raises KodeError `Storage` for a file that cannot be read, is damaged, or is no recording.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise not_read(str(path), error) from None
    raw_lines = data.split(b"\n")[:-1]
    lines = [_decoded(path, number, raw) for number, raw in enumerate(raw_lines, 1)]
    if not lines:
        raise _foreign(path, "it has no whole line")
    head = lines[0]
    if not isinstance(head, Head):
        raise _foreign(path, "its first line is no `head`")
    if head.format > FORMAT:
        raise _foreign(path, f"it has format {head.format}, this program reads up to {FORMAT}")
    return Transcript(head, lines, isinstance(lines[-1], End))


def _decoded(path: Path, number: int, raw: bytes) -> TapeLine:
    try:
        return _decoder.decode(raw)
    except DECODE_ERRORS as error:
        if number == 1:
            raise _foreign(path, "its first line is no `head`") from None
        text = f"{path} is damaged: line {number} cannot be read ({error}); the lines before it can"
        raise KodeError("Storage", text) from None


def _foreign(path: Path, why: str) -> KodeError:
    text = f"{path} is no recording of `kode-sidecar serve --record`, or of a newer one: {why}"
    return KodeError("Storage", text)


def encode_line(line: TapeLine) -> bytes:
    """One line, without its end."""
    return msgspec.json.encode(line)


class TranscriptFile:
    """A new file for one recording, readable by its owner only; never one that is there already.

    With `wanted` taken, it is `name-2.ext` and so on: an editor starts a process again with the
    same words. Raises KodeError `Storage`.
    """

    def __init__(self, wanted: Path) -> None:
        names = (wanted.with_stem(f"{wanted.stem}-{count}") for count in range(2, _MOST_NAMES))
        for path in (wanted, *names):
            try:
                self._fd = os.open(path, _FLAGS, 0o600)
            except FileExistsError:
                continue
            except OSError as error:
                raise not_saved(str(path), error) from None
            self.path = path
            break
        else:
            raise KodeError("Storage", f"{wanted} and many more recordings are there: remove some")
        self._lock = threading.Lock()

    def append(self, line: bytes) -> None:
        """Hand a line to the system; from any thread. Raises OSError."""
        data = line + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        """Release it."""
        os.close(self._fd)
