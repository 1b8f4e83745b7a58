"""How often this process asked the system to write and to fsync."""

import os
import threading

import pytest


class DiskCalls:
    """Counts from now on until the test ends; from any thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = self.fsyncs = 0
        self._write, self._fsync = os.write, os.fsync
        self._lock = threading.Lock()
        monkeypatch.setattr(os, "write", self._counted_write)
        monkeypatch.setattr(os, "fsync", self._counted_fsync)

    def _counted_write(self, fd: int, data: bytes) -> int:
        with self._lock:
            self.writes += 1
        return self._write(fd, data)

    def _counted_fsync(self, fd: int) -> None:
        with self._lock:
            self.fsyncs += 1
        self._fsync(fd)
