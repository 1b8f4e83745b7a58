"""LSP's base protocol in both directions (LSP 3.17, "Base Protocol"); standard library only.

Frames around bodies, lines for ACP, and one JSON-RPC 2.0 message as plain data. The code that
answers `initialize` has nothing else; the full server uses it for messages that msgspec refuses,
to find out what is wrong with them or to read them after all.
"""

import json

from kode_sidecar.errors import KodeError

MAX_HEADER_BYTES = 8 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024

_PREFIX = b"Content-Length: "
_END = b"\r\n\r\n"


class FramingError(ValueError):
    """The stream can no longer be cut into frames. The message says what was wrong."""


class FrameDecoder:
    """Cuts a byte stream into bodies. Feed it chunks of any size.

    Header names are case-insensitive, blanks around the value are optional and unknown
    headers are ignored. Once `failure` is set nothing more is decoded: nobody can know where the
    next frame begins.
    """

    def __init__(self) -> None:
        self.failure: FramingError | None = None
        self._buffer = bytearray()
        self._body_bytes = -1  # length of the body being read; -1 while reading a header

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies `data` completes, in order. Never raises; check `failure` after."""
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
        """Return where the header at `start` ends, or -1 while it is incomplete."""
        buffer = self._buffer
        end = buffer.find(_END, start, start + MAX_HEADER_BYTES + len(_END))
        if end >= 0:
            return end
        if len(buffer) - start > MAX_HEADER_BYTES:
            raise FramingError(f"a header longer than {MAX_HEADER_BYTES} bytes")
        # A peer that sends a bare LF now waits for an answer: fail instead of waiting for CR LF.
        if b"\n" in buffer[start:].replace(b"\r\n", b""):
            raise FramingError("header lines must end with CR LF")
        return -1


def _content_length(header: bytes) -> int:
    """Return the body's length from a whole header without its closing empty line."""
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
    """Return one frame around `body`."""
    return b"%b%d%b%b" % (_PREFIX, len(body), _END, body)


_TOO_LONG = b"\0 a line that was too long \0"


class LineDecoder:
    """Cuts a byte stream into lines, without blank ones. `failure` is always None.

    A line that is too long is not held: `read_json` refuses what stands in its place. The next
    line begins where it ends, so the sessions of the process go on.
    """

    def __init__(self) -> None:
        self.failure: FramingError | None = None
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, in order. Never raises."""
        head, *rest = data.split(b"\n")
        self._add(head)
        lines: list[bytes] = []
        for part in rest:
            lines.append(b"".join(self._parts))
            self._parts, self._length = [], 0
            self._add(part)
        return [line for line in lines if line.strip()]

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > MAX_BODY_BYTES:
            self._parts = [_TOO_LONG]
        else:
            self._parts.append(part)


def encode_line(body: bytes) -> bytes:
    """Return `body` as one line; it holds no line break because JSON escapes them."""
    return body + b"\n"


JSONRPC = "2.0"
LOST_FRAMING = "lost the frame boundary"
Message = dict[str, object]


class BadMessage(KodeError):
    """A body that is no JSON-RPC message. `request_id` is the id for the error response."""

    def __init__(self, code: str, message: str, request_id: int | str | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def read_message(body: bytes) -> Message:
    """Return the message in `body`; lone surrogates become U+FFFD.

    Raises BadMessage: `ParseError` for what is not JSON in UTF-8, `InvalidRequest` for what is
    JSON but no message (JSON-RPC 2.0 sections 4 and 5.1). Batches are not part of LSP.
    """
    value = read_json(body)
    if isinstance(value, list):
        raise BadMessage("InvalidRequest", "batches are not supported; send one message a frame")
    if not isinstance(value, dict):
        raise BadMessage("InvalidRequest", "a message must be a JSON object")
    message: Message = value  # type: ignore[reportUnknownVariableType]: JSON keys are strings
    _check_envelope(message)
    return message


def _check_envelope(message: Message) -> None:
    known_id = message_id(message)
    if known_id is None and message.get("id") is not None:
        raise BadMessage("InvalidRequest", "`id` must be an integer or a string")
    if message.get("jsonrpc") != JSONRPC:
        raise BadMessage("InvalidRequest", '`jsonrpc` must be "2.0"', known_id)
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessage("InvalidRequest", "`method` must be a string", known_id)
        if "id" in message and known_id is None:
            raise BadMessage("InvalidRequest", "`id` must be an integer or a string")
    elif "id" not in message or not ("result" in message or "error" in message):
        raise BadMessage("InvalidRequest", "a message needs a `method`, or an `id` and a result")


def message_id(message: Message) -> int | str | None:
    """Return the id, None if invalid: LSP 3.17 allows integers and strings, `true` is neither."""
    value = message.get("id")
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def read_json(body: bytes) -> object:
    """Return the value in `body`. Raises BadMessage `ParseError`."""
    if body == _TOO_LONG:
        text = f"a line has more than {MAX_BODY_BYTES:,} bytes and was not read; send less at once"
        raise BadMessage("ParseError", text)
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\ud" in body or b"\\uD" in body:
            # Imported only for such a message: this file must load fast to answer `initialize`.
            from kode_sidecar.core.text.shown_text import fix_value  # noqa: PLC0415

            value = fix_value(value)
    except UnicodeDecodeError:
        raise BadMessage("ParseError", "the body is not UTF-8") from None
    except ValueError as error:
        raise BadMessage("ParseError", f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadMessage("ParseError", "the body is nested too deeply") from None
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def error_body(request_id: int | str | None, error: KodeError, **data: object) -> bytes:
    """Return an error response. `data` is added to the `ErrorInfo` in `error.data`."""
    return _encode(
        {
            "jsonrpc": JSONRPC,
            "id": request_id,
            "error": {
                "code": error.rpc_code,
                "message": error.message,
                "data": error.as_data() | data,
            },
        }
    )


def lost_framing(failure: ValueError) -> bytes:
    """Return the last message before the process ends: its input has lost the frame boundary."""
    return error_body(None, KodeError("ParseError", f"{LOST_FRAMING}: {failure}"))


def result_body(request_id: int | str, result: object) -> bytes:
    """Return a response with its result."""
    return _encode({"jsonrpc": JSONRPC, "id": request_id, "result": result})


def _encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii")
