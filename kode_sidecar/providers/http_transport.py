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
_MAX_CONNECTIONS = 64


class PoolTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 with certificates from `tls`. `proxy` is an HTTP proxy, user and password allowed.

    Raises KodeError `ConfigInvalid` for a proxy that is none.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            proxy=_proxy(proxy, tls) if proxy else None,
            max_connections=_MAX_CONNECTIONS,
            keepalive_expiry=_KEEP_IDLE,
            network_backend=StreamsBackend(),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the response is still to be read. Raises `FAILURES`."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        response = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    """A response's bytes as the pool gives them."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        await self._response.aclose()


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
