"""httpx over a `Host` of `providers.endpoint`: so a recording notes and plays MCP servers, too."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.contracts import WrapHost
from kode_sidecar.infrastructure.providers.endpoint import HostResponse
from kode_sidecar.infrastructure.providers.provider_config import HttpTimeouts


class HostedTransport(httpx.AsyncBaseTransport):
    """Has each request answered by what `wrap` makes of the real host.

    Who asks is the server's name and the method, by which a recording counts requests.
    """

    def __init__(self, name: str, wrap: WrapHost) -> None:
        self._name = name
        self._wrap = wrap
        self._real: httpx.AsyncHTTPTransport | None = None

    def open(self) -> httpx.AsyncHTTPTransport:
        """Return the real transport, made at first use: a recording that plays has none."""
        self._real = self._real or httpx.AsyncHTTPTransport(trust_env=False)
        return self._real

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.TransportError where the host fails."""
        asker = f"mcp {self._name} {request.method}"
        host = self._wrap(_RequestHost(self, request))
        asking = host.stream(request.method, request.url.path, None, {}, asker)
        try:
            response = await asking.__aenter__()
        except KodeError as error:
            raise httpx.ConnectError(error.message) from error
        body = _Body(response, asking)
        return httpx.Response(response.status, headers=dict(response.headers), stream=body)

    async def aclose(self) -> None:
        """Close the real one, if there is one."""
        if self._real is not None:
            await self._real.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(
        self, response: HostResponse, asking: AbstractAsyncContextManager[HostResponse]
    ) -> None:
        self._response = response
        self._asking = asking

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while data := await self._response.read():
                yield data
        except KodeError as error:
            raise httpx.ReadError(error.message) from error

    async def aclose(self) -> None:
        await self._asking.__aexit__(None, None, None)


class _RequestHost:
    """A `Host` that sends one request of httpx as it is, whatever else it is told."""

    def __init__(self, transport: HostedTransport, request: httpx.Request) -> None:
        self._transport = transport
        self._request = request

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
        timeouts: HttpTimeouts | None = None,
    ) -> AsyncGenerator[HostResponse, None]:
        """Send it. Raises KodeError `Network`."""
        del method, path, body, headers, asker, timeouts
        try:
            response = await self._transport.open().handle_async_request(self._request)
        except httpx.HTTPError as error:
            raise _network(error) from None
        try:
            yield _RawResponse(response)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Do nothing: the transport is closed by its client."""


class _RawResponse:
    """`HostResponse`, of which httpx reads only piece by piece."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers)
        self._chunks = response.aiter_raw()

    def note_progress(self) -> None:
        """Do nothing: httpx has times of its own."""

    async def read(self) -> bytes:
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except httpx.HTTPError as error:
            raise _network(error) from None
        return b""

    async def read_all(self, limit: int) -> bytes:
        body = bytearray()
        while len(body) < limit and (data := await self.read()):
            body += data
        return bytes(body[:limit])

    async def drain(self, seconds: float) -> None:
        del seconds
        while await self.read():
            pass


def _network(error: httpx.HTTPError) -> KodeError:
    return KodeError("Network", str(error) or type(error).__name__)
