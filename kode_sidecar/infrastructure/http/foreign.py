"""Sends requests safely to addresses named by others, as an MCP server names its log-in.

Only https to the public internet, unless the user wrote that host; it connects to the very address
that it looked up and checked; it follows no redirect; size and time of an answer are limited (W19).
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from kode_sidecar.core.text.uris import web_address
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import OUR_HEADERS
from kode_sidecar.infrastructure.http.request import REFUSED_ADDRESS, HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.http.response import HttpResponse, NetworkError, network_error
from kode_sidecar.infrastructure.http.transport import Connections, HttpFailure, system_tls

MAX_ANSWER = 1_000_000
"""The limit of an answer in bytes, after decompression."""

_SECONDS = 30.0
_TIMES = HttpTimeouts(first_byte=_SECONDS, idle=_SECONDS)
_NAT64 = IPv6Network("64:ff9b::/96")
_INTERNET = IPv6Network("2000::/3")
_SPECIAL = (
    IPv6Network("3fff::/20"),  # for handbooks
    IPv4Network("192.0.0.0/24"),  # for protocols of a network's own
    IPv4Network("192.88.99.0/24"),
    IPv4Network("168.63.129.16/32"),  # the metadata of Azure
)
_PORTS = {"http": 80, "https": 443}


class _Place(NamedTuple):
    scheme: str
    host: str
    port: int
    netloc: str
    target: str

    def at(self, address: str) -> str:
        """Return the URL with an IP address, which needs no further look-up."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.target}"


class ForeignHttp:
    """Sends requests to foreign addresses. `own` are hosts the user wrote, with or without port.

    `setting` is the name of the setting for such hosts. `ports` are the ones that are asked at
    others, by default all; `plain` allows http there.
    """

    def __init__(
        self,
        own: Collection[str],
        setting: str,
        seconds: float = _SECONDS,
        *,
        ports: Collection[int] = (),
        plain: bool = False,
    ) -> None:
        self._own = {host.lower() for host in own}
        self._ports = ports
        self._plain = plain
        self._setting = setting
        self._seconds = seconds

    async def check(self, url: str) -> None:
        """Raise NetworkError for an address that must be neither used nor offered to a user."""
        await self._looked_up(url)

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer. Raises KodeError, mostly NetworkError."""
        try:
            async with (
                asyncio.timeout(self._seconds),
                self.stream(HttpRequest(method, url, headers, body)) as response,
            ):
                data = await response.read_all(MAX_ANSWER + 1)
        except TimeoutError:
            raise _refused(f"{_shown(url)} did not answer in {self._seconds:g} seconds") from None
        except NetworkError:
            raise
        except KodeError as error:  # a compressed body that is broken, or too large
            raise _refused(error.message.removesuffix(".")) from None
        if len(data) > MAX_ANSWER:
            raise _refused(f"{_shown(url)} sent more than {MAX_ANSWER:,} bytes")
        return response.status, data

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        """Send a request to the address that is its path, as a host does: it can be recorded.

        The caller limits its time. Raises NetworkError.
        """
        place, addresses = await self._looked_up(request.path)
        times = request.timeouts or _TIMES
        # Not reused: a connection to an address belongs to the name whose certificate it checked.
        connections = Connections(system_tls())
        named = {**OUR_HEADERS, **request.headers, "host": place.netloc}
        try:
            for at, address in enumerate(addresses, 1):
                url = place.at(address)
                exchange = connections.ask(
                    request.method, url, named, request.body, times, place.host
                )
                try:
                    await exchange.answered()
                except HttpFailure as failure:
                    # Nothing was sent to one that cannot be reached: try the next one.
                    if failure.stage != "connect" or at == len(addresses):
                        raise network_error(_shown(request.path), failure) from None
                else:
                    yield HttpResponse(exchange, place.host, times)
                    return
        finally:
            await connections.aclose()

    async def aclose(self) -> None:
        """Do nothing: no connection stays open."""

    async def _looked_up(self, url: str) -> tuple[_Place, list[str]]:
        place = _place(url)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _refused(f"the address of {_shown(place.host)} was not found") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        own = bool({place.netloc.lower(), place.host} & self._own)
        if not own and not all(map(is_public, addresses)):
            text = f"{_shown(place.netloc)} is not on the public internet, so nothing is sent there"
            raise _refused(f"{text}: if you trust it, name it in `{self._setting}`")
        if not own and self._ports and place.port not in self._ports:
            raise _refused(f"{_shown(place.netloc)} is asked at a port that is not allowed")
        plain = self._plain or (own and all(map(_is_loopback, addresses)))
        if place.scheme == "http" and not plain:
            raise _refused(f"{_shown(url)} does not begin with https://")
        return place, addresses


def _place(url: str) -> _Place:
    parts = web_address(url)
    if parts is None:
        raise _refused(f"{_shown(url)} is no web address")
    host, port = str(parts.hostname), parts.port
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Place(parts.scheme, host, port or _PORTS[parts.scheme], parts.netloc, target)


def is_public(address: str) -> bool:
    """Return whether an address is on the public internet, also if it embeds another one."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = _inside(found) or found
    if isinstance(found, IPv6Address) and found not in _INTERNET:
        return False
    special = any(found in network for network in _SPECIAL)
    return found.is_global and not found.is_multicast and not special


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, or None."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def _refused(reason: str) -> NetworkError:
    error = NetworkError(reason, f"{reason}.", retryable=False)
    error.details = dict[str, object](reason=REFUSED_ADDRESS)
    return error


def _shown(words: str) -> str:
    """Clean foreign text for a message: short, and without terminal control characters."""
    return re.sub(r"[^!-~]", "?", words[:200])
