"""Takes the messages of a conversation from one way of keeping them to another."""

import errno
import os
from pathlib import Path

from kode_sidecar.records.jsonl import DiskCounter
from kode_sidecar.records.jsonl_messages import MESSAGES_FILE
from kode_sidecar.records.message_storage import StorageName
from kode_sidecar.records.sqlite_messages import put_database, retire_database
from kode_sidecar.records.storage_choice import messages_in
from kode_sidecar.records.storage_error import not_saved
from kode_sidecar.records.whole_file import replace_file


def move_messages(folder: Path, to: StorageName, counter: DiskCounter) -> None:
    """From the other way to this one, by the only writer. Blocks; raises KodeError `Storage`.

    What is damaged is quarantined before. The copy is saved and compared with the original before
    that one goes: whatever happens in between, one of them is whole and the one that counts.
    """
    source = messages_in(folder)
    source.open(folder, counter)[0].close()
    records = list(source.records(folder))
    if to == "sqlite":
        put_database(folder, records, counter)  # from now on it counts
        try:
            (folder / MESSAGES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(MESSAGES_FILE, error) from None
    else:
        _put_lines(folder, records, counter)
        retire_database(folder, counter)  # from now on the lines count


def _put_lines(folder: Path, records: list[bytes], counter: DiskCounter) -> None:
    path = folder / MESSAGES_FILE
    data = b"".join(record + b"\n" for record in records)
    replace_file(path, data, durable=True, counter=counter)
    try:
        same = path.read_bytes() == data
    except OSError as error:
        raise not_saved(MESSAGES_FILE, error) from None
    if not same:
        raise not_saved(MESSAGES_FILE, OSError(errno.EIO, os.strerror(errno.EIO)))
