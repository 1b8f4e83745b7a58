"""httpx on connections of our own: a cancelled request unwinds little and leaves nothing behind."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import h11
import httpx

from kode_sidecar.providers.http_connection import HttpConnection
from kode_sidecar.providers.network import Address, connect, proxy_of
from kode_sidecar.providers.provider_config import HttpTimeouts

# Hosts keep an idle connection for about a minute; a new one costs two or three round trips.
_KEEP_IDLE = 45.0
_PORTS = {"http": 80, "https": 443}


class _Kept(NamedTuple):
    address: Address
    connection: HttpConnection
    since: float


class PoolTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 with certificates from `tls`. `proxy` is an HTTP proxy, user and password allowed.

    Whatever happens to a request, a cancellation at any point included, its connection is idle
    again or closed afterwards. Raises KodeError `ConfigInvalid` for a proxy that is none.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None, timeouts: HttpTimeouts) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._proxy = proxy_of(proxy) if proxy else None
        self._timeouts = timeouts
        self._idle: list[_Kept] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the response is still to be read. Raises httpx.TransportError."""
        url = request.url
        host = url.raw_host.decode("ascii")
        address = Address(host, url.port or _PORTS[url.scheme], tls=url.scheme == "https")
        target, headers = url.raw_path, request.headers.raw
        if self._proxy is not None and not address.tls:
            target = f"{url.scheme}://".encode() + url.netloc + target
            headers = [*self._proxy.headers, *headers]
        try:
            asked = h11.Request(method=request.method, target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        connection = self._idle_connection(address) or await connect(
            address, self._proxy, self._tls, self._timeouts.connect
        )
        try:
            answer = await connection.ask(asked, request.content, self._timeouts.write)
        except BaseException:
            connection.close()
            raise
        body = _Body(connection, lambda: self._take_back(address, connection))
        return httpx.Response(answer.status_code, headers=answer.headers.raw_items(), stream=body)

    async def aclose(self) -> None:
        """Close the idle connections; a running request closes its own."""
        while self._idle:
            self._idle.pop().connection.close()

    def _take_back(self, address: Address, connection: HttpConnection) -> None:
        if connection.end_answer():
            self._idle.append(_Kept(address, connection, time.monotonic()))
        else:
            connection.close()

    def _idle_connection(self, address: Address) -> HttpConnection | None:
        oldest = time.monotonic() - _KEEP_IDLE
        while self._idle:
            kept = self._idle.pop()
            if kept.address == address and kept.since > oldest and kept.connection.is_idle:
                return kept.connection
            kept.connection.close()
        return None


class _Body(httpx.AsyncByteStream):
    """A response's bytes. Closed after the last one, the connection is idle again."""

    def __init__(self, connection: HttpConnection, take_back: Callable[[], None]) -> None:
        self._connection = connection
        self._take_back = take_back

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if data := await self._connection.read():
            return data
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._take_back()
