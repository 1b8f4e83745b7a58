"""`messages.sqlite`: the messages of a conversation, a row each.

One database a conversation, in its folder: its lock is the session's, damage in it is the
session's alone, two processes never wait for each other, and deleting the folder deletes it.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.records.json_text import DECODE_ERRORS
from kode_sidecar.records.jsonl import DiskCounter, JsonlFile, LineProblem
from kode_sidecar.records.jsonl_messages import MESSAGES_FILE
from kode_sidecar.records.message_record import decode_message, encode_message
from kode_sidecar.records.message_storage import DATABASE_FILE, KeptMessages
from kode_sidecar.records.sqlite_file import (
    DamagedDatabase,
    Row,
    SqliteFile,
    read_rows,
    write_database,
)
from kode_sidecar.records.sqlite_salvage import log_of, salvage_all
from kode_sidecar.records.storage_error import not_saved
from kode_sidecar.records.whole_file import replace_file, sync_folder

_INDEX_SUFFIX = "-shm"
_NEW_FILE = ".messages.sqlite.new"


class SqliteMessageFile:
    """`message_storage.MessageFile` over rows."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(self, message: Message) -> None:
        """With one commit. Raises KodeError `Storage`."""
        self._file.append(encode_message(message))

    def sync(self) -> None:
        """fsync. Raises KodeError `Storage`."""
        self._file.sync()

    def close(self) -> None:
        """Release the database; nothing is written."""
        self._file.close()


class SqliteMessages:
    """`message_storage.MessageStorage` as rows."""

    def create(self, folder: Path, counter: DiskCounter) -> SqliteMessageFile:
        """An empty database."""
        return SqliteMessageFile(SqliteFile(folder / DATABASE_FILE, counter, new=True))

    def open(self, folder: Path, counter: DiskCounter) -> tuple[SqliteMessageFile, KeptMessages]:
        """Damaged rows go to `messages.sqlite.bad`.

        A database whose structure is damaged is kept beside as a whole, and one with all its whole
        records takes its place.
        """
        path = folder / DATABASE_FILE
        try:
            return _opened(path, counter)
        except DamagedDatabase as damage:
            _rebuild(path, counter)
            file, kept = _opened(path, counter)
            return file, KeptMessages(kept.messages, (LineProblem(0, str(damage)), *kept.problems))

    def load(self, folder: Path) -> KeptMessages:
        """Out of the pages themselves where the structure is damaged."""
        path = folder / DATABASE_FILE
        try:
            kept, _ = _decoded(read_rows(path))
        except DamagedDatabase as damage:
            messages = [decode_message(record) for record in salvage_all(path)]
            return KeptMessages(messages, [LineProblem(0, str(damage))])
        return kept

    def records(self, folder: Path) -> Iterator[bytes]:
        """Row by row."""
        path = folder / DATABASE_FILE
        try:
            yield from (record for _, record in read_rows(path))
        except DamagedDatabase:
            yield from salvage_all(path)

    def is_empty(self, folder: Path) -> bool:
        """A new database has no rows."""
        return next(self.records(folder), None) is None


def _opened(path: Path, counter: DiskCounter) -> tuple[SqliteMessageFile, KeptMessages]:
    file = SqliteFile(path, counter)
    try:
        kept, damaged = _decoded(file.rows())
        if damaged:
            with suppress(KodeError):  # it stays for the next time
                _quarantine(path, damaged, counter)
                file.remove(number for number, _ in damaged)
    except BaseException:
        file.close()
        raise
    return SqliteMessageFile(file), kept


def _decoded(rows: Iterator[Row]) -> tuple[KeptMessages, Sequence[Row]]:
    """The messages, and the rows that hold none."""
    messages: list[Message] = []
    problems: list[LineProblem] = []
    damaged: list[Row] = []
    for number, record in rows:
        try:
            messages.append(decode_message(record))
        except DECODE_ERRORS as error:
            problems.append(LineProblem(number, str(error)))
            damaged.append((number, record))
    return KeptMessages(messages, problems), damaged


def put_database(folder: Path, records: Sequence[bytes], counter: DiskCounter) -> None:
    """Let a new database with these records be what holds the messages of a conversation.

    It is compared with them before it takes its place. Raises KodeError `Storage`.
    """
    new, path = folder / _NEW_FILE, folder / DATABASE_FILE
    try:
        for stale in (new, log_of(new), *_companions(path)):
            stale.unlink(missing_ok=True)
        write_database(new, records)
        if [record for _, record in read_rows(new)] != list(records):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        for left in _companions(new):
            left.unlink(missing_ok=True)
        os.replace(new, path)
        sync_folder(folder, counter)
    except OSError as error:
        raise not_saved(DATABASE_FILE, error) from None


def retire_database(folder: Path, counter: DiskCounter, name: str | None = None) -> None:
    """Take the database out of its place; it is deleted, or kept under `name`.

    Raises KodeError `Storage`.
    """
    path = folder / DATABASE_FILE
    aside = folder / (name or f".{DATABASE_FILE}.old")
    try:
        os.replace(path, aside)
        sync_folder(folder, counter)
        if name is not None and log_of(path).exists():
            os.replace(log_of(path), log_of(aside))
        for left in (*_companions(path), *(() if name else (aside,))):
            left.unlink(missing_ok=True)
    except OSError as error:
        raise not_saved(DATABASE_FILE, error) from None


def _companions(path: Path) -> tuple[Path, Path]:
    return log_of(path), path.with_name(f"{path.name}{_INDEX_SUFFIX}")


def _rebuild(path: Path, counter: DiskCounter) -> None:
    """Meanwhile a file of lines holds the messages: whatever happens, they are all there."""
    folder, records = path.parent, salvage_all(path)
    lines = b"".join(record + b"\n" for record in records)
    replace_file(folder / MESSAGES_FILE, lines, durable=True, counter=counter)
    taken = len(list(folder.glob(f"{DATABASE_FILE}.damaged-?")))
    retire_database(folder, counter, f"{DATABASE_FILE}.damaged-{taken + 1}")
    put_database(folder, records, counter)
    with suppress(OSError):
        (folder / MESSAGES_FILE).unlink()


def _quarantine(path: Path, damaged: Sequence[Row], counter: DiskCounter) -> None:
    file = JsonlFile(path.with_name(f"{path.name}.bad"), counter)
    try:
        for _, record in damaged:
            file.append(record.replace(b"\n", b" "))
        file.sync()
    finally:
        file.close()
