"""Sends requests to one host: with its address, its timeouts, and our headers."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

from kode_sidecar import __version__
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpRequest, HttpTimeouts
from kode_sidecar.infrastructure.http.response import HttpResponse, NetworkError, network_error
from kode_sidecar.infrastructure.http.transport import (
    Connections,
    Exchange,
    HttpFailure,
    check_url,
    system_tls,
)

OUR_HEADERS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "user-agent": f"kode-sidecar/{__version__}",
}


class HttpHost(Protocol):
    """The host of a client: a `ProviderConfig`, or a `memory_http.MemoryHost`."""

    @property
    def base_url(self) -> str: ...

    @property
    def url_name(self) -> str:
        """The name of the setting for the address."""
        ...

    @property
    def proxy(self) -> str | None: ...

    @property
    def timeouts(self) -> HttpTimeouts: ...

    def host(self) -> str:
        """Return the host of the address. Raises KodeError `ConfigInvalid`."""
        ...


class HttpClient:
    """Reusable connections to one host. Make one per process.

    Creating it takes some 0.1 s for the certificates and needs no event loop: do it in a thread.
    `tls` replaces the system's certificates. Raises KodeError `ConfigInvalid`.
    """

    def __init__(self, config: HttpHost, tls: ssl.SSLContext | None = None) -> None:
        self.host = config.host()
        self._url_name = config.url_name
        self._timeouts = config.timeouts
        self._base_url = config.base_url
        try:
            check_url(config.base_url)
        except ValueError as error:
            text = f"{config.url_name} is no web address ({error}): fix it."
            raise KodeError("ConfigInvalid", text) from None
        self._connections = Connections(tls or system_tls(), config.proxy)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[HttpResponse, None]:
        """Send a request to the base URL, with its path appended if there is one.

        Leaving closes the connection at once unless the body was read to its end. Raises
        NetworkError.
        """
        timeouts = request.timeouts or self._timeouts
        now = asyncio.get_running_loop().time
        started = now()
        base, path = self._base_url, request.path
        url = base.rstrip("/") + path if path else base
        headers = {**OUR_HEADERS, **request.headers}
        exchange = self._connections.ask(request.method, url, headers, request.body, timeouts)
        try:
            await self._answered(exchange, timeouts.first_byte)
            yield HttpResponse(exchange, self.host, timeouts, now() - started)
        finally:
            exchange.cancel()  # no round of the loop: a recording could not repeat it

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()

    async def _answered(self, exchange: Exchange, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await exchange.answered()
        except TimeoutError:
            reason = f"did not begin to answer within {round(seconds) or seconds:g} seconds"
            text = f"{self.host} {reason}: try again."
            raise NetworkError(reason, text, silent=seconds) from None
        except HttpFailure as failure:
            raise network_error(self.host, failure, self._url_name) from None
