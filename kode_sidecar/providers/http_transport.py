"""httpx on a pool of connections with our own sockets: httpx's transport takes no backend."""

import ssl
from collections.abc import AsyncIterator
from urllib.parse import unquote, urlsplit

import httpcore
import httpx

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.network import StreamsBackend

FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpx.HTTPError,
)
"""What a request through `PoolTransport` can raise."""

# Hosts keep an idle connection for about a minute; a new one costs two or three round trips.
_KEEP_IDLE = 45.0


class PoolTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 with certificates from `tls`. `proxy` is an HTTP proxy, user and password allowed.

    Makes connections with httpcore but keeps them itself: whatever happens to a request, a
    cancellation at any point included, its connection is idle again or closed afterwards.
    Raises KodeError `ConfigInvalid` for a proxy that is none.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None) -> None:
        self._factory = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            proxy=_proxy(proxy, tls) if proxy else None,
            keepalive_expiry=_KEEP_IDLE,
            network_backend=StreamsBackend(),
        )
        self._idle: list[httpcore.AsyncConnectionInterface] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the response is still to be read. Raises `FAILURES`."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        connection = await self._idle_connection(url.origin)
        if connection is None:
            connection = self._factory.create_connection(url.origin)
        try:
            response = await connection.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=url,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except BaseException:
            await connection.aclose()
            raise
        body = _Body(response, connection, self._idle)
        return httpx.Response(response.status, headers=response.headers, stream=body)

    async def aclose(self) -> None:
        """Close the idle connections; a running request closes its own."""
        while self._idle:
            await self._idle.pop().aclose()

    async def _idle_connection(
        self, origin: httpcore.Origin
    ) -> httpcore.AsyncConnectionInterface | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.can_handle_request(origin) and not connection.has_expired():
                return connection
            await connection.aclose()
        return None


class _Body(httpx.AsyncByteStream):
    """A response's bytes. Closed after the last one, the connection is idle again."""

    def __init__(
        self,
        response: httpcore.Response,
        connection: httpcore.AsyncConnectionInterface,
        idle: list[httpcore.AsyncConnectionInterface],
    ) -> None:
        self._response = response
        self._connection = connection
        self._idle = idle

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
        finally:
            if self._connection.is_idle():
                self._idle.append(self._connection)
            else:
                await self._connection.aclose()


def _proxy(url: str, tls: ssl.SSLContext) -> httpcore.Proxy:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if not host or parts.scheme not in ("http", "https"):
        text = "The setting `proxy` is no HTTP proxy: use one such as http://proxy.example:3128"
        raise KodeError("ConfigInvalid", text)
    address = httpcore.URL(scheme=parts.scheme, host=host, port=port, target="/")
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    return httpcore.Proxy(address, auth=auth, ssl_context=tls if parts.scheme == "https" else None)
