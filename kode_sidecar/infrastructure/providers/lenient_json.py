"""JSON of hosts that strict readers refuse, and the counts in it. Sans-IO."""

import json

Number = int | float | None
MOST_TOKENS = 2**53


def lenient_json(data: bytes) -> object:
    """Return what the bytes say, None where nobody can tell.

    Lone surrogates (a character cut in two by a gateway), raw control characters, NaN, and bytes
    that are not UTF-8 are let pass.
    """
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def is_utf8(data: bytes) -> bool:
    """Return whether nothing is lost when the bytes become text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def token_count(*values: Number) -> int:
    """Return the first count given, 0 for none; what no host can have counted is none."""
    return next((int(value) for value in values if value and 0 < value < MOST_TOKENS), 0)
