"""The file format of a recording: a line for each thing that came in, went out, or was random.

The lines are JSON, told apart by `lane`, in the order in which the event loop met them. A process
that is killed leaves whole lines and perhaps a cut one; one that ended in order leaves an `end`.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_made
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS

FORMAT = 2
_MOST_NAMES = 1_000
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Line(Struct, frozen=True, kw_only=True, tag_field="lane", rename="camel", omit_defaults=True):
    """Any line; `t` is seconds since the recording began."""

    t: float = 0.0


class Head(Line, frozen=True, kw_only=True, tag="head"):
    """The first line: the settings in force without keys, and the open folders as `roots`.

    `keyed` names the variables that held a key, `borrowed` those that MCP servers asked for and
    that were set, `defaults` the settings that nobody had set;
    `started` is the time of day, RFC 3339. In one that
    is `greased` stands what no server says: a client can be graded by it or meet it again, and no
    server plays it.
    """

    format: int
    version: str
    started: str
    platform: str
    roots: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    keyed: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    greased: bool = False


class Input(Line, frozen=True, kw_only=True):
    """Something from outside the process, written when it took effect.

    `rounds` counts the rounds of the event loop since the input before it. It is None when the loop
    was idle in between.
    """

    rounds: int | None = None


class FrameIn(Input, frozen=True, kw_only=True, tag="in"):
    """A message of the client, written when it is handled; `text` holds what is no JSON."""

    frame: Raw = Raw(b"null")
    text: str | None = None


class InputEnded(Line, frozen=True, kw_only=True, tag="in.end"):
    """The client closed its end."""


class FrameOut(Line, frozen=True, kw_only=True, tag="out"):
    """A message to the client, before the outbox merges deltas."""

    frame: Raw


class ModelInput(Input, frozen=True, kw_only=True):
    """Part of the answer to the `ask`th request of one `agent`, counted from 1."""

    agent: str
    ask: int


class JournalGrown(Input, frozen=True, kw_only=True, tag="journal.grown"):
    """Another process wrote these lines to the journal of a session that is followed here.

    None: it has deleted the session.
    """

    session_id: str
    lines: tuple[str, ...]


class Asked(Line, frozen=True, kw_only=True, tag="model.asked"):
    """A request goes out. Its body is not recorded: it follows from the other lines."""

    agent: str
    ask: int
    method: str
    path: str


class Opened(ModelInput, frozen=True, kw_only=True, tag="model.opened"):
    """The head of the answer."""

    status: int
    headers: dict[str, str] = {}


class Arrived(ModelInput, frozen=True, kw_only=True, tag="model.bytes"):
    """The bytes of one read; in `base64` when they are not UTF-8 by themselves."""

    text: str | None = None
    base64: bytes | None = None


class Ended(ModelInput, frozen=True, kw_only=True, tag="model.ended"):
    """The answer's last byte was read."""


class Failed(ModelInput, frozen=True, kw_only=True, tag="model.failed"):
    """The request or the answer failed with this KodeError."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] | None = None


class Left(Line, frozen=True, kw_only=True, tag="model.left"):
    """The process gave the rest of the answer up."""

    agent: str
    ask: int


class DrawnId(Line, frozen=True, kw_only=True, tag="id"):
    """A new id."""

    kind: str
    id: str


class RandomNumber(Line, frozen=True, kw_only=True, tag="random"):
    """A random number in [0, 1)."""

    value: float


class TimerRang(Input, frozen=True, kw_only=True, tag="timer"):
    """A timer rang that was set for so many seconds ahead."""

    seconds: float


class CallDone(Input, frozen=True, kw_only=True, tag="call"):
    """A call in a thread returned, or a search by ripgrep ended.

    It is the `number`th of that `name`, counted from 1 as they began. A call that was cancelled has
    no line.
    """

    name: str
    number: int


class ProgramInput(Input, frozen=True, kw_only=True, tag="program"):
    """What the `number`th program of a name did, counted from 1 as they began.

    It `started` or `failed` to (`text` says why); `said` bytes on descriptor `fd`; `closed` that,
    after its last bytes; `exited` with a `code`. The input of a program is not recorded.
    """

    program: str
    number: int
    event: Literal["started", "failed", "said", "closed", "exited"]
    fd: int = 1
    text: str | None = None
    base64: bytes | None = None
    code: int | None = None


class ProgramFound(Line, frozen=True, kw_only=True, tag="program.found"):
    """The name of the file that a program's name stood for, or the KodeError of looking for it."""

    name: str
    file: str = ""
    code: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


class FileState(Line, frozen=True, kw_only=True, tag="file"):
    """A file of the workspace as it is from here on; `path` is below the root, with slashes.

    With neither `text` nor `base64` the file was removed.
    """

    root: int
    path: str
    text: str | None = None
    base64: bytes | None = None


class KeptFile(Line, frozen=True, kw_only=True, tag="kept"):
    """A file of the state folder as it is from here on; `path` is below that, with slashes.

    Records in it have no checksums. Without `text` it was removed, a folder with all that is in it.
    """

    path: str
    text: str | None = None


class KeptLock(Line, frozen=True, kw_only=True, tag="kept.lock"):
    """Whether another process writes to a session, from here on."""

    session_id: str
    held: bool


class FilesLeftOut(Line, frozen=True, kw_only=True, tag="files.leftOut"):
    """How many files of a root are not in the recording: too large, too many, or secret."""

    root: int
    count: int


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The process ended as it should."""


AnyLine = (
    Head
    | FrameIn
    | Opened
    | Arrived
    | Ended
    | Failed
    | JournalGrown
    | TimerRang
    | CallDone
    | ProgramInput
    | ProgramFound
    | InputEnded
    | FrameOut
    | Asked
    | Left
    | DrawnId
    | RandomNumber
    | FileState
    | KeptFile
    | KeptLock
    | FilesLeftOut
    | End
)
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


@dataclass(frozen=True)
class Transcript:
    """A recording as read; `whole` is False when the process was killed before its end."""

    head: Head
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
            isinstance(line, Asked) and (line.agent, line.ask) == (agent, ask)
            for line in self.lines
        )


def read_transcript(path: Path) -> Transcript:
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
    return Transcript(head, lines, isinstance(lines[-1], End))


def _head(path: Path, raw: bytes) -> Head:
    try:
        head = _decoder.decode(raw)
    except DECODE_ERRORS:
        head = None
    if not isinstance(head, Head):
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
        return _decoder.decode(raw)
    except DECODE_ERRORS as error:
        text = f"{path} is damaged: line {number} cannot be read ({error}); the lines before it can"
        raise KodeError("Storage", text) from None


def _foreign(path: Path, why: str) -> KodeError:
    text = f"{path} is no recording of `kode-sidecar serve --record`, or of a newer one: {why}"
    return KodeError("Storage", text)


def with_data(data: bytes) -> dict[str, Any]:
    """Return the members of a line that hold these bytes: `text` where they are UTF-8."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": data}


def data_of(line: Arrived | FileState | ProgramInput) -> bytes:
    """Return the bytes that a line holds."""
    return line.base64 if line.base64 is not None else (line.text or "").encode()


def encode_line(line: AnyLine) -> bytes:
    """Return one line without its line feed."""
    return msgspec.json.encode(line)


class TranscriptFile:
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
