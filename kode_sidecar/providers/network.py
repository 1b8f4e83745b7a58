"""Sockets for the HTTP library, on asyncio's streams.

httpcore takes any network backend. This one reads without the two system calls a read that its
own backend spends on stopping and restarting the socket, merges the chunks of each read, and
closes at once when cancelled.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from kode_sidecar.providers.chunk_merger import ChunkMerger

_READ_AHEAD = 256 * 1024
# Room that the merger's own size line may take.
_SIZE_LINE = 32
# RFC 8305 section 5: how long one address family is tried before the other.
_HAPPY_EYEBALLS_DELAY = 0.25


class StreamsBackend(httpcore.AsyncNetworkBackend):
    """Opens TCP connections with `asyncio.open_connection`."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Raises httpcore.ConnectTimeout and httpcore.ConnectError."""
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(
                    host,
                    port,
                    limit=_READ_AHEAD,
                    local_addr=(local_address, 0) if local_address else None,
                    happy_eyeballs_delay=None if _is_address(host) else _HAPPY_EYEBALLS_DELAY,
                )
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("no connection in time") from error
        except OSError as error:
            raise httpcore.ConnectError(describe_os_error(error)) from error
        return SocketStream(reader, writer)

    async def sleep(self, seconds: float) -> None:
        """Wait; used between connection attempts."""
        await asyncio.sleep(seconds)


class SocketStream(httpcore.AsyncNetworkStream):
    """One connection. Errors are httpcore's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._merger = ChunkMerger()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """What is there, at least one byte; nothing at the end of the stream."""
        try:
            async with asyncio.timeout(timeout):
                while data := await self._reader.read(max_bytes - _SIZE_LINE):
                    if merged := self._merger.feed(data):
                        return merged
                return b""
        except TimeoutError as error:
            raise httpcore.ReadTimeout("nothing came in time") from error
        except OSError as error:
            raise httpcore.ReadError(describe_os_error(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Write all; a request is never written before the response to the one before is read."""
        self._merger.begin_request()
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout("the request was not taken in time") from error
        except OSError as error:
            raise httpcore.WriteError(describe_os_error(error)) from error

    async def aclose(self) -> None:
        """Close at once: nothing that is still to be sent matters any more."""
        self._writer.transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """The same connection, encrypted. Raises httpcore.ConnectTimeout and ConnectError."""
        try:
            async with asyncio.timeout(timeout):
                await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout("no TLS handshake in time") from error
            if isinstance(error, OSError):
                raise httpcore.ConnectError(describe_os_error(error)) from error
            raise
        return SocketStream(self._reader, self._writer)

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks for: `ssl_object`, and `is_readable` of an idle connection."""
        if info == "is_readable":
            # A server says nothing unasked, so only a closed connection is readable when idle.
            return self._reader.at_eof() or self._writer.transport.is_closing()
        return self._writer.get_extra_info(info)


def _is_address(host: str) -> bool:
    """An address leaves nothing to race for (and a cancelled race leaves sockets behind)."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def describe_os_error(error: OSError) -> str:
    """A failure of the network in a few words, without addresses or paths."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'no secure connection'}"
    if isinstance(error, socket.gaierror):
        return "its address was not found"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionError):
        return "the connection was closed"
    return error.strerror or "no connection could be made"
