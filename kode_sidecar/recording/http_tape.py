"""Model hosts on tape: one that writes down what the real one says, one that plays it again.

Request headers, and with them the keys, are never looked at.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.endpoint import Host, HostResponse

_UNKNOWN_ASKER = "models"


class ModelRecord(Protocol):
    """Writes down what a host says. Requests of one agent are counted from 1: `ask`."""

    async def turn(self) -> None:
        """Returns when what came next may be written down and have its effect."""
        ...

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int: ...

    def opened(self, agent: str, ask: int, status: int, headers: Mapping[str, str]) -> None: ...

    def arrived(self, agent: str, ask: int, data: bytes) -> None:
        """Nothing means the end."""
        ...

    def failed(self, agent: str, ask: int, error: KodeError) -> None: ...

    def left(self, agent: str, ask: int) -> None: ...


class ModelTape(Protocol):
    """Says again what a host said, each thing when it is its turn."""

    def asked(self, agent: str, method: str, path: str, body: bytes | None) -> int: ...

    async def head(self, agent: str, ask: int) -> tuple[int, Mapping[str, str]]:
        """Raises the KodeError that was recorded, or one that says that nothing was."""
        ...

    async def data(self, agent: str, ask: int) -> bytes:
        """Raises as `head` does."""
        ...

    def left(self, agent: str, ask: int) -> None: ...


class RecordingHost:
    """A real host and a record of what it says."""

    def __init__(self, host: Host, record: ModelRecord) -> None:
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
        """See `Host`."""
        agent = asker or _UNKNOWN_ASKER
        ask = self._record.asked(agent, method, path, body)
        opened = False
        try:
            async with self._host.stream(method, path, body, headers, asker) as response:
                await self._record.turn()
                opened = True
                self._record.opened(agent, ask, response.status, response.headers)
                yield _RecordingResponse(response, self._record, agent, ask)
        except KodeError as error:
            if not opened:  # what its reader raises is not the host's
                await self._record.turn()
                self._record.failed(agent, ask, error)
            raise
        finally:
            self._record.left(agent, ask)

    async def aclose(self) -> None:
        """See `Host`."""
        await self._host.aclose()


class _RecordingResponse:
    def __init__(self, response: HostResponse, record: ModelRecord, agent: str, ask: int) -> None:
        self.status = response.status
        self.headers = response.headers
        self.note_progress = response.note_progress
        # Its bytes change nothing: the answer has ended before.
        self.drain = response.drain
        self._response = response
        self._record = record
        self._name = agent, ask

    async def read(self) -> bytes:
        try:
            data = await self._response.read()
        except KodeError as error:
            await self._record.turn()
            self._record.failed(*self._name, error)
            raise
        await self._record.turn()
        self._record.arrived(*self._name, data)
        return data

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)


class TapeHost:
    """A host that is a recording: no network, no key."""

    def __init__(self, tape: ModelTape) -> None:
        self._tape = tape

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
    ) -> AsyncGenerator[HostResponse, None]:
        """See `Host`."""
        del headers
        agent = asker or _UNKNOWN_ASKER
        ask = self._tape.asked(agent, method, path, body)
        try:
            status, told = await self._tape.head(agent, ask)
            yield _TapeResponse(self._tape, agent, ask, status, told)
        finally:
            self._tape.left(agent, ask)

    async def aclose(self) -> None:
        """Nothing is open."""


class _TapeResponse:
    def __init__(
        self, tape: ModelTape, agent: str, ask: int, status: int, headers: Mapping[str, str]
    ) -> None:
        self.status = status
        self.headers = headers
        self._tape = tape
        self._name = agent, ask

    def note_progress(self) -> None:
        """A recording does not grow tired."""

    async def read(self) -> bytes:
        return await self._tape.data(*self._name)

    async def read_all(self, limit: int) -> bytes:
        return await _read_all(self, limit)

    async def drain(self, seconds: float) -> None:
        """There is no connection to keep."""
        del seconds


async def _read_all(response: HostResponse, limit: int) -> bytes:
    body = bytearray()
    while len(body) < limit and (data := await response.read()):
        body += data
    return bytes(body[:limit])
