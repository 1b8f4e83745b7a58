"""Names of servers' tools as models take them: unique, stable, at most 64 characters. Pure."""

import hashlib
import re

MOST_CHARS = 64
_REFUSED = re.compile(r"[^A-Za-z0-9_-]+")
_TAIL_CHARS = 8


def tool_name(server: str, tool: str) -> str:
    """Return `mcp__SERVER__TOOL`, or a shorter one with a tail that tells it from its likes.

    A name hangs on server and tool alone, so it is the same in every session.
    """
    plain = f"mcp__{server}__{_REFUSED.sub('_', tool)}"
    if len(plain) <= MOST_CHARS and plain.endswith(f"__{tool}"):
        return plain
    tail = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_TAIL_CHARS]
    return f"{plain[: MOST_CHARS - 1 - _TAIL_CHARS]}_{tail}"
