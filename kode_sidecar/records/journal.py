"""`journal.jsonl`: the durable events of one session, exactly as the editor was told.

It holds the blocks of every message that was told, so a message that is damaged where messages are
kept is rebuilt from it.
"""

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from kode_sidecar.domain.agent_event import (
    BlockCompleted,
    BlockStarted,
    Event,
    MessageAdded,
    MessageCompleted,
)
from kode_sidecar.domain.message import Block, Message
from kode_sidecar.records.json_record import check, encode_json, seal
from kode_sidecar.records.jsonl import (
    JsonlFile,
    LineProblem,
    open_lines,
    read_records,
    stream_lines,
)


class UnknownEvent(Struct, frozen=True):
    """An event of a newer version: all that is known of it is its number."""

    seq: int


StoredEvent = Event | UnknownEvent

JOURNAL_FILE = "journal.jsonl"
_COMPLETED = "message.completed"

_event = msgspec.json.Decoder(Event)
_unknown = msgspec.json.Decoder(UnknownEvent)


class _Head(Struct, frozen=True, rename="camel"):
    """What opening a journal reads of each event."""

    seq: int
    type: str = ""
    message_id: str = ""


_head = msgspec.json.Decoder(_Head)


class Journal:
    """One session's event log, open for appending. Raises KodeError `Storage`.

    Damaged lines are quarantined when it is opened. `completed` are the ids of the messages that
    were told as complete by then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Most journals are in order, and too large to be held whole for those that are not.
        heads, problems = read_records(path, _head_of)
        numbers = [head.seq for head in heads]
        self.completed: set[str] = {head.message_id for head in heads if head.type == _COMPLETED}
        self.problems: Sequence[LineProblem] = problems
        if problems or any(one >= other for one, other in pairwise(numbers)):
            mended = open_lines(path, _decode)
            self._events: Iterable[StoredEvent] = _in_order(mended.records)
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
        """What was there when it was opened, in order; once.

        It is read as it is gone through. Raises KodeError `Storage` then.
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

    def read(self) -> tuple[Sequence[StoredEvent], Sequence[LineProblem]]:
        """All events in order, and the lines that hold none."""
        return read_events(self._path)

    def sync(self) -> None:
        """fsync; for `Saver.save`, after the messages the events tell of."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def read_events(path: Path) -> tuple[Sequence[StoredEvent], Sequence[LineProblem]]:
    """All events of a journal in order, and the lines that hold none.

    Raises KodeError `Storage`.
    """
    events, problems = read_records(path, _decode)
    return _in_order(events), problems


def _decode(line: bytes) -> StoredEvent:
    line = check(line)
    try:
        return _event.decode(line)
    except msgspec.ValidationError:
        return _unknown.decode(line)


def _head_of(line: bytes) -> _Head:
    return _head.decode(check(line))


def _in_order(events: Iterable[StoredEvent]) -> Sequence[StoredEvent]:
    """By number; of two with one number the later, which is the one that was acknowledged."""
    numbered = {event.seq: event for event in events}
    in_order = list(numbered.values())
    if any(one.seq > other.seq for one, other in pairwise(in_order)):
        in_order.sort(key=lambda event: event.seq)
    return in_order


def told_messages(events: Iterable[StoredEvent], session_id: str) -> list[Message]:
    """The messages that these events tell whole, in the order in which they were completed.

    One is left out when an event is missing in between: it may have told a block.
    """
    added: dict[str, MessageAdded] = {}
    blocks: dict[str, dict[str, Block | None]] = {}
    found: list[Message] = []
    last = gap = 0
    for event in events:
        if event.seq != last + 1 or isinstance(event, UnknownEvent):
            gap = event.seq
        last = event.seq
        match event:
            case MessageAdded():
                added[event.message_id] = event
            case BlockStarted():  # this is its place among the blocks
                blocks.setdefault(event.message_id, {})[event.block_id] = None
            case BlockCompleted():
                blocks.setdefault(event.message_id, {})[event.block_id] = event.block
            case MessageCompleted():
                whole = blocks.pop(event.message_id, {}).values()
                opened = added.pop(event.message_id, None)
                if opened is not None and opened.seq > gap:
                    content = tuple(block for block in whole if block is not None)
                    found.append(_message(session_id, opened, content, event))
            case _:
                pass
    return found


def _message(
    session_id: str, added: MessageAdded, content: tuple[Block, ...], completed: MessageCompleted
) -> Message:
    return Message(
        id=added.message_id,
        session_id=session_id,
        role=added.role,
        content=content,
        parent_id=added.parent_id,
        depth=added.depth,
        version=added.version,
        created_at=added.created_at,
        meta=added.meta,
        usage=completed.usage,
        cost=completed.cost,
        cost_usd=completed.cost_usd,
        duration_ms=completed.duration_ms,
        response_id=completed.response_id,
        provider=completed.provider,
        model=completed.model,
        is_api_error_message=completed.is_api_error_message,
    )


def with_rebuilt(
    kept: Sequence[Message], events: Sequence[StoredEvent], session_id: str
) -> Sequence[Message]:
    """What is kept, and in their places the messages that only the events have."""
    told = told_messages(events, session_id)
    places = {message.id: place for place, message in enumerate(told)}
    known = {message.id for message in kept}
    found = list(kept)
    for message in told:
        if message.id in known:
            continue
        before = (
            number
            for number in range(len(found), 0, -1)
            if places.get(found[number - 1].id, len(told)) < places[message.id]
        )
        found.insert(next(before, 0), message)
    return found
