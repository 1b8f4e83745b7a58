"""The texts of blocks that still grow, so that a killed process loses at most their last second.

Nothing else on disk holds them: the journal has whole events only. A thread writes what has waited
for a second; the event loop writes 4 KB at once. Each write is one append, as of a journal, and
nothing is fsynced: a power cut may take it.
"""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer

import msgspec

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.infrastructure.records.json_record import (
    DECODE_ERRORS,
    check,
    encode_json,
    seal,
)

GROWTH_FILE = "growth.jsonl"
_APPENDED = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_BINARY", 0)
_WAIT_SECONDS = 1.0
_AT_ONCE_BYTES = 4_000
_MOST_BYTES = 8_000_000
"""More than any answer; the output of a command may have no end."""

_decode = msgspec.json.Decoder(BlockDelta).decode


class Growth:
    """Writes the growth of one session's open blocks; of a failing disk the journal reports."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / GROWTH_FILE
        self._lock = Lock()
        self._timer: Timer | None = None
        self._parts: list[BlockDelta] = []
        self._waiting = 0
        self._size = int(self._path.exists())  # a file of a process that was killed goes, too

    def add(self, delta: BlockDelta) -> None:
        """Take what a block has grown by."""
        with self._lock:
            self._parts.append(delta)
            self._waiting += len(delta.add.encode(errors="replace"))
            if self._waiting >= _AT_ONCE_BYTES:
                self._write()
            elif self._timer is None:
                self._timer = Timer(_WAIT_SECONDS, self._ring)
                self._timer.daemon = True
                self._timer.start()

    def clear(self) -> None:
        """Forget all: the blocks are saved with their message."""
        with self._lock:
            self._stop()
            if self._size:
                self._size = 0
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)

    def _ring(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        data = b"".join(seal(encode_json(part)) + b"\n" for part in self._parts)
        self._stop()
        if data and self._size < _MOST_BYTES:
            self._size += len(data)
            with suppress(OSError), os.fdopen(os.open(self._path, _APPENDED, 0o600), "ab") as file:
                file.write(data)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._parts, self._waiting = None, [], 0


def read_growth(folder: Path) -> dict[str, str]:
    """Return by block id what blocks had grown to when a process was killed."""
    grown: dict[str, str] = defaultdict(str)
    with suppress(OSError):
        for line in (folder / GROWTH_FILE).read_bytes().split(b"\n"):
            with suppress(*DECODE_ERRORS):
                part = _decode(check(line))
                if part.at == len(grown[part.block_id]):
                    grown[part.block_id] += part.add
    return grown
