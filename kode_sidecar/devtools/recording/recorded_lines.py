"""The file format of a recording: a line for each thing that came in, went out, or was random.

The lines are JSON, distinguished by `lane`, in the order in which the event loop met them. A
process that is killed leaves whole lines and perhaps a cut one; one that ended in order leaves an
`end`.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

FORMAT = 2


class RecordedLine(
    Struct, frozen=True, kw_only=True, tag_field="lane", rename="camel", omit_defaults=True
):
    """Any line; `t` is seconds since the recording began."""

    t: float = 0.0


class RecordingHead(RecordedLine, frozen=True, kw_only=True, tag="head"):
    """The first line: the settings in force without keys, and the open folders as `roots`.

    `keyed` names the variables that held a key, `borrowed` those that MCP servers asked for and
    that were set, `defaults` the settings that nobody had set;
    `started` is the time of day, RFC 3339. In one that
    is `greased` stands what no server says: a client can be graded by it or meet it again, and no
    server plays it. `early` are the methods of what the client said before `initialize`.
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
    early: tuple[str, ...] = ()


class RecordedInput(RecordedLine, frozen=True, kw_only=True):
    """Something from outside the process, written when it took effect.

    `rounds` counts the rounds of the event loop since the input before it. It is None when the loop
    was idle in between.
    """

    rounds: int | None = None


class FrameIn(RecordedInput, frozen=True, kw_only=True, tag="in"):
    """A message of the client, written when it is handled; `text` holds what is no JSON."""

    frame: Raw = Raw(b"null")
    text: str | None = None


class InputEnded(RecordedLine, frozen=True, kw_only=True, tag="in.end"):
    """The client closed its end."""


class FrameOut(RecordedLine, frozen=True, kw_only=True, tag="out"):
    """A message to the client, before the outbox merges deltas."""

    frame: Raw


class ModelInput(RecordedInput, frozen=True, kw_only=True):
    """Part of the answer to the `ask`th request of one `agent`, counted from 1."""

    agent: str
    ask: int


class JournalGrown(RecordedInput, frozen=True, kw_only=True, tag="journal.grown"):
    """Another process wrote these lines to the journal of a session that is followed here.

    None: it has deleted the session.
    """

    session_id: str
    lines: tuple[str, ...]


class ModelAsked(RecordedLine, frozen=True, kw_only=True, tag="model.asked"):
    """A request goes out. Its body is not recorded: it follows from the other lines."""

    agent: str
    ask: int
    method: str
    path: str


class AnswerOpened(ModelInput, frozen=True, kw_only=True, tag="model.opened"):
    """The head of the answer."""

    status: int
    headers: dict[str, str] = {}


class AnswerBytes(ModelInput, frozen=True, kw_only=True, tag="model.bytes"):
    """The bytes of one read; in `base64` when they are not UTF-8 by themselves.

    The last `held` bytes of the read may be half a key, and so begin the next line of this answer
    that holds bytes. `read_recording` gives each read its own bytes.
    """

    text: str | None = None
    base64: bytes | None = None
    held: int = 0


class AnswerEnded(ModelInput, frozen=True, kw_only=True, tag="model.ended"):
    """The answer's last byte was read."""


class AnswerFailed(ModelInput, frozen=True, kw_only=True, tag="model.failed"):
    """The request or the answer failed with this KodeError."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] | None = None


class AnswerLeft(RecordedLine, frozen=True, kw_only=True, tag="model.left"):
    """The process needs no more of the answer. Here are the bytes that were held to the end."""

    agent: str
    ask: int
    text: str | None = None
    base64: bytes | None = None


class DrawnId(RecordedLine, frozen=True, kw_only=True, tag="id"):
    """A new id."""

    kind: str
    id: str


class RandomNumber(RecordedLine, frozen=True, kw_only=True, tag="random"):
    """A random number in [0, 1)."""

    value: float


class TimerRang(RecordedInput, frozen=True, kw_only=True, tag="timer"):
    """A timer rang that was set for so many seconds ahead."""

    seconds: float


class CallDone(RecordedInput, frozen=True, kw_only=True, tag="call"):
    """A call in a thread returned, or a search by ripgrep ended.

    It is the `number`th of that `name`, counted from 1 as they began. A call that was cancelled has
    no line.
    """

    name: str
    number: int


class ProgramInput(RecordedInput, frozen=True, kw_only=True, tag="program"):
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


class ProgramFound(RecordedLine, frozen=True, kw_only=True, tag="program.found"):
    """The name of the file that a program's name stood for, or the KodeError of looking for it."""

    name: str
    file: str = ""
    code: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


class RecordedFile(RecordedLine, frozen=True, kw_only=True, tag="file"):
    """A file of the workspace as it is from here on; `path` is below the root, with slashes.

    With neither `text` nor `base64` the file was removed.
    """

    root: int
    path: str
    text: str | None = None
    base64: bytes | None = None


class StateFile(RecordedLine, frozen=True, kw_only=True, tag="kept"):
    """A file of the state folder as it is from here on; `path` is below that, with slashes.

    Records in it have no checksums. Without `text` it was removed, a folder with all that is in it.
    """

    path: str
    text: str | None = None


class StateLock(RecordedLine, frozen=True, kw_only=True, tag="kept.lock"):
    """Whether another process writes to a session, from here on."""

    session_id: str
    held: bool


class FilesLeftOut(RecordedLine, frozen=True, kw_only=True, tag="files.leftOut"):
    """How many files of a root are not in the recording: too large, too many, or secret."""

    root: int
    count: int


class RecordingEnd(RecordedLine, frozen=True, kw_only=True, tag="end"):
    """The process ended as it should."""


AnyLine = (
    RecordingHead
    | FrameIn
    | AnswerOpened
    | AnswerBytes
    | AnswerEnded
    | AnswerFailed
    | JournalGrown
    | TimerRang
    | CallDone
    | ProgramInput
    | ProgramFound
    | InputEnded
    | FrameOut
    | ModelAsked
    | AnswerLeft
    | DrawnId
    | RandomNumber
    | RecordedFile
    | StateFile
    | StateLock
    | FilesLeftOut
    | RecordingEnd
)
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def with_data(data: bytes) -> dict[str, Any]:
    """Return the members of a line that hold these bytes: `text` where they are UTF-8."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": data}


def data_of(line: AnswerBytes | AnswerLeft | RecordedFile | ProgramInput) -> bytes:
    """Return the bytes that a line holds."""
    return line.base64 if line.base64 is not None else (line.text or "").encode()


def encode_line(line: AnyLine) -> bytes:
    """Return one line without its line feed."""
    return msgspec.json.encode(line)


def decode_line(line: bytes) -> AnyLine:
    """Return what one line says. Raises one of `DECODE_ERRORS`."""
    return _decoder.decode(line)
