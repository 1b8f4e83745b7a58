"""`messages.sqlite`: the messages of a conversation, a row each; and the way there and back.

What was said since it was opened stands in `messages.new.jsonl` beside it, line by line, and
becomes rows when it is opened the next time: so a commit is one write and an fsync, as with lines,
and a conversation that is open needs no descriptor for its database. A line goes only when its row
is saved; one that is found in both places counts once.

One database a conversation, in its folder: its lock is the session's, damage in it is the
session's alone, two processes never wait for each other, and deleting the folder deletes it.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from kode_sidecar.core.domain.message import Message
from kode_sidecar.core.whole_files import sync_folder
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_read, not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, is_sealed
from kode_sidecar.infrastructure.records.jsonl import (
    LineProblem,
    append_lines,
    open_lines,
    read_lines,
    stream_lines,
)
from kode_sidecar.infrastructure.records.message_record import decode_message, decode_outline
from kode_sidecar.infrastructure.records.messages import (
    DATABASE_FILE,
    MESSAGES_FILE,
    NEW_FILE,
    KeptMessages,
    MessageFile,
    StorageName,
    messages_in,
)
from kode_sidecar.infrastructure.records.sqlite_file import (
    DamagedDatabase,
    Row,
    SqliteFile,
    log_of,
    read_numbered,
    read_rows,
    readable_records,
    write_database,
)

_INDEX_SUFFIX = "-shm"
_NEW_FILE = ".messages.sqlite.new"


class SqliteMessages:
    """`MessageStorage` as rows."""

    def create(self, folder: Path) -> MessageFile:
        """Return an empty file of what is new; the database is made when it is opened again."""
        return MessageFile(folder / NEW_FILE)

    def open(self, folder: Path) -> tuple[MessageFile, KeptMessages]:
        """Damaged rows go to `messages.sqlite.bad`, damaged lines to `messages.new.jsonl.bad`.

        A database whose structure is damaged is kept beside as a whole, and one with what can be
        read of it takes its place.
        """
        path = folder / DATABASE_FILE
        new = open_lines(folder / NEW_FILE, decode_message)
        damage = new.problems
        try:
            kept = _opened(folder)
        except DamagedDatabase as error:
            damage = [LineProblem(0, str(error)), *damage]
            _set_aside(path)
            kept = _opened(folder)
        return _lines(folder), replace(kept, problems=[*damage, *kept.problems])

    def load(self, folder: Path) -> KeptMessages:
        """As far as the structure is sound."""
        path = folder / DATABASE_FILE
        new = read_lines(folder / NEW_FILE, decode_message, keep=False)  # before it becomes rows
        damage: list[LineProblem] = []
        try:
            rows = list(read_rows(path))
        except DamagedDatabase as error:
            damage.append(LineProblem(0, str(error)))
            rows = list(enumerate(readable_records(path), start=1))
        decoded = _Decoded(iter(rows), decode_message)
        messages = [*decoded.messages, *decoded.missing(new.records)]
        return KeptMessages(messages, [*damage, *decoded.problems, *new.problems])

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """A new database takes the place of the one that is there, and of what is new."""
        put_database(folder, records)

    def records(self, folder: Path) -> Iterator[bytes]:
        """Row by row, as far as the structure is sound, and then what is new."""
        new = dict.fromkeys(line for _, line in stream_lines(folder / NEW_FILE))
        with suppress(DamagedDatabase):
            for _, record in read_rows(folder / DATABASE_FILE):
                new.pop(record, None)
                yield record
        yield from new

    def is_empty(self, folder: Path) -> bool:
        """Return whether there is neither a row nor a line."""
        return next(self.records(folder), None) is None


def _opened(folder: Path) -> KeptMessages:
    """Let what is new become rows, and return the messages."""
    path = folder / DATABASE_FILE
    new = read_lines(folder / NEW_FILE, decode_message)
    if not path.exists():
        with suppress(KodeError):  # the lines stay for the next time
            put_database(folder, new.whole)
        if not path.exists():
            return KeptMessages(new.records)
    with closing(SqliteFile(path)) as file:
        decoded = _Decoded(file.rows(), _outline)
        missing = decoded.missing(new.records)
        if decoded.damaged or new.records:
            with suppress(KodeError):  # as above
                if decoded.damaged:
                    bad = (record.replace(b"\n", b" ") for record in decoded.damaged.values())
                    append_lines(path.with_name(f"{path.name}.bad"), bad)
                ids = {one.id for one in missing}
                lines = zip(new.records, new.whole, strict=True)
                file.change([line for one, line in lines if one.id in ids], decoded.damaged)
                _empty(folder / NEW_FILE)

    def read(ids: Sequence[str]) -> list[Message]:
        return _whole(path, [decoded.numbers[one] for one in ids])

    messages = [*decoded.messages, *missing]
    return KeptMessages(messages, decoded.problems, decoded.numbers.keys(), read)


def _outline(record: bytes) -> Message:
    """Checked in full, but without its content; what has no checksum must be read to be known."""
    return decode_outline(record) if is_sealed(record) else decode_message(record)


def _whole(path: Path, numbers: Sequence[int]) -> list[Message]:
    try:
        return [decode_message(record) for record in read_numbered(path, numbers)]
    except DECODE_ERRORS:
        raise not_read(path.name, OSError(errno.EIO, os.strerror(errno.EIO))) from None


class _Decoded:
    """The messages with their row numbers, in the order written, and the rows that are damaged."""

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

    def missing(self, messages: Iterable[Message]) -> list[Message]:
        """Return those of the messages that are none of these."""
        return [one for one in messages if one.id not in self.numbers]


def put_database(folder: Path, records: Sequence[bytes]) -> None:
    """Let a new database with these records be all that holds the messages of a conversation.

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
        _empty(folder / NEW_FILE)
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


def _empty(path: Path) -> None:
    """Let a file of lines be empty, if it is there; its lines are rows. Raises OSError."""
    if path.exists():
        os.truncate(path, 0)


def _lines(folder: Path) -> MessageFile:
    there = (folder / NEW_FILE).exists()
    file = MessageFile(folder / NEW_FILE)
    if not there:  # of a database that was made before there were lines beside it
        try:
            sync_folder(folder)
        except OSError as error:
            raise not_saved(NEW_FILE, error) from None
    return file


def _set_aside(path: Path) -> None:
    """Meanwhile a file of lines holds what can be read: whatever happens, that is there."""
    folder, records = path.parent, readable_records(path)
    records += [line for _, line in stream_lines(folder / NEW_FILE) if line not in set(records)]
    lines = b"".join(record + b"\n" for record in records)
    replace_file(folder / MESSAGES_FILE, lines, durable=True)
    taken = len(list(folder.glob(f"{DATABASE_FILE}.damaged-?")))
    retire_database(folder, f"{DATABASE_FILE}.damaged-{taken + 1}")
    put_database(folder, records)
    with suppress(OSError):
        (folder / MESSAGES_FILE).unlink()


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
        with suppress(OSError):
            (folder / NEW_FILE).unlink(missing_ok=True)


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
