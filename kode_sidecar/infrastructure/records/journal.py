"""Writes and reads `journal.jsonl`, the stored events of one session as the editor got them.

The journal holds the blocks of every message: `rebuilding` restores damaged messages from them.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.agent_event import Event, MessageCompleted
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, check, encode_json, seal
from kode_sidecar.infrastructure.records.jsonl import (
    JsonlFile,
    LineProblem,
    open_lines,
    read_records,
    stream_lines,
)


class UnknownEvent(Struct, frozen=True):
    """An event of a newer version, of which only the number is known."""

    seq: int


StoredEvent = Event | UnknownEvent

JOURNAL_FILE = "journal.jsonl"
_COMPLETED = "message.completed"

_event = msgspec.json.Decoder(Event)
_unknown = msgspec.json.Decoder(UnknownEvent)


class _Head(Struct, frozen=True, rename="camel"):
    """The fields of an event that are read when a journal is opened."""

    seq: int
    type: str = ""
    message_id: str = ""


_head = msgspec.json.Decoder(_Head)


class Journal:
    """One session's event log, open for appending. Raises KodeError `Storage`.

    Opening it moves damaged lines to a file of their own. `completed` holds the ids of the messages
    that were complete at that moment.
    """

    def __init__(self, path: Path) -> None:
        # Most journals are in order, and too large to hold in memory without need.
        self.completed: set[str] = set()
        numbers, problems = read_records(path, self._number_of)
        self.problems: Sequence[LineProblem] = problems
        if problems or any(one >= other for one, other in pairwise(numbers)):
            repaired = open_lines(path, _decode)
            self._events: Iterable[StoredEvent] = _in_order(repaired.records)
            numbers = [event.seq for event in self._events]
            self.completed = {
                one.message_id for one in self._events if isinstance(one, MessageCompleted)
            }
        else:
            lines = islice(stream_lines(path), len(numbers))
            self._events = (_decode(line) for _, line in lines)
        self._last_seq = numbers[-1] if numbers else 0
        self._file = JsonlFile(path)

    @property
    def last_seq(self) -> int:
        """Number of the newest event, counted over all processes; 0 while there is none."""
        return self._last_seq

    def take_events(self) -> Iterable[StoredEvent]:
        """Return the events that were there at the opening, in order; once.

        They are read while you iterate, which raises KodeError `Storage`.
        """
        events, self._events = self._events, ()
        return events

    def append(self, event: Event) -> None:
        """Write a stamped event; on disk when this returns.

        Its `seq` is `last_seq` + 1; anything else is a ValueError.
        """
        if event.seq != self._last_seq + 1:
            raise ValueError(f"event {event.seq} does not follow {self._last_seq}")
        self._file.append(seal(encode_json(event)))
        self._last_seq = event.seq

    def sync(self) -> None:
        """fsync the journal, for `Saver.save`; the messages of its events are synced before."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _number_of(self, line: bytes) -> int:
        head = _head.decode(check(line))
        if head.type == _COMPLETED:
            self.completed.add(head.message_id)
        return head.seq


def read_events(path: Path) -> tuple[Sequence[StoredEvent], Sequence[LineProblem]]:
    """Return all events of a journal in order, and the unreadable lines.

    Raises KodeError `Storage`.
    """
    events, problems = read_records(path, _decode)
    return _in_order(events), problems


def decode_lines(lines: Iterable[bytes]) -> list[StoredEvent]:
    """Return the events of these lines in order; unreadable lines are skipped."""
    events: list[StoredEvent] = []
    for line in lines:
        with suppress(*DECODE_ERRORS):
            events.append(_decode(line))
    return events


def _decode(line: bytes) -> StoredEvent:
    line = check(line)
    try:
        return _event.decode(line)
    except msgspec.ValidationError:
        return _unknown.decode(line)


def _in_order(events: Iterable[StoredEvent]) -> Sequence[StoredEvent]:
    """Sort events by number; of two with one number the later counts: it was acknowledged."""
    numbered = {event.seq: event for event in events}
    in_order = list(numbered.values())
    if any(one.seq > other.seq for one, other in pairwise(in_order)):
        in_order.sort(key=lambda event: event.seq)
    return in_order


# Pauses between looks at the file: short enough that people notice no delay in what another process
# writes, and long enough that an idle session costs next to nothing.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_READ_BYTES = 1024 * 1024


class JournalTail:
    """Reads the lines that any process appends to a journal from now on.

    The file is not open in between. If it was replaced, as by a repair, reading starts again with
    the first line, so a reader must skip the events that it knows.
    """

    def __init__(self, folder: Path) -> None:
        self.session_id = folder.name
        self._path = folder / JOURNAL_FILE
        self._number = self._position = 0
        while self.read():
            pass

    async def grown(self) -> Sequence[bytes] | None:
        """Wait for new complete lines and return them; None when the session is gone.

        It polls, on a thread: no system reports the changes of every file on every disk.
        """
        pause = _SHORTEST_PAUSE
        while (lines := await asyncio.to_thread(self.read)) == []:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return lines

    def read(self) -> list[bytes] | None:
        """Return new complete lines, about a megabyte at most; None without the session. Blocks."""
        try:
            status = os.stat(self._path)
            if status.st_ino != self._number or status.st_size < self._position:
                self._number, self._position = status.st_ino, 0
            if status.st_size == self._position:
                return []
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(_READ_BYTES)
                if not data.endswith(b"\n"):
                    data += file.readline()
        except FileNotFoundError:
            return [] if self._path.parent.is_dir() else None
        except OSError:
            return []  # if the disk refuses now, the next call tries again
        whole = data.rfind(b"\n") + 1
        self._position += whole
        return data[:whole].split(b"\n")[:-1]
