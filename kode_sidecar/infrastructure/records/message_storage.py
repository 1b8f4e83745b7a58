"""Chooses the storage for the messages of a conversation, and moves messages to another one."""

from pathlib import Path

from kode_sidecar.infrastructure.records.jsonl_messages import JsonlMessages
from kode_sidecar.infrastructure.records.messages import (
    DATABASE_FILE,
    LEFT_LINES_FILE,
    MESSAGES_FILE,
    MessageStorage,
    StorageName,
)


def messages_as(name: StorageName) -> MessageStorage:
    """Return the storage of that name."""
    # Imported late: SQLite takes 15 ms, which only its users need.
    if name == "sqlite":
        from kode_sidecar.infrastructure.records.sqlite_messages import SqliteMessages  # noqa: PLC0415

        return SqliteMessages()
    return JsonlMessages()


def messages_in(folder: Path) -> MessageStorage:
    """Return the storage that holds the messages in a folder."""
    return messages_as(name_in(folder))


def name_in(folder: Path) -> StorageName:
    """Return the name of that storage: SQLite if there is a database."""
    if (folder / DATABASE_FILE).is_file():
        return "sqlite"
    # An earlier version created the database only at the second opening: its lines may be alone.
    # A `messages.jsonl` beside them holds what was read of a damaged database.
    left = (folder / LEFT_LINES_FILE).is_file() and not (folder / MESSAGES_FILE).exists()
    return "sqlite" if left else "jsonl"


def move_messages(folder: Path, to: StorageName) -> None:
    """Move messages to another storage, as their only writer. Blocks; raises KodeError `Storage`.

    Damage is quarantined first. The copy is saved and compared with the original before the
    original is removed, so that at any time one of them is complete and in use.
    """
    source = messages_in(folder)
    source.open(folder)[0].close()
    messages_as(to).replace(folder, list(source.records(folder)))
    source.remove(folder)
