"""A loopback HTTP server that answers with exactly the bytes a test gives it."""

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

HANG_CEILING = 20.0
"""Seconds after which a test that waits for something is stuck."""

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Wait:
    """A step of an answer: go on when the event is set, or never if it is not."""

    event: asyncio.Event


@dataclass(frozen=True)
class Repeat:
    """A step of an answer: the same bytes every few milliseconds, until the client goes."""

    data: bytes


@dataclass(frozen=True)
class Never:
    """A step of an answer: nothing more comes, until the client goes."""


Step = bytes | Wait | Repeat | Never
Answer = Sequence[Step]


@dataclass(frozen=True)
class RawRequest:
    """A request as it arrived; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class RawHttpServer:
    """Plays one answer per request, in order; the last one again and again.

    An answer that ends with `LAST_CHUNK`, or has a content-length, leaves the connection open;
    any other is followed by closing it. `asked` is set by the first request, `hung_up` when a
    client goes during an answer. `choose` picks the answer by the request instead.
    """

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.port = port
        self.answers = list(answers)
        self.choose: Callable[[RawRequest], Answer] | None = None
        self.requests: list[RawRequest] = []
        self.asked = asyncio.Event()
        self.hung_up = asyncio.Event()
        self._tls = tls
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 24
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    async def all_gone(self) -> None:
        """Wait until every client has closed its connection."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            # Cancelled by `__aexit__`; streams of Python 3.11 trip over a cancelled task.
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer_one(reader, writer, number):
                    pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if self._tls else writer.close()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(RawRequest(method, target, headers, body, number))
        self.asked.set()
        if self.choose is not None:
            answer = self.choose(self.requests[-1])
        else:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        gone = asyncio.create_task(reader.read(1))
        try:
            for step in answer:
                await self._play(step, writer, gone)
        except ConnectionError:
            self.hung_up.set()
            raise
        finally:
            if not gone.done():
                gone.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await gone
        sent = b"".join(step for step in answer if isinstance(step, bytes))
        return sent.endswith(LAST_CHUNK) or b"content-length:" in sent.lower()

    async def _play(
        self, step: Step, writer: asyncio.StreamWriter, gone: "asyncio.Task[bytes]"
    ) -> None:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
            return
        if isinstance(step, Never):
            await asyncio.wait({gone})
            raise ConnectionError
        if isinstance(step, Repeat):
            while not gone.done():
                writer.write(step.data)
                await writer.drain()
                await asyncio.sleep(0.005)
            raise ConnectionError
        go_on = asyncio.create_task(step.event.wait())
        await asyncio.wait({go_on, gone}, return_when=asyncio.FIRST_COMPLETED)
        go_on.cancel()
        if gone.done() and not step.event.is_set():
            raise ConnectionError


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(value: object) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    """One chat completion chunk as an event."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    )


USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "cached_tokens": 40}
END = event({"id": "chatcmpl-1", "choices": [], "usage": USAGE}) + b"data: [DONE]\n\n"


def sse_answer(*events: bytes) -> Answer:
    """A whole event stream, each event in a chunk of its own."""
    return [HEAD, *(chunk(data) for data in events), LAST_CHUNK]


def says(*texts: str) -> Answer:
    """A whole answer of text."""
    return sse_answer(
        delta(role="assistant", content=""),
        *(delta(content=text) for text in texts),
        delta("stop"),
        END,
    )


def response(status: int, body: object, *headers: str) -> Answer:
    """A plain response; `body` is JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", *headers]
    return ["\r\n".join(lines).encode() + b"\r\n\r\n" + data]


def refusal(status: int, kind: str, message: str, *headers: str) -> Answer:
    """An error as Moonshot words it."""
    return response(status, {"error": {"type": kind, "message": message}}, *headers)
