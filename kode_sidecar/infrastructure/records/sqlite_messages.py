"""`messages.sqlite`: the messages of a conversation, a row each.

One database a conversation, in its folder: its lock is the session's, damage in it is the
session's alone, two processes never wait for each other, and deleting the folder deletes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from kode_sidecar.core.domain.message import Message
from kode_sidecar.core.whole_files import move_over, sync_folder
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_saved
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS
from kode_sidecar.infrastructure.records.jsonl import (
    LineProblem,
    append_lines,
    read_lines,
    stream_lines,
)
from kode_sidecar.infrastructure.records.jsonl_messages import JsonlMessages
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message
from kode_sidecar.infrastructure.records.messages import (
    DATABASE_FILE,
    LEFT_LINES_FILE,
    LoadedMessages,
)
from kode_sidecar.infrastructure.records.sqlite_file import (
    DamagedDatabase,
    Row,
    SqliteFile,
    check_database,
    delete_companions,
    log_of,
    read_rows,
    remove_rows,
    write_database,
)

_NEW_FILE = ".messages.sqlite.new"


class MessageRows:
    """`MessageFile` as rows."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self.sync, self.close = file.sync, file.close

    def append(self, *messages: Message) -> None:
        """Append a row each, in one transaction."""
        self._file.append(list(map(encode_message, messages)))


class SqliteMessages:
    """`MessageStorage` as rows."""

    def create(self, folder: Path) -> MessageRows:
        """Return an empty database."""
        return MessageRows(SqliteFile(folder / DATABASE_FILE, new=True))

    def open(self, folder: Path) -> tuple[MessageRows, LoadedMessages]:
        """Damaged rows go to `messages.sqlite.bad`.

        A database whose structure is damaged is set aside as a whole, and one with what can be
        read of it takes its place.
        """
        path = folder / DATABASE_FILE
        problems: list[LineProblem] = []
        try:
            decoded = self._checked(folder)
        except DamagedDatabase as error:
            problems.append(LineProblem(0, str(error)))
            self._set_aside(folder)
            decoded = self._checked(folder)
        if decoded.damaged:
            with suppress(KodeError):  # they stay for the next time
                bad = (record.replace(b"\n", b" ") for record in decoded.damaged.values())
                append_lines(path.with_name(f"{path.name}.bad"), bad)
                remove_rows(path, decoded.damaged)
        problems += decoded.problems
        return MessageRows(SqliteFile(path)), LoadedMessages(decoded.messages, problems)

    def load(self, folder: Path) -> LoadedMessages:
        """As far as the structure is sound."""
        decoded = _Decoded()
        try:
            decoded.read(_rows(folder))
        except DamagedDatabase as error:
            decoded.problems.insert(0, LineProblem(0, str(error)))
        return LoadedMessages(decoded.messages, decoded.problems)

    def records(self, folder: Path) -> Iterator[bytes]:
        """Row by row, as far as the structure is sound."""
        with suppress(DamagedDatabase):
            for _, record in _rows(folder):
                yield record

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """A new database takes the place of the one that is there."""
        new, path = folder / _NEW_FILE, folder / DATABASE_FILE
        try:
            new.unlink(missing_ok=True)
            delete_companions(new)
            write_database(new, list(records))
            delete_companions(path)
            move_over(new, path)
            sync_folder(folder)
            (folder / LEFT_LINES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(DATABASE_FILE, error) from None

    def remove(self, folder: Path) -> None:
        """It is moved out of its place first: half of it never counts."""
        path, gone = folder / DATABASE_FILE, folder / f".{DATABASE_FILE}.old"
        try:
            _move_away(path, gone)
            gone.unlink()
            delete_companions(path)
            (folder / LEFT_LINES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(DATABASE_FILE, error) from None

    def _checked(self, folder: Path) -> "_Decoded":
        """Return what the only writer reads of a sound database. Raises DamagedDatabase."""
        path = folder / DATABASE_FILE
        if path.exists():
            check_database(path)
        decoded = _Decoded()
        if (folder / LEFT_LINES_FILE).exists():
            decoded.problems += self._adopt_left_lines(folder)
        decoded.read(read_rows(path))
        return decoded

    def _adopt_left_lines(self, folder: Path) -> Sequence[LineProblem]:
        """Make rows of the lines that an earlier version left; they go once the rows are saved."""
        left = folder / LEFT_LINES_FILE
        lines = read_lines(left, decode_message)
        if lines.damaged:
            append_lines(left.with_name(f"{left.name}.bad"), lines.damaged)
        rows = dict.fromkeys(record for _, record in read_rows(folder / DATABASE_FILE))
        self.replace(folder, [*rows, *(line for line in lines.whole if line not in rows)])
        return lines.problems

    def _set_aside(self, folder: Path) -> None:
        """Meanwhile a file of lines holds what can be read: whatever happens, that is there."""
        path, lines = folder / DATABASE_FILE, JsonlMessages()
        records = [*self.records(folder)]
        lines.replace(folder, records)
        taken = len(list(folder.glob(f"{DATABASE_FILE}.damaged-?")))
        aside = folder / f"{DATABASE_FILE}.damaged-{taken + 1}"
        try:
            _move_away(path, aside)
            if log_of(path).exists():
                log_of(path).replace(log_of(aside))
        except OSError as error:
            raise not_saved(DATABASE_FILE, error) from None
        self.replace(folder, records)
        with suppress(KodeError):
            lines.remove(folder)


class _Decoded:
    """The messages in the order written, and the rows that hold none."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.problems: list[LineProblem] = []
        self.damaged: dict[int, bytes] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Decode these, too."""
        for number, record in rows:
            try:
                self.messages.append(decode_message(record))
            except DECODE_ERRORS as error:
                self.problems.append(LineProblem(number, str(error)))
                self.damaged[number] = record


def _rows(folder: Path) -> Iterator[Row]:
    """Yield all rows, and the lines of an earlier version that are none. Raises DamagedDatabase."""
    lines = dict.fromkeys(line for _, line in stream_lines(folder / LEFT_LINES_FILE))
    damage: DamagedDatabase | None = None
    try:
        for number, record in read_rows(folder / DATABASE_FILE):
            lines.pop(record, None)
            yield number, record
    except DamagedDatabase as error:
        damage = error
    yield from ((0, line) for line in lines)
    if damage is not None:
        raise damage


def _move_away(path: Path, to: Path) -> None:
    """Raises OSError."""
    path.replace(to)
    sync_folder(path.parent)
