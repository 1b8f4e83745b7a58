"""A recording as a conversation: the sender of each frame, and the answers to each request.

Pure: it uses only the frames, in the order in which the process handled them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from kode_sidecar.core.text.text_edit import Edit, apply_edits
from kode_sidecar.core.text.text_lines import LineIndex, PositionEncoding
from kode_sidecar.devtools.recording import (
    FilesLeftOut,
    FrameIn,
    FrameOut,
    RecordedFile,
    SessionRecording,
    as_object,
    read_frame,
)

Json = dict[str, Any]
_END_OF_LINE = 32_767  # and above: editors say so and mean the end
_CHANGES = ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose")


class TalkFrame(NamedTuple):
    """One message: `place` is its index, `line` that in the recording, `at` its time in seconds."""

    place: int
    line: int
    at: float
    by_client: bool
    message: Json

    @property
    def method(self) -> str:
        """The method; empty for an answer."""
        return str(self.message.get("method", ""))

    @property
    def params(self) -> Json:
        return as_object(self.message.get("params"))

    @property
    def is_request(self) -> bool:
        return bool(self.method) and "id" in self.message


@dataclass
class RequestExchange:
    """A request, and every answer to its id."""

    request: TalkFrame
    answers: list[TalkFrame] = field(default_factory=list[TalkFrame])
    cancelled: TalkFrame | None = None

    @property
    def result(self) -> object:
        """Result of the first answer; None without an answer or for an error."""
        return self.answers[0].message.get("result") if self.answers else None

    @property
    def error_code(self) -> int | None:
        """Error code of the first answer, or None."""
        error = as_object(self.answers[0].message.get("error")) if self.answers else {}
        code = error.get("code")
        return code if isinstance(code, int) else None


class TalkText(NamedTuple):
    """The text of a document from a frame on; `text` is None once it is closed.

    `wrong` says what was impossible about the frame, `expected` what would have been right.
    """

    frame: TalkFrame
    version: object
    text: str | None
    wrong: str = ""
    expected: str = ""


class RpcConversation:
    """Messages in order, and requests with their answers, of JSON-RPC of any kind."""

    def __init__(self, frames: Iterable[TalkFrame]) -> None:
        self.frames = tuple(frames)
        self.asked: list[RequestExchange] = []
        """The client's requests, in order."""
        self.questions: list[RequestExchange] = []
        """The server's requests, in order."""
        self.stray: list[TalkFrame] = []
        """Answers without a request."""
        of_client: dict[object, RequestExchange] = {}
        of_server: dict[object, RequestExchange] = {}
        for frame in self.frames:
            if frame.is_request:
                exchange = RequestExchange(frame)
                (self.asked if frame.by_client else self.questions).append(exchange)
                (of_client if frame.by_client else of_server)[_id(frame)] = exchange
            elif "id" in frame.message:
                exchange = (of_server if frame.by_client else of_client).get(_id(frame))
                if exchange is not None:
                    exchange.answers.append(frame)
                else:
                    self.stray.append(frame)
            elif frame.method == "$/cancelRequest" and not frame.by_client:
                exchange = of_server.get(frame.params.get("id"))
                if exchange is not None:
                    exchange.cancelled = frame


class Talk(RpcConversation):
    """The contents of a recording: frames, requests with their answers, document texts."""

    def __init__(self, recording: SessionRecording) -> None:
        super().__init__(_frames(recording))
        self.whole = recording.whole
        self.early = recording.head.early
        """What the client said before `initialize`."""
        lines = list(enumerate(recording.lines, 1))
        self.files = {one.path for _, one in lines if isinstance(one, RecordedFile)}
        """The files that were ever seen in the open folders."""
        self.files_left_out = [at for at, one in lines if isinstance(one, FilesLeftOut)]
        """The lines that count files of which nothing else is recorded."""
        self.documents: dict[str, list[TalkText]] = {}
        self.client: Json = {}
        answer: Json = {}
        if self.asked and self.asked[0].request.method == "initialize":
            self.client = self.asked[0].request.params
            answer = as_object(as_object(self.asked[0].result).get("capabilities"))
        self.encoding: PositionEncoding = cast(
            PositionEncoding, answer.get("positionEncoding", "utf-16")
        )
        self._read_documents()

    @property
    def kode(self) -> Json:
        """The client's `initializationOptions.kode`."""
        return as_object(as_object(self.client.get("initializationOptions")).get("kode"))

    def events(self) -> Iterator[tuple[TalkFrame, Json]]:
        """Yield the events sent by `kode/event`, one by one."""
        for frame in self.frames:
            if frame.method == "kode/event" and not frame.by_client:
                for event in frame.params.get("events", ()):
                    yield frame, event

    def _read_documents(self) -> None:
        for frame in self.frames:
            if frame.by_client and frame.method in _CHANGES:
                document = as_object(frame.params.get("textDocument"))
                uri = str(document.get("uri"))
                texts = self.documents.setdefault(uri, [])
                before = texts[-1] if texts else None
                texts.append(_next_text(frame, document, before, self.encoding))


def _id(frame: TalkFrame) -> object:
    """Return a message's id, as text if it is none that a table can hold."""
    number = frame.message["id"]
    return number if isinstance(number, str | int | float | None) else repr(number)


def _frames(recording: SessionRecording) -> Iterator[TalkFrame]:
    place = 0
    for number, line in enumerate(recording.lines, 1):
        if isinstance(line, FrameIn | FrameOut):
            is_text = isinstance(line, FrameIn) and line.text is not None
            message = {} if is_text else read_frame(bytes(line.frame))
            yield TalkFrame(place, number, line.t, isinstance(line, FrameIn), message)
            place += 1


def _next_text(
    frame: TalkFrame, document: Json, before: TalkText | None, encoding: PositionEncoding
) -> TalkText:
    is_open = before is not None and before.text is not None
    version = document.get("version")
    if frame.method.endswith("didOpen"):
        numbered = isinstance(version, int) and not isinstance(version, bool)
        wrong = "it is open already" if is_open else "" if numbered else "it has no version"
        return TalkText(frame, version, str(document.get("text", "")), wrong)
    if before is None or before.text is None:
        return TalkText(frame, version, None, "it is not open")
    if frame.method.endswith("didClose"):
        return TalkText(frame, version, None)
    text, wrong = before.text, ""
    for change in frame.params.get("contentChanges", ()):
        try:
            if "range" in change:
                wrong = wrong or _beyond(text, change["range"], encoding)
                text = with_edits(text, [change], encoding)
            else:
                text = change["text"]
        except (ValueError, KeyError, TypeError) as error:
            wrong = f"a change cannot be made: {error}"
    older = isinstance(version, int) and isinstance(before.version, int)
    if not wrong and not (older and cast(int, version) > cast(int, before.version)):
        wrong = f"version {version} follows version {before.version}"
        return TalkText(frame, version, text, wrong, f"a version above {before.version}")
    return TalkText(frame, version, text, wrong)


def _beyond(text: str, places: Json, encoding: PositionEncoding) -> str:
    """Say which position of a range is beyond the text; empty if none is.

    The line after the last one means the end, and so does a very large character in a line.
    """
    index = LineIndex(text, encoding)
    for place in (places["start"], places["end"]):
        line, character = place["line"], place["character"]
        if line > index.last_line + 1:
            return f"line {line} is beyond the text, whose last line is {index.last_line}"
        width = index.width(line)
        if width < character < _END_OF_LINE:
            return f"character {character} is beyond line {line}, which has {width} units"
    return ""


def with_edits(text: str, edits: Sequence[Json], encoding: PositionEncoding) -> str:
    """Return a text after LSP edits or changes. Raises ValueError for an impossible range."""
    index = LineIndex(text, encoding)

    def offset(place: Json) -> int:
        line, character = place["line"], place["character"]
        if line < 0 or character < 0:
            raise ValueError("a position is negative")
        return index.offset(line, character)

    made = [
        Edit(
            offset(edit["range"]["start"]),
            offset(edit["range"]["end"]),
            str(edit.get("newText", edit.get("text", ""))),
        )
        for edit in edits
    ]
    if any(edit.end < edit.start for edit in made):
        raise ValueError("a range ends before it starts")
    return apply_edits(text, sorted(made, key=lambda edit: (edit.start, edit.end)))
