"""One HTTP/1.1 connection: h11 is the grammar, asyncio the socket.

Model hosts send every delta as a chunk of its own, and h11 takes several times longer over a
chunk than we take over a delta. Chunk borders mean nothing (RFC 9112 section 7.1), so what one
read of the socket brings is passed on as one chunk.
"""

import asyncio
import re
import socket
import ssl

import h11
import httpx

_HEAD_END = re.compile(rb"\n\r?\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:[ \t]*chunked[ \t]*\r?$")
_INTERIM = re.compile(rb"HTTP/1\.\d 1(?!01)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\r\n]*)?\r\n")
_MAX_MERGED_HEAD = 65_536
_MAX_SIZE_LINE = 1_024
_READ_BYTES = 64 * 1024
# Room that the merger's own size line may take.
_SIZE_LINE = 32
_MAX_HEAD = 100 * 1024


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
        """Return the bytes to pass on; maybe none while a head or a line is incomplete."""
        if self._passes:
            return data
        data, self._rest = self._rest + data, b""
        heads = b""
        while self._in_head:
            end = _HEAD_END.search(data)
            if end is None:
                self._passes = len(data) > _MAX_MERGED_HEAD
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


class HttpConnection:
    """Ask, read to the end of the body, ask again. Failures are httpx's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._begin()

    @property
    def is_idle(self) -> bool:
        """It can be asked: the body was read to its end and both sides keep the connection.

        A server says nothing unasked, so one whose end is readable has closed it.
        """
        closed = self._reader.at_eof() or self._writer.transport.is_closing()
        return self._grammar.our_state is h11.IDLE and not closed

    async def ask(self, request: h11.Request, body: bytes, write_seconds: float) -> h11.Response:
        """Send a request; the head of its answer. Raises httpx.TransportError."""
        self._merger.begin_request()
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        data = b"".join(self._grammar.send(event) or b"" for event in events)
        try:
            self._writer.write(data)
            if self._writer.transport.get_write_buffer_size():
                async with asyncio.timeout(write_seconds):
                    await self._writer.drain()
        except TimeoutError as error:
            raise httpx.WriteTimeout("the request was not taken in time") from error
        except OSError:
            pass  # a server may answer before it has heard all, and close
        while not isinstance(event := await self._next(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError("the server sent something else than an answer")
        return event

    async def read(self) -> bytes:
        """Return the next bytes of the body, nothing at its end. Raises httpx.TransportError."""
        if self._grammar.their_state is not h11.SEND_BODY:
            return b""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    def end_answer(self) -> bool:
        """End the answer; return whether the connection can be asked again."""
        if self._grammar.our_state is self._grammar.their_state is h11.DONE:
            self._grammar.start_next_cycle()
        return self.is_idle

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """From now on what is said is encrypted, and a new conversation. Raises OSError."""
        await self._writer.start_tls(tls, server_hostname=host)
        self._begin()

    def close(self) -> None:
        """Close at once: nothing that is still to be sent matters any more."""
        self._writer.transport.abort()

    def _begin(self) -> None:
        self._merger = ChunkMerger()
        self._grammar = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)

    async def _next(self) -> h11.Event | None:
        """Return what comes next; None when the answer is over."""
        grammar = self._grammar
        try:
            while True:
                event = grammar.next_event()
                if isinstance(event, h11.Event):
                    return event
                if event is h11.PAUSED:
                    return None
                data = await self._receive()
                if not data and grammar.their_state is h11.SEND_RESPONSE:
                    text = "Server disconnected without sending a response."
                    raise httpx.RemoteProtocolError(text)
                grammar.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(describe_os_error(error)) from error

    async def _receive(self) -> bytes:
        """Return what is there, at least one byte; nothing at the end of the stream."""
        while data := await self._reader.read(_READ_BYTES - _SIZE_LINE):
            if merged := self._merger.feed(data):
                return merged
        return b""


def describe_os_error(error: OSError) -> str:
    """Return a failure of the network in a few words, without addresses or paths."""
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
