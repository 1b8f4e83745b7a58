"""HTTP by httpx: the only module that imports it. Its successor `httpx2` can replace it.

httpx has connections, proxies, TLS and the grammar of HTTP. This module adds a cancel that leaves
no socket open, reads that return everything received, and failures in words.
"""

import asyncio
import socket
import ssl
import sys
from collections.abc import Mapping
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from typing import Any, Literal, cast

import anyio
import httpx

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpTimeouts

# anyio, which httpx uses, would load its asyncio backend with the first request: 20 ms.
import_module("anyio._backends._asyncio")

_READ_AHEAD = 64 * 1024
# Hosts keep an idle connection for about a minute; a new one costs two or three round trips.
_KEEP_IDLE = 45.0
# Only a handful of URLs are ever used, and parsing one costs more than a request.
_REMEMBERED_URLS = 64
_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEP_IDLE
)
_CLOSED = "the connection was closed"

Stage = Literal["proxy", "connect", "certificate", "exchange"]


class HttpFailure(Exception):
    """A failed request: the stage and the reason, without addresses or paths."""

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage: Stage = stage
        self.reason = reason


class Exchange:
    """One request and its answer. `status` and `headers` are set once `answered` returns.

    It runs in a task of its own, which only `close` cancels, by the scope that httpx can shield
    from: a bare `Task.cancel` while a connection goes back to the pool would leave its socket open
    forever. So a caller may be cancelled at any time, even twice.
    """

    status = 0
    headers: Mapping[str, str] = {}

    def __init__(self, client: httpx.AsyncClient, request: httpx.Request) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._scope = anyio.CancelScope()
        self._answered, self._arrived, self._room = (asyncio.Event() for _ in range(3))
        self.task = asyncio.create_task(self._run(client, request))
        self.task.add_done_callback(self._end)

    async def answered(self) -> None:
        """Wait for the head of the answer. Raises HttpFailure."""
        await self._answered.wait()
        if not self.status:
            self.task.result()

    async def read(self) -> bytes:
        """Return everything received of the body, at least one byte; nothing at its end.

        Hosts send each delta as a chunk of its own, so one wake-up returns many chunks. Raises
        HttpFailure once everything before the failure was returned.
        """
        if not self._parts and not self.task.done():
            self._arrived.clear()
            await self._arrived.wait()
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._room.set()
        if not data:
            self.task.result()
        return data

    def cancel(self) -> None:
        """Close the connection, or leave it idle if the answer was read to its end."""
        self._scope.cancel()

    async def close(self) -> None:
        """Cancel the request, and wait until it has ended."""
        self.cancel()
        await asyncio.wait([self.task])

    async def _run(self, client: httpx.AsyncClient, request: httpx.Request) -> None:
        request.extensions["trace"] = progress = _Progress()
        try:
            with self._scope:
                await self._receive(await client.send(request, stream=True))
                return
        except httpx.TransportError as error:
            raise _failure(error, progress.step) from None
        except httpx.InvalidURL:  # httpx reads a redirect also where it follows none
            raise HttpFailure("exchange", "it redirects to no web address") from None
        if not self.status:
            await progress.close()
        raise HttpFailure("exchange", _CLOSED)

    async def _receive(self, response: httpx.Response) -> None:
        self.status, self.headers = response.status_code, dict(response.headers.items())
        self._answered.set()
        try:
            # Not `aiter_raw`, which closes the response before it reports the end of the body.
            async for part in cast(httpx.AsyncByteStream, response.stream):
                self._parts.append(part)
                self._size += len(part)
                self._arrived.set()
                if self._size > _READ_AHEAD:
                    self._room.clear()
                    await self._room.wait()
        finally:
            await response.aclose()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._answered.set()
        self._arrived.set()
        if not task.cancelled():
            task.exception()  # avoids a warning if the caller has left


class _Progress:
    """The progress of a request's connection, as httpx reports it (the extension "trace").

    httpx leaves a socket open that is cancelled in its TLS handshake, so it is closed here.
    """

    def __init__(self) -> None:
        self.step = "connection"
        self._socket: Any = None

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"]
        elif event.endswith("start_tls.started"):
            self.step = "TLS handshake"

    async def close(self) -> None:
        """Close the socket that was opened for this request, if any."""
        if self._socket is not None:
            await self._socket.aclose()


class Connections:
    """Reusable connections to hosts, through an HTTP proxy if there is one.

    It follows no redirect, stores no cookie, and uses no proxy of the environment. It needs no
    event loop before `ask`. Raises KodeError `ConfigInvalid` for an invalid proxy.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None = None) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                verify=tls,
                trust_env=False,
                limits=_LIMITS,
                proxy=proxy_of(proxy, tls) if proxy else None,
            ),
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self._url = lru_cache(_REMEMBERED_URLS)(httpx.URL)
        self._running: set[Exchange] = set()

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeouts: HttpTimeouts,
        server_name: str = "",
    ) -> Exchange:
        """Begin a request; the caller must `close` the exchange, and end a silent one itself.

        `server_name` is the name that the certificate must have if `url` contains an IP address.
        """
        extensions: dict[str, Any] = {
            "timeout": {"connect": timeouts.connect, "write": timeouts.write}
        }
        if server_name:
            extensions["sni_hostname"] = server_name
        request = httpx.Request(
            method,
            self._url(url),
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            content=body,
            extensions=extensions,
        )
        exchange = Exchange(self._client, request)
        self._running.add(exchange)
        exchange.task.add_done_callback(lambda _: self._running.discard(exchange))
        return exchange

    async def aclose(self) -> None:
        """Close all connections, including those of running requests."""
        await asyncio.gather(*(exchange.close() for exchange in self._running))
        await self._client.aclose()


def check_url(url: str) -> None:
    """Raise ValueError, with the reason, for an invalid URL."""
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from None


@lru_cache(1)
def system_tls() -> ssl.SSLContext:
    """Return the system's certificates, shared by all clients; takes some 0.05 s: use a thread.

    A program built elsewhere may not know where this system stores them; then use httpx's.
    """
    known = ssl.get_default_verify_paths()
    if sys.platform == "win32" or known.cafile or known.capath:
        return ssl.create_default_context()
    return httpx.create_ssl_context(trust_env=False)


def proxy_of(url: str, tls: ssl.SSLContext | None = None) -> httpx.Proxy:
    """Parse a proxy setting, user and password allowed. Raises KodeError `ConfigInvalid`."""
    try:
        proxy = httpx.Proxy(url)
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or not proxy.url.host or proxy.url.scheme not in ("http", "https"):
        text = "The setting `proxy` is no HTTP proxy: use one such as http://proxy.example:3128"
        raise KodeError("ConfigInvalid", text)
    if proxy.url.scheme == "https":
        proxy.ssl_context = tls
    return proxy


def _failure(error: httpx.TransportError, step: str) -> HttpFailure:
    if isinstance(error, httpx.ProxyError):
        return HttpFailure("proxy", str(error))
    cause = _os_error(error)
    reason = describe_os_error(cause) if cause else str(error)
    if isinstance(error, httpx.ConnectTimeout):
        return HttpFailure("connect", f"no {step} in time")
    if isinstance(error, httpx.ConnectError):
        refused = isinstance(cause, ssl.SSLCertVerificationError)
        return HttpFailure("certificate" if refused else "connect", reason or "TLS failed")
    if isinstance(error, httpx.WriteTimeout):
        reason = "the request was not taken in time"
    return HttpFailure("exchange", reason or _CLOSED)


def _os_error(error: BaseException) -> OSError | None:
    """Return the system's original error, which httpx and anyio each wrap in their own."""
    found = None
    while (cause := error.__cause__ or error.__context__) is not None:
        group = cast(BaseExceptionGroup[BaseException], cause)
        error = group.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
        found = error if isinstance(error, OSError) else found
    return found


def describe_os_error(error: OSError) -> str:
    """Describe a network failure in a few words, without addresses or paths."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'no secure connection'}"
    if isinstance(error, socket.gaierror):
        return "its address was not found"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionError):
        return _CLOSED
    return error.strerror or "no connection could be made"
