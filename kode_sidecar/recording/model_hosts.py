"""Model hosts in a recording: one that writes down what the real one says, one that says it again.

Request headers, and with them the keys, are never looked at.
"""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.endpoint import Host, HostResponse
from kode_sidecar.recording.recording_loop import not_recorded

_UNKNOWN_ASKER = "models"


class AnswerRecord(Protocol):
    """Writes down what hosts say. Requests of one agent are counted from 1: `ask`."""

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int: ...

    def opened(self, agent: str, ask: int, status: int, headers: Mapping[str, str]) -> None: ...

    def arrived(self, agent: str, ask: int, data: bytes) -> None:
        """Note what one read brought; nothing means the end."""
        ...

    def failed(self, agent: str, ask: int, error: KodeError) -> None: ...

    def left(self, agent: str, ask: int) -> None: ...


class RecordedAnswers(Protocol):
    """Says again what hosts said, each thing when it is its turn."""

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int: ...

    async def head(self, agent: str, ask: int) -> tuple[int, Mapping[str, str]]:
        """Raises the KodeError that was recorded, or one that says that nothing was."""
        ...

    async def data(self, agent: str, ask: int) -> bytes:
        """Raises as `head` does."""
        ...

    async def rest(self, agent: str, ask: int) -> None:
        """Wait until the end of the answer had come."""
        ...

    def left(self, agent: str, ask: int) -> None: ...


class RecordingHost:
    """A real host and a record of what it says."""

    def __init__(self, host: Host, record: AnswerRecord) -> None:
        self._host = host
        self._record = record

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
    ) -> AsyncGenerator[HostResponse, None]:
        """Ask the real host; see `Host`."""
        agent = asker or _UNKNOWN_ASKER
        ask = self._record.asked(agent, method, path, body)
        opening = self._host.stream(method, path, body, headers, asker)
        try:
            try:
                with not_recorded():
                    response = await opening.__aenter__()
            except KodeError as error:
                self._record.failed(agent, ask, error)
                raise
            try:
                self._record.opened(agent, ask, response.status, response.headers)
                yield _RecordingResponse(response, self._record, agent, ask)
            finally:
                with not_recorded():
                    await opening.__aexit__(*sys.exc_info())
        finally:
            self._record.left(agent, ask)

    async def aclose(self) -> None:
        """Close the real host."""
        await self._host.aclose()


class _RecordingResponse:
    def __init__(self, response: HostResponse, record: AnswerRecord, agent: str, ask: int) -> None:
        self.status = response.status
        self.headers = response.headers
        self.note_progress = response.note_progress
        self._response = response
        self._record = record
        self._name = agent, ask

    async def read(self) -> bytes:
        try:
            with not_recorded():
                data = await self._response.read()
        except KodeError as error:
            self._record.failed(*self._name, error)
            raise
        self._record.arrived(*self._name, data)
        return data

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)

    async def drain(self, seconds: float) -> None:
        with not_recorded():
            await self._response.drain(seconds)
        self._record.arrived(*self._name, b"")


class PlaybackHost:
    """A host that is a recording: no network, no key."""

    def __init__(self, answers: RecordedAnswers) -> None:
        self._answers = answers

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
    ) -> AsyncGenerator[HostResponse, None]:
        """Say what was said then; see `Host`."""
        del headers
        agent = asker or _UNKNOWN_ASKER
        ask = self._answers.asked(agent, method, path, body)
        try:
            status, told = await self._answers.head(agent, ask)
            yield _PlaybackResponse(self._answers, agent, ask, status, told)
        finally:
            self._answers.left(agent, ask)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""


class _PlaybackResponse:
    def __init__(
        self,
        answers: RecordedAnswers,
        agent: str,
        ask: int,
        status: int,
        headers: Mapping[str, str],
    ) -> None:
        self.status = status
        self.headers = headers
        self._answers = answers
        self._name = agent, ask

    def note_progress(self) -> None:
        """Do nothing: a recording has no idle timeout."""

    async def read(self) -> bytes:
        return await self._answers.data(*self._name)

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)

    async def drain(self, seconds: float) -> None:
        """Wait until the end of the body had come, or was waited for no longer."""
        del seconds
        await self._answers.rest(*self._name)


async def _read_all(response: HostResponse, limit: int) -> bytes:
    body = bytearray()
    while len(body) < limit and (data := await response.read()):
        body += data
    return bytes(body[:limit])
