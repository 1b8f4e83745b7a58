"""Which way the messages of a conversation are kept."""

from pathlib import Path

from kode_sidecar.records.jsonl_messages import JsonlMessages
from kode_sidecar.records.message_storage import DATABASE_FILE, MessageStorage, StorageName


def messages_as(name: StorageName) -> MessageStorage:
    """The storage of that name."""
    # Late: SQLite costs 15 ms, which only its users pay.
    if name == "sqlite":
        from kode_sidecar.records.sqlite_messages import SqliteMessages  # noqa: PLC0415

        return SqliteMessages()
    return JsonlMessages()


def messages_in(folder: Path) -> MessageStorage:
    """The storage of the messages in a folder: where there is a database, it holds them."""
    return messages_as(name_in(folder))


def name_in(folder: Path) -> StorageName:
    """What that storage is called."""
    return "sqlite" if (folder / DATABASE_FILE).is_file() else "jsonl"
