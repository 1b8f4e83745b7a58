"""Stores the messages of a conversation in `messages.sqlite`, a row each.

Each conversation has its own database: the session's lock protects it, damage stays in one
session, two processes never wait for each other, and deleting the folder deletes the database.
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
    """`MessageFile` with rows."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self.sync, self.close = file.sync, file.close

    def append(self, *messages: Message) -> None:
        """Append a row per message, in one transaction."""
        self._file.append(list(map(encode_message, messages)))


class SqliteMessages:
    """`MessageStorage` with rows."""

    def create(self, folder: Path) -> MessageRows:
        """Return an empty database."""
        return MessageRows(SqliteFile(folder / DATABASE_FILE, new=True))

    def open(self, folder: Path) -> tuple[MessageRows, LoadedMessages]:
        """Open the database as its only writer; move damaged rows to `messages.sqlite.bad`.

        A database with a damaged structure is set aside whole, and replaced by one with its
        readable records.
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
            with suppress(KodeError):  # the damaged rows stay until the next time
                bad = (record.replace(b"\n", b" ") for record in decoded.damaged.values())
                append_lines(path.with_name(f"{path.name}.bad"), bad)
                remove_rows(path, decoded.damaged)
        problems += decoded.problems
        return MessageRows(SqliteFile(path)), LoadedMessages(decoded.messages, problems)

    def load(self, folder: Path) -> LoadedMessages:
        """Return the messages, as far as the structure is intact."""
        decoded = _Decoded()
        try:
            decoded.read(_rows(folder))
        except DamagedDatabase as error:
            decoded.problems.insert(0, LineProblem(0, str(error)))
        return LoadedMessages(decoded.messages, decoded.problems)

    def records(self, folder: Path) -> Iterator[bytes]:
        """Yield the records row by row, as far as the structure is intact."""
        with suppress(DamagedDatabase):
            for _, record in _rows(folder):
                yield record

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """Write a new database, and move it into the place of the present one."""
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
        """Delete the database; it is renamed first, so that a partly deleted one is never used."""
        path, gone = folder / DATABASE_FILE, folder / f".{DATABASE_FILE}.old"
        try:
            _move_away(path, gone)
            gone.unlink()
            delete_companions(path)
            (folder / LEFT_LINES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(DATABASE_FILE, error) from None

    def _checked(self, folder: Path) -> "_Decoded":
        """Check the database and decode it, as its only writer. Raises DamagedDatabase."""
        path = folder / DATABASE_FILE
        if path.exists():
            check_database(path)
        decoded = _Decoded()
        if (folder / LEFT_LINES_FILE).exists():
            decoded.problems += self._adopt_left_lines(folder)
        decoded.read(read_rows(path))
        return decoded

    def _adopt_left_lines(self, folder: Path) -> Sequence[LineProblem]:
        """Convert an earlier version's lines into rows; delete them once the rows are saved."""
        left = folder / LEFT_LINES_FILE
        lines = read_lines(left, decode_message)
        if lines.damaged:
            append_lines(left.with_name(f"{left.name}.bad"), lines.damaged)
        rows = dict.fromkeys(record for _, record in read_rows(folder / DATABASE_FILE))
        self.replace(folder, [*rows, *(line for line in lines.whole if line not in rows)])
        return lines.problems

    def _set_aside(self, folder: Path) -> None:
        """Replace a damaged database by its readable records; meanwhile lines hold these."""
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
    """The messages in the order written, and the damaged rows."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.problems: list[LineProblem] = []
        self.damaged: dict[int, bytes] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Decode more rows."""
        for number, record in rows:
            try:
                self.messages.append(decode_message(record))
            except DECODE_ERRORS as error:
                self.problems.append(LineProblem(number, str(error)))
                self.damaged[number] = record


def _rows(folder: Path) -> Iterator[Row]:
    """Yield all rows, then an earlier version's lines that are no rows. Raises DamagedDatabase."""
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
    """Rename a file and sync its folder. Raises OSError."""
    path.replace(to)
    sync_folder(path.parent)
