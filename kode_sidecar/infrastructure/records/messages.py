"""Keeps the messages of a conversation in its folder: as lines of JSON, or as rows of SQLite.

This module has the contract of both ways, the lines (`messages.jsonl`), and the choice for a
folder; `sqlite_messages` has the rows. Both hold the same records: a message as `message_record`
writes it, with a checksum.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kode_sidecar.core.domain.conversation import ReadMessages
from kode_sidecar.core.domain.message import Message
from kode_sidecar.infrastructure.records.disk import replace_file
from kode_sidecar.infrastructure.records.jsonl import (
    JsonlFile,
    LineProblem,
    open_lines,
    read_records,
    stream_lines,
)
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message

DATABASE_FILE = "messages.sqlite"

StorageName = Literal["jsonl", "sqlite"]


class MessageFile:
    """Messages that are appended to a file, a line each, by its only writer."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)

    def append(self, message: Message) -> None:
        """Write a message; on disk when this returns. Raises KodeError `Storage`."""
        self._file.append(encode_message(message))

    def sync(self) -> None:
        """fsync. Raises KodeError `Storage`."""
        self._file.sync()

    def close(self) -> None:
        """Release the file; harmless when repeated."""
        self._file.close()


@dataclass(frozen=True)
class KeptMessages:
    """The whole messages in the order written, and the places of damage.

    The messages in `unread` are without content; `read` returns it by ids, from any thread.
    """

    messages: Sequence[Message]
    problems: Sequence[LineProblem] = ()
    unread: Collection[str] = ()
    read: ReadMessages | None = None


class MessageStorage(Protocol):
    """One way to keep messages. Everything blocks and may raise KodeError `Storage`."""

    def create(self, folder: Path) -> MessageFile:
        """Return the messages of a new conversation; saved with the first `sync`."""
        ...

    def open(self, folder: Path) -> tuple[MessageFile, KeptMessages]:
        """By the only writer: damaged records are quarantined in a file beside.

        What a storage can read one by one later stays unread.
        """
        ...

    def load(self, folder: Path) -> KeptMessages:
        """Return everything readable, whoever writes meanwhile."""
        ...

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """Let these be all; the only writer asks, and has closed its file."""
        ...

    def records(self, folder: Path) -> Iterator[bytes]:
        """Each record as it stands there, whole or damaged, in the order written."""
        ...

    def is_empty(self, folder: Path) -> bool:
        """Return whether nothing was ever said."""
        ...


MESSAGES_FILE = "messages.jsonl"
NEW_FILE = "messages.new.jsonl"
"""Beside the database: what was said since it was opened."""

MESSAGE_FILES = (MESSAGES_FILE, DATABASE_FILE, NEW_FILE)
"""Those of them that are there change with every message."""


class JsonlMessages:
    """`MessageStorage` as lines."""

    def create(self, folder: Path) -> MessageFile:
        """Return an empty file."""
        return MessageFile(folder / MESSAGES_FILE)

    def open(self, folder: Path) -> tuple[MessageFile, KeptMessages]:
        """Damaged lines go to `messages.jsonl.bad`."""
        lines = open_lines(folder / MESSAGES_FILE, decode_message)
        return self.create(folder), KeptMessages(lines.records, lines.problems)

    def load(self, folder: Path) -> KeptMessages:
        """Return what a file holds; a missing one holds nothing."""
        return KeptMessages(*read_records(folder / MESSAGES_FILE, decode_message))

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """The file is replaced whole."""
        data = b"".join(record + b"\n" for record in records)
        replace_file(folder / MESSAGES_FILE, data, durable=True)

    def records(self, folder: Path) -> Iterator[bytes]:
        """Line by line."""
        return (line for _, line in stream_lines(folder / MESSAGES_FILE))

    def is_empty(self, folder: Path) -> bool:
        """By its size: one that cannot be read holds something."""
        try:
            return (folder / MESSAGES_FILE).stat().st_size == 0
        except OSError:
            return True


def messages_as(name: StorageName) -> MessageStorage:
    """Return the storage of that name."""
    # Late: SQLite costs 15 ms, which only its users pay.
    if name == "sqlite":
        from kode_sidecar.infrastructure.records.sqlite_messages import SqliteMessages  # noqa: PLC0415

        return SqliteMessages()
    return JsonlMessages()


def messages_in(folder: Path) -> MessageStorage:
    """Return the storage of the messages in a folder.

    A database holds them where there is one, and where there will be one.
    """
    return messages_as(name_in(folder))


def name_in(folder: Path) -> StorageName:
    """Return what that storage is called."""
    if (folder / DATABASE_FILE).is_file():
        return "sqlite"
    # Lines beside one that is new are what was read of a damaged database.
    lines, new = folder / MESSAGES_FILE, folder / NEW_FILE
    return "sqlite" if new.is_file() and not lines.exists() else "jsonl"
