"""`journal.jsonl`: the durable events of one session, exactly as the editor was told."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kode_sidecar.domain.agent_event import Event
from kode_sidecar.records.json_text import encode_json
from kode_sidecar.records.jsonl import DiskCounter, JsonlFile, LineProblem, read_records


class _Numbered(Struct):
    """All that opening a journal needs of an event; unknown types have a number too."""

    seq: int = 0


class Journal:
    """One session's event log, open for appending. Raises KodeError `Storage`."""

    def __init__(self, path: Path, counter: DiskCounter | None = None) -> None:
        self._path = path
        numbered, self.problems = read_records(path, msgspec.json.Decoder(_Numbered).decode)
        self._last_seq = max((event.seq for event in numbered), default=0)
        self._file = JsonlFile(path, counter)

    @property
    def last_seq(self) -> int:
        """Number of the newest event, counted over all processes; 0 while there is none."""
        return self._last_seq

    def append(self, event: Event) -> None:
        """Write a stamped event; on disk when this returns.

        Its `seq` is `last_seq` + 1; anything else is a ValueError.
        """
        if event.seq != self._last_seq + 1:
            raise ValueError(f"event {event.seq} does not follow {self._last_seq}")
        self._file.append(encode_json(event))
        self._last_seq = event.seq

    def read(self) -> tuple[Sequence[Event], Sequence[LineProblem]]:
        """All events in order, and the lines that hold none."""
        return read_events(self._path)

    def sync(self) -> None:
        """fsync; for `Saver.save`, after the messages the events tell of."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def read_events(path: Path) -> tuple[Sequence[Event], Sequence[LineProblem]]:
    """All events of a journal in order, and the lines that hold none.

    Raises KodeError `Storage`.
    """
    return read_records(path, msgspec.json.Decoder(Event).decode)
