"""Reads stdin on a thread of its own, so that a busy loop cannot stop it."""

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, FramingError, LineDecoder

READ_BYTES = 64 * 1024
MAX_WAITING_BYTES = 16 * 1024 * 1024

_LOOK_AGAIN_SECONDS = 0.5


class EndOfInput:
    """The last item: stdin was closed, or `failure` says how framing was lost."""

    def __init__(self, failure: FramingError | None = None) -> None:
        self.failure = failure


class Reader:
    """Reads bodies from stdin, in order, for the loop to `pop`.

    `on_arrival()` is called on the reader's thread when there is something to pop, and not again
    until `pop` has returned None. `on_end()` is called on that thread when no more will come. With
    more than MAX_WAITING_BYTES unhandled the thread stops reading, which slows the client down.
    """

    def __init__(
        self,
        fd: int,
        decoder: FrameDecoder | LineDecoder,
        first: Sequence[bytes],
        *,
        on_arrival: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._decoder = decoder
        self._first = first
        self._on_arrival = on_arrival
        self._on_end = on_end
        self._items: deque[bytes | EndOfInput] = deque()
        self._waiting_bytes = 0
        self._announced = False
        self._lock = threading.Lock()
        self._room = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="kode-reader", daemon=True).start()

    def pop(self) -> bytes | EndOfInput | None:
        """Return the next item, or None if there is none yet. Call it on the loop."""
        with self._lock:
            if not self._items:
                self._announced = False
                return None
            item = self._items.popleft()
            if isinstance(item, bytes):
                self._waiting_bytes -= len(item)
                if self._waiting_bytes <= MAX_WAITING_BYTES:
                    self._room.set()
            return item

    def _run(self) -> None:
        self._put(self._first)
        failure = self._decoder.failure
        while failure is None and self._wait_for_room():
            try:
                data = os.read(self._fd, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            self._put(self._decoder.feed(data))
            failure = self._decoder.failure
        self._put([EndOfInput(failure)])
        self._on_end()

    def _put(self, items: Sequence[bytes | EndOfInput]) -> None:
        if not items:
            return
        with self._lock:
            self._items.extend(items)
            self._waiting_bytes += sum(len(item) for item in items if isinstance(item, bytes))
            announce = not self._announced
            self._announced = True
        if announce:
            self._on_arrival()

    def _wait_for_room(self) -> bool:
        """Wait until the loop has caught up; return False if the client has gone meanwhile."""
        while True:
            with self._lock:
                if self._waiting_bytes <= MAX_WAITING_BYTES:
                    return True
                self._room.clear()
            self._room.wait(_LOOK_AGAIN_SECONDS)
            if _hung_up(self._fd):
                return False


def _hung_up(fd: int) -> bool:
    """Return whether the other end has closed, without reading; always False on Windows."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))
