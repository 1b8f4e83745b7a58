"""Reads JSON of hosts and tool servers that strict readers refuse, and the counts in it. Pure."""

import json

Number = int | float | None
MOST_TOKENS = 2**53


def lenient_json(data: bytes) -> object:
    """Decode JSON bytes; return None if they cannot be read.

    Accepts lone surrogates (a character cut in two by a gateway), raw control characters, NaN, and
    bytes that are not UTF-8.
    """
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def is_utf8(data: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def token_count(*values: Number) -> int:
    """Return the first plausible count (above 0, below `MOST_TOKENS`), or 0."""
    return next((int(value) for value in values if value and 0 < value < MOST_TOKENS), 0)
