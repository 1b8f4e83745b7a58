"""How the messages of a conversation are kept in its folder: what every way of it offers.

`jsonl_messages` keeps a line a message, `sqlite_messages` a row of a database. A record is the
same in both: what `message_record` makes of a message, with its checksum.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kode_sidecar.domain.conversation import ReadMessages
from kode_sidecar.domain.message import Message
from kode_sidecar.records.jsonl import DiskCounter, LineProblem
from kode_sidecar.records.saver import Syncable

DATABASE_FILE = "messages.sqlite"

StorageName = Literal["jsonl", "sqlite"]


class MessageFile(Syncable, Protocol):
    """The messages of one conversation, open for writing by its only writer."""

    def append(self, message: Message) -> None:
        """Write a message; on disk when this returns. Raises KodeError `Storage`."""
        ...

    def close(self) -> None:
        """Release what is open; harmless when repeated."""
        ...


@dataclass(frozen=True)
class KeptMessages:
    """All whole messages in the order written, and where there is something else.

    Those that `unread` names are without their content; `read` gives it, by ids, from any thread.
    """

    messages: Sequence[Message]
    problems: Sequence[LineProblem] = ()
    unread: Collection[str] = ()
    read: ReadMessages | None = None


class MessageStorage(Protocol):
    """One way to keep messages. Everything blocks and may raise KodeError `Storage`."""

    def create(self, folder: Path, counter: DiskCounter) -> MessageFile:
        """The messages of a new conversation; saved with the first `sync`."""
        ...

    def open(self, folder: Path, counter: DiskCounter) -> tuple[MessageFile, KeptMessages]:
        """By the only writer: damaged records are quarantined in a file beside.

        What a storage can read one by one later stays unread.
        """
        ...

    def load(self, folder: Path) -> KeptMessages:
        """Everything readable, whoever writes meanwhile."""
        ...

    def records(self, folder: Path) -> Iterator[bytes]:
        """Each record as it stands there, whole or damaged, in the order written."""
        ...

    def is_empty(self, folder: Path) -> bool:
        """Whether nothing was ever said."""
        ...
