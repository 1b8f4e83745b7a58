"""Writes and checks records: lines of JSON with a checksum that shows damage."""

import re
from zlib import crc32

import msgspec

from kode_sidecar.core.text.shown_text import fix_value
from kode_sidecar.errors import KodeError

_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_SEAL_LENGTH = 18
# Where a record may begin inside a damaged line, and how many such places are tried.
_START = re.compile(rb'\{"')
_MOST_STARTS = 200
_JUNK = b" \t\r\0"


class DamagedRecord(ValueError):
    """The checksum of a record does not match its bytes."""


def seal(record: bytes) -> bytes:
    """Return the JSON object `record` with its checksum."""
    return b'%b,"crc":"%08x"}' % (record[:-1], crc32(record))


def is_sealed(record: bytes) -> bool:
    """Return whether the record has a checksum, right or wrong."""
    return _SEAL.fullmatch(record[-_SEAL_LENGTH:]) is not None


def check(record: bytes) -> bytes:
    """Return the record itself. Raises DamagedRecord if its checksum does not match.

    Without a checksum the record must be valid UTF-8: else this raises UnicodeDecodeError.
    """
    found = _SEAL.fullmatch(record[-_SEAL_LENGTH:])
    if found is None:
        record.decode()
    elif not _holds(record, int(found[1], 16)):
        raise DamagedRecord("the checksum is that of other bytes")
    return record


def unsealed(record: bytes) -> bytes:
    """Return an intact record without its checksum, anything else unchanged."""
    try:
        return check(record)[:-_SEAL_LENGTH] + b"}" if is_sealed(record) else record
    except DamagedRecord:
        return record


def salvage(line: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the intact sealed records inside a damaged line, and the rest of it."""
    whole: list[bytes] = []
    rest: list[bytes] = []
    at = 0
    for found in _SEAL.finditer(line):
        checksum = int(found[1], 16)
        starts = (match.start() for match in _START.finditer(line, at, found.start()))
        for _, start in zip(range(_MOST_STARTS), starts, strict=False):
            if _holds(line[start : found.end()], checksum):
                rest.append(line[at:start])
                whole.append(line[start : found.end()])
                at = found.end()
                break
    rest.append(line[at:])
    return whole, [piece for piece in rest if piece.strip(_JUNK)]


def _holds(record: bytes, checksum: int) -> bool:
    return crc32(b"}", crc32(record[:-_SEAL_LENGTH])) == checksum


# The errors that decoding a damaged line can raise.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DamagedRecord)

_encoder = msgspec.json.Encoder()


def encode_json(value: object) -> bytes:
    """Encode compact JSON without a line feed; halves of characters are joined or become U+FFFD.

    Raises KodeError `Storage` for a value nested deeper than the interpreter can follow.
    """
    try:
        try:
            return _encoder.encode(value)
        except UnicodeEncodeError:
            return _encoder.encode(fix_value(msgspec.to_builtins(value)))
    except RecursionError:
        text = "not saved: a value in it is nested too deeply; ask for something flatter"
        raise KodeError("Storage", text) from None
