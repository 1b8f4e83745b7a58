"""Reads the answer of a host as it comes, decompresses it, and gives up after silence.

We never ask for a compressed body, and a few kilobytes can expand to gigabytes: decompression has
a total limit, and works in small pieces (W16).
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import STALLED, HttpTimeouts
from kode_sidecar.infrastructure.http.transport import Exchange, HttpFailure

MAX_UNPACKED = 64 * 1024 * 1024
PIECE = 256 * 1024
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
# Seconds left for the first bytes of the body after a late head.
_LEAST_IDLE = 5.0


class NetworkError(KodeError):
    """A request that failed, before or during its answer. `reason` is why, in a few words."""

    def __init__(
        self, reason: str, text: str, *, retryable: bool | None = None, silent: float | None = None
    ) -> None:
        """`silent`: the host was merely silent, for so many seconds."""
        details: dict[str, object] = {} if silent is None else {STALLED: round(silent)}
        super().__init__("Network", text, retryable=retryable, details=details)
        self.reason = reason


def network_error(host: str, failure: HttpFailure, url_name: str = "") -> NetworkError:
    """Turn a failure into an error for the user; `url_name` is the setting of the address."""
    reason, retryable = failure.reason, True
    text = f"Cannot connect to {host}: {reason}"
    match failure.stage:
        case "exchange":
            text = f"The connection to {host} broke ({reason}): try again."
        case "proxy":
            text = (
                f"The proxy refused the connection to {host}: {reason}; check the setting `proxy`."
            )
        case "connect":
            text += f"; check {url_name}, the network, and the setting `proxy` if you need one."
        case "certificate":
            text += "; add the certificate authority of your network to the system's store."
            retryable = False
    return NetworkError(reason, text, retryable=retryable)


class HttpResponse:
    """A response whose body is not read yet. `headers` has names in lower case."""

    def __init__(
        self, exchange: Exchange, host: str, timeouts: HttpTimeouts, waited: float = 0.0
    ) -> None:
        """`waited` is how long the head took, which counts as silence."""
        self.status = exchange.status
        self.headers = exchange.headers
        self._host = host
        self._timeouts = timeouts
        self._next: Callable[[], Awaitable[bytes]] = exchange.read
        coding = self.headers.get("content-encoding", "identity")
        if coding != "identity":
            pieces = _unpacked(self._next, Unpacker(coding, host))
            self._next = partial(anext, pieces, b"")
        self.note_progress()
        self._idle = max(timeouts.idle - waited, min(timeouts.idle, _LEAST_IDLE))

    def note_progress(self) -> None:
        """Restart the limit on bytes without content, such as keep-alives: there was progress."""
        self._unspoken = self._timeouts.pinged

    async def read(self) -> bytes:
        """Return the next bytes as they come; nothing at the end. Raises NetworkError.

        Only time spent in this method counts as idle: a slow reader is not the host's fault.
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
            reason = f"{said} for {round(seconds) or seconds:g} seconds"
            text = f"{self._host} sent {reason}: try again."
            raise NetworkError(reason, text, silent=seconds) from None
        except HttpFailure as failure:
            raise network_error(self._host, failure) from None

    async def read_all(self, limit: int) -> bytes:
        """Return the body, at most `limit` bytes of it. Raises NetworkError."""
        body = bytearray()
        while len(body) < limit and (data := await self.read()):
            body += data
        return bytes(body[:limit])

    async def drain(self, seconds: float) -> None:
        """Read the rest of a finished answer, so that the connection can be reused."""
        self._unspoken = min(self._unspoken, seconds)
        try:
            while await self.read():
                pass
        except KodeError:
            return


class Unpacker:
    """Decompresses one body. Raises KodeError `Provider` for an unknown coding."""

    def __init__(self, coding: str, host: str) -> None:
        if coding.strip().lower() not in _KNOWN:
            text = f"{host} packed its answer in a way that nobody asked for: try again."
            raise KodeError("Provider", text)
        self._host = host
        self._left = MAX_UNPACKED
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed `data` in pieces.

        Raises KodeError `TooLarge` beyond the limit, `Network` for broken bytes.
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
                # A body may consist of several compressed parts.
                data = self._zlib.unused_data.lstrip(b"\0")
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)


async def _unpacked(
    read: Callable[[], Awaitable[bytes]], unpacker: Unpacker
) -> AsyncGenerator[bytes, None]:
    while data := await read():
        for piece in unpacker.feed(data):
            yield piece
            # Little data can yield many pieces without a wait for the network: let others run.
            await asyncio.sleep(0)
