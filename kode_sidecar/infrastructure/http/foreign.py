"""Sends requests safely to addresses named by others, as an MCP server names its log-in.

Only https to the public internet, unless the user wrote that host; it connects to the very address
that it looked up and checked; it follows no redirect; size and time of an answer are limited (W19).
"""

import asyncio
import re
import socket
from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import OUR_HEADERS
from kode_sidecar.infrastructure.http.response import HttpResponse, NetworkError, network_error
from kode_sidecar.infrastructure.http.timeouts import HttpTimeouts
from kode_sidecar.infrastructure.http.transport import Connections, HttpFailure, system_tls

MAX_ANSWER = 1_000_000
"""The limit of an answer in bytes, after decompression."""

_SECONDS = 30.0
_TIMES = HttpTimeouts(first_byte=_SECONDS, idle=_SECONDS)
# No blanks, control characters, look-alike letters, or backslashes, which browsers turn into `/`.
_ADDRESS = re.compile(r"https?://[!-\[\]-~]{1,8000}", re.IGNORECASE)
_NAT64 = IPv6Network("64:ff9b::/96")
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

    `setting` is the name of the setting for such hosts.
    """

    def __init__(self, own: Collection[str], setting: str, seconds: float = _SECONDS) -> None:
        self._own = {host.lower() for host in own}
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
            async with asyncio.timeout(self._seconds):
                place, addresses = await self._looked_up(url)
                for address in addresses[:-1]:
                    try:
                        return await _asked(place, address, method, headers, body)
                    except HttpFailure as failure:
                        if failure.stage != "connect":  # else nothing was sent: try the next one
                            raise
                return await _asked(place, addresses[-1], method, headers, body)
        except TimeoutError:
            raise _refused(f"{_shown(url)} did not answer in {self._seconds:g} seconds") from None
        except HttpFailure as failure:
            raise network_error(_shown(url), failure) from None
        except NetworkError:
            raise
        except KodeError as error:  # a compressed body that is broken, or too large
            raise _refused(error.message.removesuffix(".")) from None

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
        if place.scheme == "http" and not (own and all(map(_is_loopback, addresses))):
            raise _refused(f"{_shown(url)} does not begin with https://")
        return place, addresses


def _place(url: str) -> _Place:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if not _ADDRESS.fullmatch(url) or not host or parts.username is not None:
        raise _refused(f"{_shown(url)} is no web address")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Place(parts.scheme, host, port or _PORTS[parts.scheme], parts.netloc, target)


async def _asked(
    place: _Place, address: str, method: str, headers: Mapping[str, str], body: bytes | None
) -> tuple[int, bytes]:
    # Not reused: a connection to an IP address belongs to the name whose certificate it checked.
    connections = Connections(system_tls())
    named = {**OUR_HEADERS, **headers, "host": place.netloc}
    exchange = connections.ask(method, place.at(address), named, body, _TIMES, place.host)
    try:
        await exchange.answered()
        response = HttpResponse(exchange, place.host, _TIMES)
        data = await response.read_all(MAX_ANSWER + 1)
        if len(data) > MAX_ANSWER:
            raise _refused(f"{place.host} sent more than {MAX_ANSWER:,} bytes")
        return exchange.status, data
    finally:
        await connections.aclose()


def is_public(address: str) -> bool:
    """Return whether an address is on the public internet, also if it embeds another one."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = _inside(found) or found
    special = isinstance(found, IPv6Address) and found.is_site_local
    return found.is_global and not found.is_multicast and not special


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, or None."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def _refused(reason: str) -> NetworkError:
    return NetworkError(reason, f"{reason}.", retryable=False)


def _shown(words: str) -> str:
    """Clean foreign text for a message: short, and without terminal control characters."""
    return re.sub(r"[^!-~]", "?", words[:200])
