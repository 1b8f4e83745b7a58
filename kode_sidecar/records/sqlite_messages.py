"""`messages.sqlite`: the messages of a conversation, a row each; and the way there and back.

One database a conversation, in its folder: its lock is the session's, damage in it is the
session's alone, two processes never wait for each other, and deleting the folder deletes it.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kode_sidecar.domain.message import Message
from kode_sidecar.errors import KodeError
from kode_sidecar.records.disk import not_read, not_saved, replace_file, sync_folder
from kode_sidecar.records.json_record import DECODE_ERRORS, is_sealed
from kode_sidecar.records.jsonl import JsonlFile, LineProblem
from kode_sidecar.records.message_record import decode_message, decode_outline, encode_message
from kode_sidecar.records.messages import (
    DATABASE_FILE,
    MESSAGES_FILE,
    KeptMessages,
    StorageName,
    messages_in,
)
from kode_sidecar.records.sqlite_file import (
    DamagedDatabase,
    Row,
    SqliteFile,
    log_of,
    read_rows,
    readable_records,
    write_database,
)

_INDEX_SUFFIX = "-shm"
_NEW_FILE = ".messages.sqlite.new"


class SqliteMessageFile:
    """`MessageFile` over rows."""

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
    """`MessageStorage` as rows."""

    def create(self, folder: Path) -> SqliteMessageFile:
        """An empty database."""
        return SqliteMessageFile(SqliteFile(folder / DATABASE_FILE, new=True))

    def open(self, folder: Path) -> tuple[SqliteMessageFile, KeptMessages]:
        """Damaged rows go to `messages.sqlite.bad`.

        A database whose structure is damaged is kept beside as a whole, and one with what can be
        read of it takes its place.
        """
        path = folder / DATABASE_FILE
        try:
            return _opened(path)
        except DamagedDatabase as damage:
            _set_aside(path)
            file, kept = _opened(path)
            return file, replace(kept, problems=[LineProblem(0, str(damage)), *kept.problems])

    def load(self, folder: Path) -> KeptMessages:
        """As far as the structure is sound."""
        path = folder / DATABASE_FILE
        damage: list[LineProblem] = []
        try:
            rows = list(read_rows(path))
        except DamagedDatabase as error:
            damage.append(LineProblem(0, str(error)))
            rows = list(enumerate(readable_records(path), start=1))
        decoded = _Decoded(iter(rows), decode_message)
        return KeptMessages(decoded.messages, [*damage, *decoded.problems])

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """A new database takes the place of the one that is there."""
        put_database(folder, records)

    def records(self, folder: Path) -> Iterator[bytes]:
        """Row by row, as far as the structure is sound."""
        with suppress(DamagedDatabase):
            for _, record in read_rows(folder / DATABASE_FILE):
                yield record

    def is_empty(self, folder: Path) -> bool:
        """A new database has no rows."""
        return next(self.records(folder), None) is None


def _opened(path: Path) -> tuple[SqliteMessageFile, KeptMessages]:
    file = SqliteFile(path)
    try:
        decoded = _Decoded(file.rows(), _outline)
        if decoded.damaged:
            with suppress(KodeError):  # it stays for the next time
                _quarantine(path, decoded.damaged.values())
                file.remove(decoded.damaged)
    except BaseException:
        file.close()
        raise

    def read(ids: Sequence[str]) -> list[Message]:
        return [_whole(file, decoded.numbers[one]) for one in ids]

    kept = KeptMessages(decoded.messages, decoded.problems, decoded.numbers.keys(), read)
    return SqliteMessageFile(file), kept


def _outline(record: bytes) -> Message:
    """Checked in full, but without its content; what has no checksum must be read to be known."""
    return decode_outline(record) if is_sealed(record) else decode_message(record)


def _whole(file: SqliteFile, number: int) -> Message:
    try:
        return decode_message(file.record(number))
    except DECODE_ERRORS:
        raise not_read(file.name, OSError(errno.EIO, os.strerror(errno.EIO))) from None


class _Decoded:
    """The messages in the order written with their numbers, and the rows that hold none."""

    def __init__(self, rows: Iterator[Row], decode: Callable[[bytes], Message]) -> None:
        self.messages: list[Message] = []
        self.numbers: dict[str, int] = {}
        self.problems: list[LineProblem] = []
        self.damaged: dict[int, bytes] = {}
        for number, record in rows:
            try:
                message = decode(record)
            except DECODE_ERRORS as error:
                self.problems.append(LineProblem(number, str(error)))
                self.damaged[number] = record
            else:
                self.messages.append(message)
                # Of two messages with one id the first counts.
                self.numbers.setdefault(message.id, number)


def put_database(folder: Path, records: Sequence[bytes]) -> None:
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
        sync_folder(folder)
    except OSError as error:
        raise not_saved(DATABASE_FILE, error) from None


def retire_database(folder: Path, name: str | None = None) -> None:
    """Take the database out of its place; it is deleted, or kept under `name`.

    Raises KodeError `Storage`.
    """
    path = folder / DATABASE_FILE
    aside = folder / (name or f".{DATABASE_FILE}.old")
    try:
        os.replace(path, aside)
        sync_folder(folder)
        if name is not None and log_of(path).exists():
            os.replace(log_of(path), log_of(aside))
        for left in (*_companions(path), *(() if name else (aside,))):
            left.unlink(missing_ok=True)
    except OSError as error:
        raise not_saved(DATABASE_FILE, error) from None


def _companions(path: Path) -> tuple[Path, Path]:
    return log_of(path), path.with_name(f"{path.name}{_INDEX_SUFFIX}")


def _set_aside(path: Path) -> None:
    """Meanwhile a file of lines holds what can be read: whatever happens, that is there."""
    folder, records = path.parent, readable_records(path)
    lines = b"".join(record + b"\n" for record in records)
    replace_file(folder / MESSAGES_FILE, lines, durable=True)
    taken = len(list(folder.glob(f"{DATABASE_FILE}.damaged-?")))
    retire_database(folder, f"{DATABASE_FILE}.damaged-{taken + 1}")
    put_database(folder, records)
    with suppress(OSError):
        (folder / MESSAGES_FILE).unlink()


def _quarantine(path: Path, damaged: Iterable[bytes]) -> None:
    file = JsonlFile(path.with_name(f"{path.name}.bad"))
    try:
        for record in damaged:
            file.append(record.replace(b"\n", b" "))
        file.sync()
    finally:
        file.close()


def move_messages(folder: Path, to: StorageName) -> None:
    """From the other way to this one, by the only writer. Blocks; raises KodeError `Storage`.

    What is damaged is quarantined before. The copy is saved and compared with the original before
    that one goes: whatever happens in between, one of them is whole and the one that counts.
    """
    source = messages_in(folder)
    source.open(folder)[0].close()
    records = list(source.records(folder))
    if to == "sqlite":
        put_database(folder, records)  # from now on it counts
        try:
            (folder / MESSAGES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(MESSAGES_FILE, error) from None
    else:
        _put_lines(folder, records)
        retire_database(folder)  # from now on the lines count


def _put_lines(folder: Path, records: list[bytes]) -> None:
    path = folder / MESSAGES_FILE
    data = b"".join(record + b"\n" for record in records)
    replace_file(path, data, durable=True)
    try:
        same = path.read_bytes() == data
    except OSError as error:
        raise not_saved(MESSAGES_FILE, error) from None
    if not same:
        raise not_saved(MESSAGES_FILE, OSError(errno.EIO, os.strerror(errno.EIO)))
