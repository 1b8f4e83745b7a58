"""JSON for the disk: whatever the value holds, one line of valid UTF-8 comes out."""

import re
from typing import Any, cast

import msgspec

from kode_sidecar.errors import KodeError
from kode_sidecar.records.checksum import DamagedRecord

# What decoding a damaged line can raise.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, DamagedRecord)

_SURROGATE = re.compile("[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()


def encode_json(value: object) -> bytes:
    """Compact JSON without a line feed in it; lone surrogates become U+FFFD.

    Raises KodeError `Storage` for a value nested deeper than the interpreter can follow.
    """
    try:
        try:
            return _encoder.encode(value)
        except UnicodeEncodeError:
            return _encoder.encode(_clean(msgspec.to_builtins(value)))
    except RecursionError:
        text = "not saved: a value in it is nested too deeply; ask for something flatter"
        raise KodeError("Storage", text) from None


def clean_text(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, so that UTF-8 can hold it."""
    return _SURROGATE.sub("\ufffd", text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        pairs = cast(dict[Any, Any], value).items()
        return {_clean(key): _clean(item) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast(list[Any], value)]
    return value
