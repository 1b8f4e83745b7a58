"""HTTP by httpx: the one module that imports it. `httpx2`, its successor, can take its place.

Connections, proxies, TLS and the grammar of HTTP are httpx's. Ours are a cancel that leaves no
socket behind, reads that bring all there is, and failures in words.
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
from kode_sidecar.infrastructure.http.timeouts import HttpTimeouts

# anyio, on which httpx stands, would load its part for asyncio with the first request: 20 ms.
import_module("anyio._backends._asyncio")

_READ_AHEAD = 64 * 1024
# Hosts keep an idle connection for about a minute; a new one costs two or three round trips.
_KEEP_IDLE = 45.0
# A handful of paths are ever asked for, and taking one apart costs more than a request.
_REMEMBERED_URLS = 64
_LIMITS = httpx.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEP_IDLE
)
_CLOSED = "the connection was closed"

Stage = Literal["proxy", "connect", "certificate", "exchange"]


class HttpFailure(Exception):
    """A request that failed: at which stage, and why, without addresses or paths."""

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage: Stage = stage
        self.reason = reason


class Exchange:
    """One request and its answer. `status` and `headers` are there once `answered` returns.

    It runs in a task of its own, which only `close` cancels, in the way that httpx guards against:
    a bare `Task.cancel` while a connection goes back to the pool would leave its socket open for
    good. So whoever waits for an answer may be cancelled at any time, and twice.
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
        """Return all that came of the body, at least one byte; nothing at its end.

        Hosts send each delta as a chunk of its own: whoever reads is woken once for many. Raises
        HttpFailure, after what came before the failure.
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
        """Cancel, and wait until that is done."""
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
        if not self.status:
            await progress.close()
        raise HttpFailure("exchange", _CLOSED)

    async def _receive(self, response: httpx.Response) -> None:
        self.status, self.headers = response.status_code, dict(response.headers.items())
        self._answered.set()
        try:
            # Not by `aiter_raw`, which closes the response before it says that the body is over.
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
            task.exception()  # whoever left early does not want to know


class _Progress:
    """How far a request's connection is, as httpx reports it (the extension "trace").

    What is cancelled in its TLS handshake httpx leaves open, so it is closed here.
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
        """Close what was opened for this request, if anything was."""
        if self._socket is not None:
            await self._socket.aclose()


class Connections:
    """Connections to hosts, kept and used again, through an HTTP proxy if there is one.

    No redirect is followed, no cookie kept, no proxy of the environment used. Uses no event loop
    until it is asked. Raises KodeError `ConfigInvalid` for a proxy that is none.
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
        """Begin a request; `close` what it returns. Silence is for who waits to end.

        `server_name` is whose certificate is wanted where `url` names an address.
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
        """Close all connections, those of running requests, too."""
        await asyncio.gather(*(exchange.close() for exchange in self._running))
        await self._client.aclose()


def check_url(url: str) -> None:
    """Raise ValueError for an address that is none, saying why."""
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from None


@lru_cache(1)
def system_tls() -> ssl.SSLContext:
    """Return the certificates of the system's store; some 0.05 s, so in a thread. For all clients.

    A program built elsewhere may not know where this system keeps them: then those of httpx.
    """
    known = ssl.get_default_verify_paths()
    if sys.platform == "win32" or known.cafile or known.capath:
        return ssl.create_default_context()
    return httpx.create_ssl_context(trust_env=False)


def proxy_of(url: str, tls: ssl.SSLContext | None = None) -> httpx.Proxy:
    """The proxy of a setting, user and password allowed. Raises KodeError `ConfigInvalid`."""
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
    """Return what the system said first: httpx and anyio each wrap it in an error of theirs."""
    found = None
    while (cause := error.__cause__ or error.__context__) is not None:
        group = cast(BaseExceptionGroup[BaseException], cause)
        error = group.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
        found = error if isinstance(error, OSError) else found
    return found


def describe_os_error(error: OSError) -> str:
    """Return a failure of the network in a few words, without addresses or paths."""
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
