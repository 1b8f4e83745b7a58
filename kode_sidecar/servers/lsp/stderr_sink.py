"""A stderr that never blocks: a client that does not read it must not stop anything (W2)."""

import io
import os
import sys
import threading
from collections import deque

_MAX_PENDING_BYTES = 1024 * 1024

# Control characters except newline and tab (W13).
_STDERR = 2
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


class StderrSink(io.TextIOBase):
    """A text stream whose writes go to stderr on a thread; what does not fit is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._drained = threading.Event()
        self._drained.set()
        threading.Thread(target=self._run, name="kode-stderr", daemon=True).start()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDERR

    def write(self, text: str, /) -> int:
        """Queue `text`; never blocks."""
        data = text.translate(_CONTROLS).encode("utf-8", "replace")
        with self._lock:
            if self._pending_bytes + len(data) > _MAX_PENDING_BYTES:
                self._dropped += 1
            else:
                self._pending.append(data)
                self._pending_bytes += len(data)
                self._drained.clear()
                self._work.set()
        return len(text)

    def finish(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until everything is written."""
        self._drained.wait(timeout)

    def _run(self) -> None:
        while True:
            self._work.wait()
            try:
                self._write_all(self._take())
            except OSError:  # stderr is closed: keep discarding
                continue

    def _take(self) -> bytes:
        with self._lock:
            data = b"".join(self._pending)
            if self._dropped:
                data += b"kode-sidecar: %d lines dropped, stderr was full\n" % self._dropped
            self._pending.clear()
            self._pending_bytes = self._dropped = 0
            self._work.clear()
            if not data:
                self._drained.set()
        return data

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(_STDERR, view) :]
        with self._lock:
            if not self._pending:
                self._drained.set()


def install() -> StderrSink:
    """Make `print` and `sys.stderr` write to a new sink, and return it."""
    sink = StderrSink()
    sys.stdout = sys.stderr = sink
    return sink
