"""`messages.jsonl`: the messages of a conversation, a line each."""

from collections.abc import Iterator
from pathlib import Path

from kode_sidecar.domain.message import Message
from kode_sidecar.records.jsonl import DiskCounter, JsonlFile, read_records, stream_lines
from kode_sidecar.records.message_record import decode_message, encode_message
from kode_sidecar.records.message_storage import KeptMessages
from kode_sidecar.records.quarantine import open_lines

MESSAGES_FILE = "messages.jsonl"


class JsonlMessageFile:
    """`message_storage.MessageFile` over lines."""

    def __init__(self, path: Path, counter: DiskCounter) -> None:
        self._file = JsonlFile(path, counter)

    def append(self, message: Message) -> None:
        """With one write. Raises KodeError `Storage`."""
        self._file.append(encode_message(message))

    def sync(self) -> None:
        """fsync. Raises KodeError `Storage`."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()


class JsonlMessages:
    """`message_storage.MessageStorage` as lines."""

    def create(self, folder: Path, counter: DiskCounter) -> JsonlMessageFile:
        """An empty file."""
        return JsonlMessageFile(folder / MESSAGES_FILE, counter)

    def open(self, folder: Path, counter: DiskCounter) -> tuple[JsonlMessageFile, KeptMessages]:
        """Damaged lines go to `messages.jsonl.bad`."""
        lines = open_lines(folder / MESSAGES_FILE, decode_message, counter)
        return self.create(folder, counter), KeptMessages(lines.records, lines.problems)

    def load(self, folder: Path) -> KeptMessages:
        """A missing file holds nothing."""
        return KeptMessages(*read_records(folder / MESSAGES_FILE, decode_message))

    def records(self, folder: Path) -> Iterator[bytes]:
        """Line by line."""
        return (line for _, line in stream_lines(folder / MESSAGES_FILE))

    def is_empty(self, folder: Path) -> bool:
        """By its size: one that cannot be read holds something."""
        try:
            return (folder / MESSAGES_FILE).stat().st_size == 0
        except OSError:
            return True
