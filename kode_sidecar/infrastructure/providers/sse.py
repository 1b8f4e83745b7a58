"""Decodes server-sent events from raw bytes. Sans-IO.

Follows the WHATWG event stream format, and tolerates the hosts' deviations from it. Only `data`
matters to us: `event`, `id` and `retry` lines and comments are skipped.
"""

from collections.abc import Sequence

from kode_sidecar.errors import KodeError

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""W16: an event with more bytes is an error, so that memory stays bounded."""

_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Cuts a byte stream into the data of its events, however the input was cut.

    Lines end in LF, CRLF or CR, an event ends with an empty line, several `data` lines of one
    event are joined with LF. Bytes are not decoded, so a read may cut a character in two.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._open: list[bytes] = []  # pieces of the unfinished event, line ends already LF
        self._open_size = 0
        self._open_ends_line = False
        self._skip_lf = False
        self._bom: bytes | None = b""  # what was seen of a BOM; None once the start is past

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of every event that `data` completes, in order.

        Raises KodeError `TooLarge` when an event passes the size limit.
        """
        if self._bom is not None:
            data = self._without_bom(data)
        if self._skip_lf and data:
            self._skip_lf = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            # The LF after this CR may come with the next read.
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not data:
            return []
        if b"\n\n" not in data and not (self._open_ends_line and data.startswith(b"\n")):
            self._keep(data)
            return []
        self._open.append(data)
        whole = b"".join(self._open)
        events = whole.split(b"\n\n")
        self._check(len(whole), events)
        self._open, self._open_size, self._open_ends_line = [], 0, False
        if rest := events.pop():
            self._keep(rest)
        return self._data_of(events)

    def finish(self) -> list[bytes]:
        """Return the last event if the stream ended without an empty line."""
        rest, self._open = b"".join(self._open), []
        return self._data_of([rest])

    def _data_of(self, events: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for event in events:
            # Fast path: nearly every event is one line.
            if event.startswith(b"data: ") and b"\n" not in event:
                found.append(event[6:])
            elif b"data" not in event:  # a keep-alive
                continue
            elif data := _data_lines(event):
                found.append(data)
        return found

    def _keep(self, data: bytes) -> None:
        self._open.append(data)
        self._open_size += len(data)
        self._open_ends_line = data.endswith(b"\n")
        self._check(self._open_size, ())

    def _without_bom(self, data: bytes) -> bytes:
        start = (self._bom or b"") + data
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._bom = start
            return b""
        self._bom = None
        return start.removeprefix(_BOM)

    def _check(self, size: int, events: Sequence[bytes]) -> None:
        """Raise KodeError `TooLarge` if one of `events`, or all of `size`, passes the limit."""
        limit = self._max_event_bytes
        if size > limit and max(map(len, events), default=size) > limit:
            text = f"The model's host sent one event of more than {limit:,} bytes; ask again."
            raise KodeError("TooLarge", text)


def _data_lines(event: bytes) -> bytes:
    lines = (line for line in event.split(b"\n") if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
