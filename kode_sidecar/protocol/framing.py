"""LSP base protocol frames (LSP 3.17, "Base Protocol"), in and out. Standard library only."""

MAX_HEADER_BYTES = 8 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024

_PREFIX = b"Content-Length: "
_END = b"\r\n\r\n"


class FramingError(ValueError):
    """The stream can no longer be cut into frames. The message says what was wrong."""


class FrameDecoder:
    """Cuts a byte stream into bodies. Feed it chunks of any size.

    Header names are case-insensitive, blanks around the value are optional and unknown
    headers are ignored. Once `failure` is set nothing more is decoded: there is no telling
    where the next frame begins.
    """

    def __init__(self) -> None:
        self.failure: FramingError | None = None
        self._buffer = bytearray()
        self._body_bytes = -1  # length of the body being read; -1 while reading a header

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that `data` completes, in order. Never raises; look at `failure` after."""
        if self.failure is not None:
            return []
        buffer = self._buffer
        buffer += data
        bodies: list[bytes] = []
        position = 0
        try:
            with memoryview(buffer) as view:
                while True:
                    if self._body_bytes < 0:
                        end = self._header_end(position)
                        if end < 0:
                            break
                        self._body_bytes = _content_length(view[position:end].tobytes())
                        position = end + len(_END)
                    stop = position + self._body_bytes
                    if stop > len(buffer):
                        break
                    bodies.append(view[position:stop].tobytes())
                    position = stop
                    self._body_bytes = -1
        except FramingError as error:
            self.failure = error
            buffer.clear()
        else:
            del buffer[:position]
        return bodies

    def _header_end(self, start: int) -> int:
        """Where the header that begins at `start` ends, or -1 while it is incomplete."""
        buffer = self._buffer
        end = buffer.find(_END, start, start + MAX_HEADER_BYTES + len(_END))
        if end >= 0:
            return end
        if len(buffer) - start > MAX_HEADER_BYTES:
            raise FramingError(f"a header longer than {MAX_HEADER_BYTES} bytes")
        # A peer that ends lines with a bare LF waits for an answer: fail now, do not hang.
        if b"\n" in buffer[start:].replace(b"\r\n", b""):
            raise FramingError("header lines must end with CR LF")
        return -1


def _content_length(header: bytes) -> int:
    """The body's length from a whole header block without its closing empty line."""
    digits = header[len(_PREFIX) :]
    if header.startswith(_PREFIX) and len(digits) < 8 and digits.isdigit():
        return int(digits)
    length = -1
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon or b"\n" in line:
            raise FramingError("a header line that is not `Name: value`")
        if name.strip().lower() != b"content-length":
            continue
        value = value.strip()
        if not value.isdigit():
            raise FramingError("a Content-Length that is not a number")
        value = value.lstrip(b"0") or b"0"
        if len(value) > 9 or int(value) > MAX_BODY_BYTES:
            raise FramingError(f"a body longer than {MAX_BODY_BYTES} bytes")
        if length not in (-1, int(value)):
            raise FramingError("two different Content-Length headers")
        length = int(value)
    if length < 0:
        raise FramingError("a header without Content-Length")
    return length


def encode_frame(body: bytes) -> bytes:
    """One frame around `body`."""
    return b"%b%d%b%b" % (_PREFIX, len(body), _END, body)
