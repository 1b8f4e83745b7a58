"""Finds whole records in the pages of a damaged SQLite database and of its log.

It asks neither the tree nor the pages' own directories, which may be what is damaged: it looks for
the bytes every row of ours begins with, follows its overflow pages, and believes the checksum.
Format: https://www.sqlite.org/fileformat2.html, sections 1.5, 1.6, 2.1 and 4.1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from kode_sidecar.records.disk import not_read
from kode_sidecar.records.json_record import DECODE_ERRORS, is_sealed, salvage
from kode_sidecar.records.message_record import decode_message

PAGE_BYTES = 4096
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_FRAME_BYTES = _FRAME_HEADER_BYTES + PAGE_BYTES

# The head of a row (its size, no value for the number, the size of the record) and the record.
_ROW = re.compile(rb'([\x03-\x06])\x00([\x80-\xff]{0,3}[\x00-\x7f])(?=\{"id":")')
_BLOB = 12  # the type of an empty one; each byte adds 2
# What of a row stays on its own page.
_MOST_LOCAL = PAGE_BYTES - 35
_LEAST_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
_OVERFLOW_BYTES = PAGE_BYTES - 4

_Pages = Mapping[int, bytes]


def log_of(path: Path) -> Path:
    """The file beside a database that commits are written to."""
    return path.with_name(f"{path.name}-wal")


def frame_count(path: Path) -> int:
    """How many pages the log of a database holds, whole and torn ones. Raises OSError."""
    try:
        size = log_of(path).stat().st_size
    except FileNotFoundError:
        return 0
    return -(-max(size - _LOG_HEADER_BYTES, 0) // _FRAME_BYTES)


def salvage_log(path: Path) -> list[bytes]:
    """The whole records in the log of a database, oldest first. Raises KodeError `Storage`."""
    images = _Images(path)
    return _in_order(_records(images.logged, images))


def message_ids(records: Iterable[bytes]) -> set[str]:
    """The ids of the whole messages among these."""
    found: set[str] = set()
    for record in records:
        with suppress(*DECODE_ERRORS):
            found.add(decode_message(record).id)
    return found


def salvage_all(path: Path) -> list[bytes]:
    """The whole records of a database and its log, oldest first. Raises KodeError `Storage`."""
    images = _Images(path)
    return _in_order(_records([*images.database.values(), *images.logged], images))


class _Images:
    """Every page as it stands in the database and in the log, which may hold it several times."""

    def __init__(self, path: Path) -> None:
        data, log = _bytes_of(path), _bytes_of(log_of(path))
        starts = range(0, len(data), PAGE_BYTES)
        self.database = {
            number: data[start : start + PAGE_BYTES] for number, start in enumerate(starts, start=1)
        }
        self.logged: list[bytes] = []
        newest: dict[int, bytes] = dict(self.database)
        for start in range(_LOG_HEADER_BYTES, len(log), _FRAME_BYTES):
            image = log[start + _FRAME_HEADER_BYTES : start + _FRAME_BYTES]
            self.logged.append(image)
            newest[int.from_bytes(log[start : start + 4], "big")] = image
        self.newest = newest


def _records(pages: Iterable[bytes], images: _Images) -> Iterator[bytes]:
    """What may be a record; some are there several times."""
    for image in pages:
        for head in _ROW.finditer(image):
            yield _record(image, head, images.newest)
            yield _record(image, head, images.database)
        # Where a row's own head is damaged the record may be whole.
        yield from salvage(image)[0]


def _record(image: bytes, head: re.Match[bytes], pages: _Pages) -> bytes:
    head_size, kind = head[1][0], _varint(head[2])
    if head_size != 2 + len(head[2]) or kind < _BLOB or kind % 2:
        return b""
    size = head_size + (kind - _BLOB) // 2
    return _payload(image, head.start(), size, pages)[head_size:]


def _payload(image: bytes, start: int, size: int, pages: _Pages) -> bytes:
    """The row that begins there, with what stands on other pages."""
    local = size
    if size > _MOST_LOCAL:
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % _OVERFLOW_BYTES
        if local > _MOST_LOCAL:
            local = _LEAST_LOCAL
    parts = [image[start : start + local]]
    following = int.from_bytes(image[start + local : start + local + 4], "big")
    missing = size - local
    while missing > 0 and following in pages:
        page = pages[following]
        parts.append(page[4 : 4 + missing])
        following = int.from_bytes(page[:4], "big")
        missing -= _OVERFLOW_BYTES
    return b"".join(parts)


def _in_order(records: Iterable[bytes]) -> list[bytes]:
    """Each whole message once. By time, and a message after the one it answers."""
    # First what is known to be as it was written: a damaged checksum looks like none.
    sealed_first = sorted(dict.fromkeys(records), key=is_sealed, reverse=True)
    known: dict[str, tuple[str, int, bytes]] = {}
    for record in sealed_first:
        with suppress(*DECODE_ERRORS):
            message = decode_message(record)
            known.setdefault(message.id, (message.created_at, message.depth, record))
    return [record for _, _, record in sorted(known.values())]


def _varint(data: bytes) -> int:
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
    return value


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise not_read(path.name, error) from None
