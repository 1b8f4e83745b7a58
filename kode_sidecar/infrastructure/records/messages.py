"""The contract of message storage, which a conversation relies on.

`jsonl_messages` stores lines, `sqlite_messages` rows; `message_storage` chooses. Both hold the same
records: a message as `message_record` writes it, with a checksum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kode_sidecar.core.domain.message import Message
from kode_sidecar.infrastructure.records.jsonl import LineProblem

StorageName = Literal["jsonl", "sqlite"]

MESSAGES_FILE = "messages.jsonl"
DATABASE_FILE = "messages.sqlite"
LEFT_LINES_FILE = "messages.new.jsonl"
"""Messages that an earlier version had not converted to rows yet; read, and never written."""

MESSAGE_FILES = (MESSAGES_FILE, DATABASE_FILE, f"{DATABASE_FILE}-wal", LEFT_LINES_FILE)
"""All files that may hold messages; every message changes one of them."""


class MessageFile(Protocol):
    """Messages open for appending by their only writer. Raises KodeError `Storage`."""

    def append(self, *messages: Message) -> None:
        """Write messages, all or none; when this returns they are written, not yet saved.

        Never waits for the disk: the event loop calls it.
        """
        ...

    def sync(self) -> None:
        """Save the appended messages, which then survive a power cut. Blocks; on a saver thread."""
        ...

    def close(self) -> None:
        """Release the files; harmless when repeated. Nothing is appended afterwards."""
        ...


@dataclass(frozen=True)
class LoadedMessages:
    """The intact messages in the order written, and the places of damage."""

    messages: Sequence[Message]
    problems: Sequence[LineProblem] = ()


class MessageStorage(Protocol):
    """One way to store messages. Methods may block and raise KodeError `Storage`."""

    def create(self, folder: Path) -> MessageFile:
        """Return the messages of a new conversation; saved with the first `sync`. Never blocks."""
        ...

    def open(self, folder: Path) -> tuple[MessageFile, LoadedMessages]:
        """Open as the only writer: damaged records are quarantined in a file beside."""
        ...

    def load(self, folder: Path) -> LoadedMessages:
        """Return everything readable, even while another process writes."""
        ...

    def records(self, folder: Path) -> Iterator[bytes]:
        """Yield each record as stored, intact or damaged, in the order written."""
        ...

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """Replace all records by these, compared and saved; the only writer's file is closed."""
        ...

    def remove(self, folder: Path) -> None:
        """Delete the files of this storage; another storage holds the messages by now."""
        ...
