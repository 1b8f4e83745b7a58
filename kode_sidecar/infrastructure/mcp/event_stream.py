"""Decodes server-sent events with the ids and retry times that MCP streams need. Sans-IO.

Source: WHATWG HTML, "Server-sent events". Model hosts need neither ids nor retry times, so their
decoder (`providers.sse`) is another one, made for speed.
"""

import re
from dataclasses import dataclass

from kode_sidecar.errors import KodeError

MAX_EVENT_BYTES = 16_000_000
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class McpEvent:
    """One event. `data` is its lines joined with LF; `event` is empty for a message."""

    data: bytes
    event: str = ""


class McpEventDecoder:
    """Cuts bytes into events, however the input was cut.

    `last_id` is the id to resume the stream from, `retry_ms` the wait that the server asks for.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self.retry_ms: int | None = None
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._event = ""
        self._size = 0

    def feed(self, chunk: bytes) -> list[McpEvent]:
        """Return the events that `chunk` completes. Raises KodeError `TooLarge`."""
        # Join a long line only once: searching it again with every chunk would take minutes.
        if not _LINE_END.search(chunk) and not (self._rest and self._rest[-1].endswith(b"\r")):
            self._keep(chunk)
            return []
        whole = b"".join([*self._rest, chunk])
        # A CR at the end may be the first half of a CRLF.
        end = len(whole) - 1 if whole.endswith(b"\r") else len(whole)
        *lines, rest = _LINE_END.split(whole[:end])
        self._rest, self._rest_size = [], 0
        events = [event for line in lines if (event := self._take(line)) is not None]
        self._keep(rest + whole[end:])
        return events

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
        if self._size + self._rest_size > MAX_EVENT_BYTES:
            raise KodeError("TooLarge", f"One event has more than {MAX_EVENT_BYTES:,} bytes.")

    def _take(self, line: bytes) -> McpEvent | None:
        if not line:
            data, name = b"\n".join(self._data), self._event
            had_data, self._data, self._event, self._size = bool(self._data), [], "", 0
            return McpEvent(data, name) if had_data else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry_ms = int(value[:9])
        return None
