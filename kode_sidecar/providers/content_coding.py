"""Bodies that came compressed although none was asked for. Sans-IO.

A few kilobytes can unpack to gigabytes, so nothing is unpacked beyond a limit, and never much at
once (W16).
"""

import zlib
from collections.abc import Iterator

from kode_sidecar.errors import KodeError

MAX_UNPACKED = 64 * 1024 * 1024
PIECE = 256 * 1024

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})


class Unpacker:
    """Unpacks one body. Raises KodeError `Provider` for a coding that is not known."""

    def __init__(self, coding: str, host: str, most_bytes: int = MAX_UNPACKED) -> None:
        if coding.strip().lower() not in _KNOWN:
            text = f"{host} packed its answer in a way that nobody asked for: try again."
            raise KodeError("Provider", text)
        self._host = host
        self._left = most_bytes
        self._most = most_bytes
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` unpacks to, in pieces.

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
                text = f"{self._host} sent a packed answer of more than {self._most:,} bytes."
                raise KodeError("TooLarge", text)
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            if self._zlib.eof:
                # A body may be several packed parts, one after the other.
                data = self._zlib.unused_data.lstrip(b"\0")
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)
