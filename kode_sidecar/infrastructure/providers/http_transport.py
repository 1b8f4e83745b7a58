"""Connections to hosts, opened, kept and used again: socket, proxy, TLS, HTTP/1.1.

A cancelled request unwinds little and leaves nothing behind. Failures are httpx's.
"""

import asyncio
import ipaddress
import ssl
import time
from base64 import b64encode
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import h11
import httpx

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.http_connection import HttpConnection, describe_os_error
from kode_sidecar.infrastructure.providers.provider_config import HttpTimeouts

_READ_AHEAD = 256 * 1024
# RFC 8305 section 5: how long one address family is tried before the other.
_HAPPY_EYEBALLS_DELAY = 0.25
_Header = tuple[bytes, bytes]
T = TypeVar("T")
# Hosts keep an idle connection for about a minute; a new one costs two or three round trips.
_KEEP_IDLE = 45.0
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A host as DNS and certificates know it, and its port."""

    host: str
    port: int
    tls: bool

    @property
    def authority(self) -> bytes:
        """As a CONNECT names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}".encode()

    @classmethod
    def of(cls, url: httpx.URL) -> "Address":
        """Return the address that a URL names."""
        host = url.raw_host.decode("ascii")
        return cls(host, url.port or _PORTS[url.scheme], tls=url.scheme == "https")


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy and the headers it wants."""

    address: Address
    headers: tuple[_Header, ...] = field(repr=False)


async def connect(
    address: Address, proxy: Proxy | None, tls: ssl.SSLContext, seconds: float
) -> HttpConnection:
    """Return a connection on which `address` can be asked. Each step may take so many seconds.

    Raises httpx.ConnectError, httpx.ConnectTimeout and httpx.ProxyError; what was opened is closed
    then, and so it is when cancelled.
    """
    connection = await _in_time(seconds, "connection", _open(proxy.address if proxy else address))
    try:
        if proxy and proxy.address.tls:
            shaken = connection.start_tls(tls, proxy.address.host)
            await _in_time(seconds, "TLS handshake", shaken)
        if proxy and address.tls:
            await _in_time(seconds, "tunnel", _tunnel(connection, proxy, address, seconds))
        if address.tls:
            await _in_time(seconds, "TLS handshake", connection.start_tls(tls, address.host))
    except BaseException:
        connection.close()
        raise
    return connection


def proxy_of(url: str) -> Proxy:
    """The proxy of a setting, user and password allowed. Raises KodeError `ConfigInvalid`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if not host or parts.scheme not in ("http", "https"):
        text = "The setting `proxy` is no HTTP proxy: use one such as http://proxy.example:3128"
        raise KodeError("ConfigInvalid", text)
    tls = parts.scheme == "https"
    headers: tuple[_Header, ...] = ()
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = ((b"Proxy-Authorization", b"Basic " + b64encode(user.encode())),)
    return Proxy(Address(host, port or (443 if tls else 80), tls), headers)


async def _in_time(seconds: float, what: str, step: Coroutine[Any, Any, T]) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError as error:
        raise httpx.ConnectTimeout(f"no {what} in time") from error
    except OSError as error:
        raise httpx.ConnectError(describe_os_error(error)) from error


async def _open(address: Address) -> HttpConnection:
    reader, writer = await asyncio.open_connection(
        address.host,
        address.port,
        limit=_READ_AHEAD,
        happy_eyeballs_delay=None if _is_address(address.host) else _HAPPY_EYEBALLS_DELAY,
    )
    return HttpConnection(reader, writer)


async def _tunnel(
    connection: HttpConnection, proxy: Proxy, address: Address, seconds: float
) -> None:
    """RFC 9110 section 9.3.6."""
    asked = h11.Request(
        method=b"CONNECT",
        target=address.authority,
        headers=[(b"Host", address.authority), (b"Accept", b"*/*"), *proxy.headers],
    )
    answer = await connection.ask(asked, b"", seconds)
    if not 200 <= answer.status_code < 300:
        raise httpx.ProxyError(f"{answer.status_code} {answer.reason.decode('ascii', 'replace')}")


def _is_address(host: str) -> bool:
    """Return whether `host` is an address, which leaves nothing to race for.

    A cancelled race leaves sockets behind.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Kept(NamedTuple):
    address: Address
    connection: HttpConnection
    since: float


class HttpRequest(NamedTuple):
    """A request to `address`; `host` is what the header of that name says."""

    method: str
    address: Address
    host: bytes
    target: bytes
    headers: Mapping[str, str]
    body: bytes | None

    def head(self, proxy: Proxy | None) -> h11.Request:
        """Return what is sent before the body. A proxy is told where a plain request goes.

        Raises httpx.LocalProtocolError for a header that HTTP does not allow.
        """
        headers = [(b"Host", self.host)]
        headers += [(name.encode(), value.encode()) for name, value in self.headers.items()]
        if self.body is not None:
            headers.append((b"Content-Length", b"%d" % len(self.body)))
        target = self.target
        if proxy is not None and not self.address.tls:
            headers = [*proxy.headers, *headers]
            target = b"http://" + self.host + target
        try:
            return h11.Request(method=self.method, target=target, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error


class Exchange(NamedTuple):
    """A request that was sent: the head of its answer, and the connection that has the rest."""

    address: Address
    connection: HttpConnection
    head: h11.Response


class ConnectionPool:
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

    async def ask(self, request: HttpRequest) -> Exchange:
        """Send; `release` what it returns. Raises httpx.TransportError."""
        address, asked = request.address, request.head(self._proxy)
        connection = self._idle_connection(address) or await connect(
            address, self._proxy, self._tls, self._timeouts.connect
        )
        try:
            head = await connection.ask(asked, request.body or b"", self._timeouts.write)
        except BaseException:
            connection.close()
            raise
        return Exchange(address, connection, head)

    def release(self, exchange: Exchange) -> None:
        """Keep the connection if the answer was read to its end, or else close it."""
        if exchange.connection.end_answer():
            self._idle.append(_Kept(exchange.address, exchange.connection, time.monotonic()))
        else:
            exchange.connection.close()

    def close(self) -> None:
        """Close the idle connections; a running request closes its own."""
        while self._idle:
            self._idle.pop().connection.close()

    def _idle_connection(self, address: Address) -> HttpConnection | None:
        oldest = time.monotonic() - _KEEP_IDLE
        while self._idle:
            kept = self._idle.pop()
            if kept.address == address and kept.since > oldest and kept.connection.is_idle:
                return kept.connection
            kept.connection.close()
        return None
