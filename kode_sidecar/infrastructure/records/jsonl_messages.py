"""Stores the messages of a conversation in `messages.jsonl`, a line each."""

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kode_sidecar.core.domain.message import Message
from kode_sidecar.infrastructure.records.disk import not_saved, replace_file
from kode_sidecar.infrastructure.records.jsonl import (
    JsonlFile,
    open_lines,
    read_records,
    stream_lines,
)
from kode_sidecar.infrastructure.records.message_record import decode_message, encode_message
from kode_sidecar.infrastructure.records.messages import MESSAGES_FILE, LoadedMessages


class MessageLines:
    """`MessageFile` with lines; for a conversation, or a scout."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)
        self.sync, self.close = self._file.sync, self._file.close

    def append(self, *messages: Message) -> None:
        """Append a line per message, with one write."""
        self._file.append(b"\n".join(map(encode_message, messages)))


class JsonlMessages:
    """`MessageStorage` with lines."""

    def create(self, folder: Path) -> MessageLines:
        """Return an empty file."""
        return MessageLines(folder / MESSAGES_FILE)

    def open(self, folder: Path) -> tuple[MessageLines, LoadedMessages]:
        """Open the file as its only writer; move damaged lines to `messages.jsonl.bad`."""
        lines = open_lines(folder / MESSAGES_FILE, decode_message)
        return self.create(folder), LoadedMessages(lines.records, lines.problems)

    def load(self, folder: Path) -> LoadedMessages:
        """Return the messages of the file; none if it is missing."""
        return LoadedMessages(*read_records(folder / MESSAGES_FILE, decode_message))

    def records(self, folder: Path) -> Iterator[bytes]:
        """Yield the records line by line."""
        return (line for _, line in stream_lines(folder / MESSAGES_FILE))

    def replace(self, folder: Path, records: Sequence[bytes]) -> None:
        """Replace the whole file."""
        data = b"".join(record + b"\n" for record in records)
        replace_file(folder / MESSAGES_FILE, data, durable=True)
        if list(self.records(folder)) != list(records):
            raise not_saved(MESSAGES_FILE, OSError(errno.EIO, os.strerror(errno.EIO)))

    def remove(self, folder: Path) -> None:
        """Delete the file, if it exists."""
        try:
            (folder / MESSAGES_FILE).unlink(missing_ok=True)
        except OSError as error:
            raise not_saved(MESSAGES_FILE, error) from None
