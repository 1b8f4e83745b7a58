"""Opens connections to hosts: the socket, through a proxy if there is one, and TLS.

`Address` is where a request goes, `Proxy` what stands in between. Failures are httpx's.
"""

import asyncio
import ipaddress
import ssl
from base64 import b64encode
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import h11
import httpx

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.http_connection import HttpConnection, describe_os_error

_READ_AHEAD = 256 * 1024
# RFC 8305 section 5: how long one address family is tried before the other.
_HAPPY_EYEBALLS_DELAY = 0.25

_Header = tuple[bytes, bytes]

T = TypeVar("T")


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


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy and the headers it wants."""

    address: Address
    headers: tuple[_Header, ...] = field(repr=False)


async def connect(
    address: Address, proxy: Proxy | None, tls: ssl.SSLContext, seconds: float
) -> HttpConnection:
    """A connection on which `address` can be asked. Each step may take so many seconds.

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
    """An address leaves nothing to race for (and a cancelled race leaves sockets behind)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
