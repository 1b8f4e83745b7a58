"""Chooses the way in which the messages of a conversation are stored, and moves them to another."""

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
    # Late: SQLite costs 15 ms, which only its users pay.
    if name == "sqlite":
        from kode_sidecar.infrastructure.records.sqlite_messages import SqliteMessages  # noqa: PLC0415

        return SqliteMessages()
    return JsonlMessages()


def messages_in(folder: Path) -> MessageStorage:
    """Return the storage that holds the messages in a folder."""
    return messages_as(name_in(folder))


def name_in(folder: Path) -> StorageName:
    """Return what that storage is called: a database counts where there is one."""
    if (folder / DATABASE_FILE).is_file():
        return "sqlite"
    # An earlier version made the database with the second opening. Lines beside what it had until
    # then are what was read of a damaged database.
    left = (folder / LEFT_LINES_FILE).is_file() and not (folder / MESSAGES_FILE).exists()
    return "sqlite" if left else "jsonl"


def move_messages(folder: Path, to: StorageName) -> None:
    """Move messages to another storage, by the only writer. Blocks; raises KodeError `Storage`.

    What is damaged is quarantined before. The copy is saved and compared with the original before
    that one goes: whatever happens in between, one of them is whole and the one that counts.
    """
    source = messages_in(folder)
    source.open(folder)[0].close()
    messages_as(to).replace(folder, list(source.records(folder)))
    source.remove(folder)
