"""HTTP to one host: the one place that knows the HTTP library.

The system's proxy variables are ignored, certificates are checked against the system's store,
redirects are not followed, and plain http goes to this machine only (W9).
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Protocol

import httpx

from kode_sidecar import __version__
from kode_sidecar.errors import KodeError
from kode_sidecar.providers.content_coding import Unpacker
from kode_sidecar.providers.http_transport import PoolTransport
from kode_sidecar.providers.provider_config import HttpTimeouts

_HEADERS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "user-agent": f"kode-sidecar/{__version__}",
}
# A handful of paths are ever asked for, and taking an address apart costs more than a request.
_REMEMBERED_PATHS = 16


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
        self, response: httpx.Response, stream: httpx.AsyncByteStream, host: str, idle: float
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._host = host
        self._idle = idle
        coding = self.headers.get("content-encoding", "identity")
        chunks = aiter(stream)
        self._chunks = chunks if coding == "identity" else _unpacked(chunks, Unpacker(coding, host))
        self.note_progress()

    def note_progress(self) -> None:
        """Something of worth came: the idle time begins anew. Keep-alives are none of that."""
        self._patience = self._idle

    async def read(self) -> bytes:
        """The next bytes as they come; nothing at the end. Raises KodeError `Network`.

        Only time spent in here counts as idle: a slow reader is not the host's fault.
        """
        now = asyncio.get_running_loop().time
        started = now()
        try:
            async with asyncio.timeout(self._patience):
                data = await anext(self._chunks, b"")
            self._patience -= now() - started
            return data
        except TimeoutError:
            text = f"{self._host} sent nothing new for {self._idle:g} seconds: try again."
            raise KodeError("Network", text) from None
        except httpx.TransportError as error:
            raise _network_error(self._host, error) from None

    async def read_all(self, limit: int) -> bytes:
        """The body, at most `limit` bytes of it. Raises KodeError `Network`."""
        body = bytearray()
        while len(body) < limit and (data := await self.read()):
            body += data
        return bytes(body[:limit])

    async def drain(self, seconds: float) -> None:
        """Read the end of a body that is known to be over, so that the connection can be kept."""
        self._patience = min(self._patience, seconds)
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
        base_url = config.base_url.rstrip("/")

        @lru_cache(_REMEMBERED_PATHS)
        def url(path: str) -> httpx.URL:
            return httpx.URL(base_url + path)

        self._url = url
        self._transport = PoolTransport(tls or system_tls(), config.proxy, config.timeouts)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        asker: str = "",
    ) -> AsyncGenerator[HttpResponse, None]:
        """Send a request; `path` is appended to the base URL. Leaving closes the connection at
        once unless the body was read to its end; `asker` matters to recordings only.
        Raises KodeError `Network`.
        """
        del asker
        headers = {**_HEADERS, **headers}
        request = httpx.Request(method, self._url(path), content=body, headers=headers)
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                response = await self._transport.handle_async_request(request)
        except TimeoutError:
            seconds = f"{self._timeouts.first_byte:g}"
            text = f"{self.host} did not begin to answer within {seconds} seconds: try again."
            raise KodeError("Network", text) from None
        except httpx.TransportError as error:
            raise _network_error(self.host, error, self._url_name) from None
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        try:
            yield HttpResponse(response, stream, self.host, self._timeouts.idle)
        finally:
            await stream.aclose()  # httpx's own around it would double the time of a cancel

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


def system_tls() -> ssl.SSLContext:
    """The certificates of the system's store; some 0.05 s, so in a thread. For all clients.

    A program built elsewhere may not know where this system keeps them: then those of httpx.
    """
    known = ssl.get_default_verify_paths()
    if sys.platform == "win32" or known.cafile or known.capath:
        return ssl.create_default_context()
    return httpx.create_ssl_context(trust_env=False)


async def _unpacked(chunks: AsyncIterator[bytes], unpacker: Unpacker) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        for piece in unpacker.feed(chunk):
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
