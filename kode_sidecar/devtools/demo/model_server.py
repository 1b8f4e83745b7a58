"""A model host on the loopback that plays a recording over real HTTP and SSE.

It implements Moonshot's chat API: `POST /v1/chat/completions` (streamed, chunked),
`GET /v1/models`, its error bodies, and 404 for a model id it does not serve. A recording is the
raw bytes of a model's answers, in order, with their delays.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import responses as reason_phrases
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

_EVENT_END = b"\n\n"
_JSON = "application/json; charset=utf-8"
_MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Piece:
    """Bytes that are sent at once, `delay_ms` after the piece before.

    With `hold` the server first waits until `ModelServer.release(hold)`.
    """

    data: bytes
    delay_ms: float = 0
    hold: str = ""


@dataclass(frozen=True)
class RecordedResponse:
    """One HTTP answer. `broken`: the connection is cut after the last piece."""

    pieces: tuple[Piece, ...]
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    broken: bool = False

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(piece.data for piece in self.pieces)


@dataclass(frozen=True)
class Recording:
    """Answers in the order of the requests; `models` are the ids that the host serves."""

    responses: tuple[RecordedResponse, ...]
    models: tuple[str, ...] = ("kimi-k2.6",)


def load_recording(folder: Path, delay_ms: float) -> Recording:
    """Return the recording in `folder`: one file of SSE per answer, in name order.

    Each event is one piece. Raises OSError, and ValueError when there is no answer.
    """
    files = sorted(folder.glob("*.sse"))
    if not files:
        raise ValueError(f"no recorded answers in {folder}")
    return Recording(tuple(_response(file.read_bytes(), delay_ms) for file in files))


def _response(stream: bytes, delay_ms: float) -> RecordedResponse:
    events = [event + _EVENT_END for event in stream.split(_EVENT_END) if event.strip()]
    return RecordedResponse(tuple(Piece(event, delay_ms) for event in events))


@dataclass
class RecordedRequest:
    """A received request, `data` byte for byte. Header names are lower-case, the key is masked.

    `outcome` says how far the answer got; `finished` is set once it is no longer `open`.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    data: bytes = b""
    body: Any = None
    status: int = 0
    outcome: Literal["open", "answered", "client_gone"] = "open"
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    def finish(self, outcome: Literal["answered", "client_gone"]) -> None:
        """Record that the answer was sent, or that the client has gone."""
        self.outcome = outcome
        self.finished.set()


class ModelServer:
    """Start it with `async with`. `requests` are all requests in order, `chats` those that got a
    recorded or scripted answer.

    `paced=False` leaves out the delays; `require_key=False` serves without Authorization. `script`
    answers each request from its body instead of the recording. `endless`: every turn gets the
    answers from the first one on; the answers with tool calls in a request say how far its turn is.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        paced: bool = True,
        require_key: bool = True,
        endless: bool = False,
        port: int = 0,
        script: Callable[[Mapping[str, Any]], RecordedResponse] | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.chats: list[RecordedRequest] = []
        self._recording = recording
        self._paced = paced
        self._require_key = require_key
        self._endless = endless
        self._script = script
        self._gates: dict[str, asyncio.Event] = {}
        self._arrivals: dict[str, asyncio.Event] = {}
        self._connections: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._port = port

    async def __aenter__(self) -> "ModelServer":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        """The value for `KIMI_BASE_URL`."""
        return f"http://127.0.0.1:{self._port}/v1"

    def release(self, hold: str) -> None:
        """Let pieces with this `hold` go, including later ones."""
        self._gate(self._gates, hold).set()

    async def reached(self, hold: str) -> None:
        """Wait until an answer has reached a piece with this `hold`."""
        await self._gate(self._arrivals, hold).wait()

    def _gate(self, gates: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return gates.setdefault(name, asyncio.Event())

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client closed the connection, or the server is closing
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False if the connection must end."""
        request = await _read_request(reader)
        self.requests.append(request)
        response = self._answer(request)
        request.status = response.status
        try:
            delivered = await self._send(response, reader, writer)
        except ConnectionError:
            delivered = False
        request.finish("answered" if delivered else "client_gone")
        return delivered and not response.broken

    def _answer(self, request: RecordedRequest) -> RecordedResponse:
        if self._require_key and "authorization" not in request.headers:
            return failure(401, "invalid_authentication_error", "Invalid Authentication")
        match request.method, request.path:
            case "GET", "/v1/models":
                return _json_response(200, {"object": "list", "data": self._models()})
            case "POST", "/v1/chat/completions":
                return self._chat(request)
            case method, path:
                text = f"{method} {path} is not served here"
                return failure(404, "url_not_found", text)

    def _chat(self, request: RecordedRequest) -> RecordedResponse:
        asked: dict[str, Any] = request.body or {}
        model = asked.get("model")
        if model not in self._recording.models:
            text = f"Not found the model {model} or Permission denied"
            return failure(404, "resource_not_found_error", text)
        recorded = self._recording.responses
        if self._script is not None:
            self.chats.append(request)
            return self._script(asked)
        if self._endless:
            self.chats.append(request)
            return recorded[min(tool_rounds(asked["messages"]), len(recorded) - 1)]
        if len(self.chats) >= len(recorded):
            text = (
                f"The recording holds {len(recorded)} answers and this is question "
                f"{len(self.chats) + 1}: the program asked the model more often than recorded."
            )
            return failure(400, "recording_exhausted", text)
        self.chats.append(request)
        return recorded[len(self.chats) - 1]

    def _models(self) -> list[dict[str, Any]]:
        return [
            {
                "id": model,
                "object": "model",
                "owned_by": "moonshot",
                "context_length": 262144,
                "supports_image_in": True,
                "supports_reasoning": True,
            }
            for model in self._recording.models
        ]

    async def _send(
        self,
        response: RecordedResponse,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Send an answer in chunks; return False if the client closed the connection meanwhile."""
        writer.write(_head(response))
        # Before the answer is complete, only the end of the connection can be read.
        gone = asyncio.create_task(reader.read(1))
        try:
            for piece in response.pieces:
                if not await self._wait(piece, gone):
                    return False
                writer.write(b"%x\r\n%b\r\n" % (len(piece.data), piece.data))
                await writer.drain()
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await gone
        if response.broken:
            writer.transport.abort()
        else:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return True

    async def _wait(self, piece: Piece, gone: asyncio.Task[bytes]) -> bool:
        """Wait for the piece's hold and delay; return False if the client has gone."""
        if piece.hold:
            self._gate(self._arrivals, piece.hold).set()
            gate = asyncio.create_task(self._gate(self._gates, piece.hold).wait())
            await asyncio.wait({gate, gone}, return_when=asyncio.FIRST_COMPLETED)
            gate.cancel()
        if self._paced and piece.delay_ms:
            await asyncio.wait({gone}, timeout=piece.delay_ms / 1000)
        return not gone.done()


def tool_rounds(messages: Sequence[dict[str, Any]]) -> int:
    """Return the number of answers with tool calls since the last one without."""
    answers = [message for message in messages if message.get("role") == "assistant"]
    calling = takewhile(lambda message: message.get("tool_calls"), reversed(answers))
    return sum(1 for _ in calling)


def failure(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> RecordedResponse:
    """Return an error answer in Moonshot's shape."""
    body = {"error": {"message": message, "type": kind}}
    return _json_response(status, body, headers)


def _json_response(
    status: int, body: Any, headers: Mapping[str, str] | None = None
) -> RecordedResponse:
    data = json.dumps(body, ensure_ascii=False).encode("utf-8")
    return RecordedResponse((Piece(data),), status, _JSON, headers or {})


async def _read_request(reader: asyncio.StreamReader) -> RecordedRequest:
    """Read one request. Raises IncompleteReadError if the connection ends or the header is long."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise asyncio.IncompleteReadError(b"", error.consumed) from None
    start, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = start.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in map(_pair, lines)}
    length = min(int(headers.get("content-length", "0")), _MAX_BODY_BYTES)
    data = await reader.readexactly(length)
    if "authorization" in headers:
        headers["authorization"] = "Bearer ***"
    return RecordedRequest(method, path, headers, data, json.loads(data) if data else None)


def _pair(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _head(response: RecordedResponse) -> bytes:
    lines = [
        f"HTTP/1.1 {response.status} {reason_phrases.get(response.status, 'Error')}",
        f"Content-Type: {response.content_type}",
        "Transfer-Encoding: chunked",
        "Cache-Control: no-cache",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
