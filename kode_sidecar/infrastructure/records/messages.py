"""The contract of the ways to store messages: what a conversation asks of whichever it has.

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
"""Messages that an earlier version had not made rows of yet; read, and never written."""

MESSAGE_FILES = (MESSAGES_FILE, DATABASE_FILE, f"{DATABASE_FILE}-wal", LEFT_LINES_FILE)
"""Those of them that are there change with every message."""


class MessageFile(Protocol):
    """Messages that are appended to by their only writer. Raises KodeError `Storage`."""

    def append(self, *messages: Message) -> None:
        """Write messages, all or none of them; they are on disk when this returns, not yet saved.

        Never waits for the disk: the event loop calls it.
        """
        ...

    def sync(self) -> None:
        """Save what was appended: it survives a power cut. Blocks; called on the saver's thread."""
        ...

    def close(self) -> None:
        """Release the files; harmless when repeated. Nothing is appended afterwards."""
        ...


@dataclass(frozen=True)
class LoadedMessages:
    """The whole messages in the order written, and the places of damage."""

    messages: Sequence[Message]
    problems: Sequence[LineProblem] = ()


class MessageStorage(Protocol):
    """One way to store messages. Everything may block and raise KodeError `Storage`."""

    def create(self, folder: Path) -> MessageFile:
        """Return the messages of a new conversation; saved with the first `sync`. Never blocks."""
        ...

    def open(self, folder: Path) -> tuple[MessageFile, LoadedMessages]:
        """Read by the only writer: damaged records are quarantined in a file beside."""
        ...

    def load(self, folder: Path) -> LoadedMessages:
        """Return everything readable, whoever writes meanwhile."""
        ...

    def records(self, folder: Path) -> Iterator[bytes]:
        """Yield each record as it stands there, whole or damaged, in the order written."""
        ...

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """Let these be all, compared and saved; the only writer asks, and has closed its file."""
        ...

    def remove(self, folder: Path) -> None:
        """Remove what holds the messages, which another storage holds by now."""
        ...
