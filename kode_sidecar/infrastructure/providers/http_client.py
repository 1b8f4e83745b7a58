"""A model host over HTTP: timeouts of its own, network failures in words, packed bodies.

Nobody asks for a packed body, and a few kilobytes can unpack to gigabytes: nothing is unpacked
beyond a limit, and never much at once (W16).
"""

import asyncio
import ssl
import sys
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Protocol

import httpx

from kode_sidecar import __version__
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.http_transport import (
    Address,
    ConnectionPool,
    Exchange,
    HttpRequest,
)
from kode_sidecar.infrastructure.providers.provider_config import HttpTimeouts
from kode_sidecar.infrastructure.providers.rate_limiter import STALLED

MAX_UNPACKED = 64 * 1024 * 1024
PIECE = 256 * 1024
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_HEADERS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "user-agent": f"kode-sidecar/{__version__}",
}
_REMEMBERED_PATHS = 16
# A head that came late leaves this much for the first bytes of the body.
_LEAST_IDLE = 5.0


class Unpacker:
    """Unpacks one body. Raises KodeError `Provider` for a coding that is not known."""

    def __init__(self, coding: str, host: str) -> None:
        if coding.strip().lower() not in _KNOWN:
            text = f"{host} packed its answer in a way that nobody asked for: try again."
            raise KodeError("Provider", text)
        self._host = host
        self._left = MAX_UNPACKED
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return what `data` unpacks to, in pieces.

        Raises KodeError `TooLarge` beyond the limit, `Network` for bytes that are broken.
        """
        while data:
            try:
                piece = self._zlib.decompress(data, PIECE)
            except zlib.error:
                text = f"The answer of {self._host} arrived broken: try again."
                raise KodeError("Network", text) from None
            self._left -= len(piece)
            if self._left < 0:
                text = f"{self._host} sent a packed answer of more than {MAX_UNPACKED:,} bytes."
                raise KodeError("TooLarge", text)
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            if self._zlib.eof:
                # A body may be several packed parts, one after the other.
                data = self._zlib.unused_data.lstrip(b"\0")
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)


class HttpHost(Protocol):
    """Who is talked to: a `ProviderConfig`, or a `memory_http.MemoryHost`."""

    @property
    def base_url(self) -> str: ...

    @property
    def url_name(self) -> str:
        """What the user sets to change the address."""
        ...

    @property
    def proxy(self) -> str | None: ...

    @property
    def timeouts(self) -> HttpTimeouts: ...

    def host(self) -> str:
        """Raises KodeError `ConfigInvalid`."""
        ...


class HttpResponse:
    """A response whose body is still to be read. `headers` has names in lower case."""

    def __init__(
        self, exchange: Exchange, host: str, timeouts: HttpTimeouts, waited: float = 0.0
    ) -> None:
        """`waited` is how long the head took, which is silence, too."""
        head = exchange.head
        self.status = head.status_code
        self.headers: Mapping[str, str] = _decoded(head.headers)
        self._host = host
        self._timeouts = timeouts
        self._next: Callable[[], Awaitable[bytes]] = exchange.connection.read
        coding = self.headers.get("content-encoding", "identity")
        if coding != "identity":
            pieces = _unpacked(self._next, Unpacker(coding, host))
            self._next = partial(anext, pieces, b"")
        self.note_progress()
        self._idle = max(timeouts.idle - waited, min(timeouts.idle, _LEAST_IDLE))

    def note_progress(self) -> None:
        """The model said something: bytes alone, such as keep-alives, count for a while only."""
        self._unspoken = self._timeouts.pinged

    async def read(self) -> bytes:
        """Return the next bytes as they come; nothing at the end. Raises KodeError `Network`.

        Only time spent in here counts as idle: a slow reader is not the host's fault.
        """
        now = asyncio.get_running_loop().time
        started = now()
        try:
            async with asyncio.timeout(min(self._idle, self._unspoken)):
                data = await self._next()
            self._unspoken -= now() - started
            self._idle = self._timeouts.idle
            return data
        except TimeoutError:
            pinged = self._unspoken < self._idle
            seconds = self._timeouts.pinged if pinged else self._timeouts.idle
            said = "nothing but signs of life" if pinged else "nothing new"
            text = f"{self._host} sent {said} for {seconds:g} seconds: try again."
            raise KodeError("Network", text, details={STALLED: round(seconds)}) from None
        except httpx.TransportError as error:
            raise _network_error(self._host, error) from None

    async def read_all(self, limit: int) -> bytes:
        """Return the body, at most `limit` bytes of it. Raises KodeError `Network`."""
        body = bytearray()
        while len(body) < limit and (data := await self.read()):
            body += data
        return bytes(body[:limit])

    async def drain(self, seconds: float) -> None:
        """Read the end of a body that is known to be over, so that the connection can be kept."""
        self._unspoken = min(self._unspoken, seconds)
        try:
            while await self.read():
                pass
        except KodeError:
            return


class HttpClient:
    """Connections to one host, kept and used again. Make one per process.

    Costs some 0.1 s for the certificates and uses no event loop: build it in a thread. `tls`
    replaces the system's certificates. Raises KodeError `ConfigInvalid`.
    """

    def __init__(self, config: HttpHost, tls: ssl.SSLContext | None = None) -> None:
        self.host = config.host()
        self._url_name = config.url_name
        self._timeouts = config.timeouts
        try:
            base_url = httpx.URL(config.base_url.rstrip("/"))
        except httpx.InvalidURL as error:
            text = f"{config.url_name} is no web address ({error}): mend it."
            raise KodeError("ConfigInvalid", text) from None
        self._address = Address.of(base_url)
        self._host_header = base_url.netloc
        # A handful of paths are ever asked for, and taking one apart costs more than a request.
        self._target = lru_cache(_REMEMBERED_PATHS)(partial(_target, str(base_url)))
        self._pool = ConnectionPool(tls or system_tls(), config.proxy, config.timeouts)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
        timeouts: HttpTimeouts | None = None,
    ) -> AsyncGenerator[HttpResponse, None]:
        """Send a request; `path` is appended to the base URL. Leaving closes the connection at
        once unless the body was read to its end; `asker` matters to recordings only, `timeouts`
        are those of the host unless others are given. Raises KodeError `Network`.
        """
        del asker
        timeouts = timeouts or self._timeouts
        now = asyncio.get_running_loop().time
        started = now()
        request = HttpRequest(
            method,
            self._address,
            self._host_header,
            self._target(path),
            {**_HEADERS, **headers},
            body,
        )
        try:
            async with asyncio.timeout(timeouts.first_byte):
                exchange = await self._pool.ask(request)
        except TimeoutError:
            seconds = timeouts.first_byte
            text = f"{self.host} did not begin to answer within {seconds:g} seconds: try again."
            raise KodeError("Network", text, details={STALLED: round(seconds)}) from None
        except httpx.TransportError as error:
            raise _network_error(self.host, error, self._url_name) from None
        try:
            yield HttpResponse(exchange, self.host, timeouts, now() - started)
        finally:
            self._pool.release(exchange)

    async def aclose(self) -> None:
        """Close all connections."""
        self._pool.close()


def system_tls() -> ssl.SSLContext:
    """Return the certificates of the system's store; some 0.05 s, so in a thread. For all clients.

    A program built elsewhere may not know where this system keeps them: then those of httpx.
    """
    known = ssl.get_default_verify_paths()
    if sys.platform == "win32" or known.cafile or known.capath:
        return ssl.create_default_context()
    return httpx.create_ssl_context(trust_env=False)


def _target(base_url: str, path: str) -> bytes:
    return httpx.URL(base_url + path).raw_path


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return them by name; of a name that comes twice both values, as RFC 9110 section 5.2 says."""
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1"), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


async def _unpacked(
    read: Callable[[], Awaitable[bytes]], unpacker: Unpacker
) -> AsyncGenerator[bytes, None]:
    while data := await read():
        for piece in unpacker.feed(data):
            yield piece
            # Much comes out of little, without waiting for the network in between.
            await asyncio.sleep(0)


def _network_error(host: str, error: Exception, url_name: str = "") -> KodeError:
    """`url_name` is the setting that names the host, for failures to reach it."""
    reason = str(error) or "the connection failed"
    if isinstance(error, httpx.ProxyError):
        text = f"The proxy refused the connection to {host}: {reason}; check the setting `proxy`."
        return KodeError("Network", text)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        if "certificate" in reason:
            advice = "add the certificate authority of your network to the system's store"
            text = f"Cannot connect to {host}: {reason}; {advice}."
            return KodeError("Network", text, retryable=False)
        advice = f"check {url_name}, the network, and the setting `proxy` if you need one"
        return KodeError("Network", f"Cannot connect to {host}: {reason}; {advice}.")
    return KodeError("Network", f"The connection to {host} broke ({reason}): try again.")
