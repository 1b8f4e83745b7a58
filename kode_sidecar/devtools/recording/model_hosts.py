"""Model hosts of a recorded process and of one to which a recording is played.

Request headers, and with them the keys, are never looked at.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kode_sidecar.devtools.recording.playback_loop import PlaybackLoop
from kode_sidecar.devtools.recording.recorded_lines import (
    AnswerBytes,
    AnswerEnded,
    AnswerFailed,
    AnswerLeft,
    AnswerOpened,
    AnyLine,
    ModelAsked,
    ModelInput,
    data_of,
    with_data,
)
from kode_sidecar.devtools.recording.recording_file import SessionRecording
from kode_sidecar.devtools.recording.recording_loop import not_recorded
from kode_sidecar.devtools.recording.redaction import unfinished
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpRequest
from kode_sidecar.infrastructure.providers.endpoint import Host, HostResponse

_NO_AGENT = "models"  # asks for the list of models
_SECRET_HEADERS = ("set-cookie", "authorization")


_T = TypeVar("_T")


class Enter(Protocol):
    """`RecordingLoop.enter`."""

    def __call__(
        self, coming: Awaitable[_T], note: Callable[[asyncio.Future[_T]], None]
    ) -> Awaitable[_T]:
        """Wait for an input and note it in its place."""
        ...


class AnswerLog:
    """Writes the requests of all hosts, and what they answer, as lines of one recording.

    What comes in is waited for by way of `enter`, and written with it.
    """

    def __init__(self, write: Callable[[AnyLine], None], enter: Enter) -> None:
        self._write = write
        self._enter = enter
        self._asks: Counter[str] = Counter()
        self._held: dict[tuple[str, int], bytes] = {}

    def asked(self, agent: str, method: str, path: str) -> int:
        """Write a request and return its number among those of the agent, from 1."""
        self._asks[agent] += 1
        ask = self._asks[agent]
        self._write(ModelAsked(agent=agent, ask=ask, method=method, path=path))
        return ask

    async def opened(
        self,
        agent: str,
        ask: int,
        coming: Awaitable[_T],
        head: Callable[[_T], tuple[int, Mapping[str, str]]],
    ) -> _T:
        """Wait for an answer to begin and write its head: the status and the headers."""

        def write(response: _T) -> None:
            status, headers = head(response)
            reported = {k: v for k, v in headers.items() if k.lower() not in _SECRET_HEADERS}
            self._write(AnswerOpened(agent=agent, ask=ask, status=status, headers=reported))

        return await self._taken(agent, ask, coming, write)

    async def arrived(self, agent: str, ask: int, coming: Awaitable[bytes]) -> bytes:
        """Wait for a read and write its bytes, none for the end. What may be half a key waits."""
        return await self._taken(agent, ask, coming, partial(self._write_read, agent, ask))

    async def _taken(
        self, agent: str, ask: int, coming: Awaitable[_T], write: Callable[[_T], None]
    ) -> _T:
        """Wait for a part of an answer and write it, or that the request or the answer broke."""

        def note(task: asyncio.Future[_T]) -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, KodeError):
                self._write_failure(agent, ask, error)
            elif error is None and not task.cancelled():
                write(task.result())

        return await self._enter(coming, note)

    def left(self, agent: str, ask: int) -> None:
        """Write that no more of the answer is needed, and what is still held of it."""
        held = self._held.pop((agent, ask), b"")
        self._write(AnswerLeft(agent=agent, ask=ask, **_with_any(held)))

    def _write_read(self, agent: str, ask: int, data: bytes) -> None:
        """Write a line for each read, for playback gives the process as many."""
        if not data:
            self._write(AnswerEnded(agent=agent, ask=ask))
            return
        whole, held = unfinished(data), self._held.pop((agent, ask), b"") + data
        behind = len(data) - whole
        ready = len(held) - behind if whole else 0
        self._held[agent, ask] = held[ready:]
        self._write(AnswerBytes(agent=agent, ask=ask, held=behind, **_with_any(held[:ready])))

    def _write_failure(self, agent: str, ask: int, error: KodeError) -> None:
        self._write(
            AnswerFailed(
                agent=agent,
                ask=ask,
                code=error.code,
                message=error.message,
                retryable=error.retryable,
                details=error.details,
            )
        )


def _with_any(data: bytes) -> dict[str, Any]:
    return with_data(data) if data else {}


class RecordingHost:
    """A real host whose answers are written down."""

    def __init__(self, host: Host, log: AnswerLog) -> None:
        self._host = host
        self._log = log

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HostResponse, None]:
        """Ask the real host; see `Host`."""
        agent = request.asker or _NO_AGENT
        ask = self._log.asked(agent, request.method, request.path)
        opening = self._host.stream(request)
        is_open = False

        async def answered() -> HostResponse:
            nonlocal is_open
            response = await opening.__aenter__()
            is_open = True
            return response

        try:
            yield _RecordingResponse(
                await self._log.opened(
                    agent, ask, answered(), lambda head: (head.status, head.headers)
                ),
                self._log,
                agent,
                ask,
            )
        finally:
            if is_open:
                with not_recorded():
                    await opening.__aexit__(*sys.exc_info())
            self._log.left(agent, ask)

    async def aclose(self) -> None:
        """Close the real host."""
        await self._host.aclose()


class _RecordingResponse:
    def __init__(self, response: HostResponse, log: AnswerLog, agent: str, ask: int) -> None:
        self.status = response.status
        self.headers = response.headers
        self.note_progress = response.note_progress
        self._response = response
        self._log = log
        self._name = agent, ask

    async def read(self) -> bytes:
        return await self._log.arrived(*self._name, self._response.read())

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)

    async def drain(self, seconds: float) -> None:
        await self._log.arrived(*self._name, self._drained(seconds))

    async def _drained(self, seconds: float) -> bytes:
        await self._response.drain(seconds)
        return b""


class PlaybackHost:
    """All hosts of a recording: no network, no key.

    Requests go to the file `requests`, a line each. An answer is found by its agent and its number,
    never by what was asked; asking for more than was recorded is an error.
    """

    def __init__(
        self, recording: SessionRecording, loop: PlaybackLoop, requests: Path | None
    ) -> None:
        self._recording = recording
        self._loop = loop
        self._requests = None if requests is None else requests.open("ab", buffering=0)
        self._asks: Counter[str] = Counter()

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HostResponse, None]:
        """Give the recorded answer; see `Host`. Raises KodeError as recorded."""
        agent = request.asker or _NO_AGENT
        self._asks[agent] += 1
        ask = self._asks[agent]
        self._write_request(agent, ask, request)
        try:
            head = await self.next_part(agent, ask)
            if not isinstance(head, AnswerOpened):
                raise _not_recorded(agent, ask)
            yield _PlaybackResponse(self, head)
        finally:
            self._loop.give_up(agent, ask)

    async def log_in(self, agent: str) -> AnswerOpened:
        """Return whether a log-in succeeded. Raises the KodeError it failed with."""
        self._asks[agent] += 1
        head = await self.next_part(agent, self._asks[agent])
        if not isinstance(head, AnswerOpened):
            raise _not_recorded(agent, self._asks[agent])
        return head

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    async def next_part(self, agent: str, ask: int) -> ModelInput:
        """Return the next recorded part of an answer. Raises the KodeError it failed with."""
        line = await self._loop.next_of(agent, ask)
        if line is None:
            if self._recording.was_asked(agent, ask):
                await asyncio.Event().wait()  # nothing more came until it was given up
            raise _not_recorded(agent, ask)
        if isinstance(line, AnswerFailed):
            raise KodeError(line.code, line.message, retryable=line.retryable, details=line.details)
        return line

    def close(self) -> None:
        """Close the file of requests."""
        if self._requests is not None:
            self._requests.close()

    def _write_request(self, agent: str, ask: int, request: HttpRequest) -> None:
        if self._requests is None:
            return
        reported = {"agent": agent, "ask": ask, "method": request.method, "path": request.path}
        reported |= {"body": json.loads(request.body)} if request.body else {}
        line = json.dumps(reported, ensure_ascii=False).encode("utf-8", "replace")
        self._requests.write(line + b"\n")


class _PlaybackResponse:
    def __init__(self, host: PlaybackHost, head: AnswerOpened) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        self._host = host
        self._name = head.agent, head.ask

    def note_progress(self) -> None:
        """Do nothing: a recording has no idle timeout."""

    async def read(self) -> bytes:
        while isinstance(line := await self._host.next_part(*self._name), AnswerBytes):
            if data := data_of(line):  # or else the recording was cut off before they were written
                return data
        return b""

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)

    async def drain(self, seconds: float) -> None:
        """Wait until the end of the body had come, or was waited for no longer."""
        del seconds
        await self._host.next_part(*self._name)


def _not_recorded(agent: str, ask: int) -> KodeError:
    text = f"The recording holds no answer to question {ask} of {agent}: it was not asked then."
    return KodeError("Provider", text, retryable=False)


async def _read_all(response: HostResponse, limit: int) -> bytes:
    body = bytearray()
    while len(body) < limit and (data := await response.read()):
        body += data
    return bytes(body[:limit])
