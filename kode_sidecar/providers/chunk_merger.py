"""Many small HTTP chunks made one. Sans-IO.

Model hosts send every delta as a chunk of its own, and the HTTP library takes several times
longer over a chunk than we take over a delta. Chunk borders mean nothing (RFC 9112 section 7.1),
so what one read of the socket brings is passed on as one chunk.
"""

import re

_HEAD_END = re.compile(rb"\n\r?\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:[ \t]*chunked[ \t]*\r?$")
_INTERIM = re.compile(rb"HTTP/1\.\d 1(?!01)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\r\n]*)?\r\n")
_MAX_HEAD = 65_536
_MAX_SIZE_LINE = 1_024


class ChunkMerger:
    """Sits between the socket and the HTTP library, for the responses of one connection.

    Only chunked bodies are touched. What looks odd is passed on as it is, with all that
    follows, so that the library finds the same fault. Call `begin_request` before each request.
    """

    def __init__(self) -> None:
        self.begin_request()

    def begin_request(self) -> None:
        """The next bytes begin a response."""
        self._in_head = True
        self._passes = False  # nothing more is touched until the next request
        self._rest: bytes = b""  # a head or a line that is not whole yet
        self._missing = 0  # data of the current chunk that is still to come
        self._at_border = False  # its line end is still to come

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on; maybe none while a head or a line is incomplete."""
        if self._passes:
            return data
        data, self._rest = self._rest + data, b""
        heads = b""
        while self._in_head:
            end = _HEAD_END.search(data)
            if end is None:
                self._passes = len(data) > _MAX_HEAD
                if self._passes:
                    return heads + data
                self._rest = data
                return heads
            head, data = data[: end.end()], data[end.end() :]
            heads += head
            self._in_head = _INTERIM.match(head) is not None
            if not self._in_head and not _CHUNKED.search(head):
                self._passes = True
                return heads + data
        return heads + self._merge(data)

    def _merge(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        at = 0
        while at < len(data) and not self._passes and not self._rest:
            if self._missing or self._at_border:
                at = self._continue_chunk(data, at, parts)
                continue
            line = _SIZE.match(data, at)
            size = int(line[1], 16) if line else 0
            if line is None or size == 0:
                # The last chunk with its trailers is the library's, and so is a bad line.
                self._passes = line is not None or _is_whole_line(data, at)
                self._rest = b"" if self._passes else data[at:]
                break
            start, end = line.end(), line.end() + size
            if data[end : end + 2] == b"\r\n":
                parts.append(data[start:end])
                at = end + 2
            else:
                self._missing, self._at_border, at = size, True, start
        body = b"".join(parts)
        merged = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return merged + data[at:] if self._passes else merged

    def _continue_chunk(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Take what there is of a chunk that came in part; returns where it stopped."""
        if self._missing:
            piece = data[at : at + self._missing]
            parts.append(piece)
            self._missing -= len(piece)
            return at + len(piece)
        border = data[at : at + 2]
        if border == b"\r\n":
            self._at_border = False
            return at + 2
        if border == b"\r":
            self._rest = border
        else:
            self._passes = True
        return at


def _is_whole_line(data: bytes, at: int) -> bool:
    return b"\n" in data[at : at + _MAX_SIZE_LINE] or len(data) - at > _MAX_SIZE_LINE
