"""Recordings of format 1, read as if they had been made today.

That format named each time limit and each call in a thread by its owner. Today a timer is known by
its length, and a call without a line returns at once.
"""

import json
from collections.abc import Sequence
from typing import Any

_SCOUT_SECONDS = 600.0
_EDIT = "edit, "
_SAVE = "Saver.sync"


def upgraded(raw_lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of a recording of format 1 in format 2.

    Each line stays one line, because a difference names line numbers.
    """
    head: Any = json.loads(raw_lines[0])
    patience = head.get("settings", {}).get("permission_timeout")
    return [_upgraded(raw, patience) for raw in raw_lines]


def _upgraded(raw: bytes, patience: float | None) -> bytes:
    if not raw.startswith((b'{"lane":"alarm"', b'{"lane":"work"', b'{"lane":"chance"')):
        return raw
    try:
        line: Any = json.loads(raw)
    except ValueError:
        return raw  # whoever reads it names the damage
    told: dict[str, Any] = {"t": line.get("t", 0.0)}
    name: str = line.get("name", "")
    if line["lane"] == "chance":
        told |= {"lane": "random", "value": line["value"]}
    elif line["lane"] == "alarm":
        told |= {"lane": "timer", "seconds": _seconds(name, patience)}
    elif name.startswith("sleep "):
        told |= {"lane": "timer"}
    else:  # a tool, or the agent being loaded: today these are no calls in a thread
        told |= {"lane": "call", "name": _SAVE if name.startswith("save ") else name}
    return json.dumps(told).encode()


def _seconds(name: str, patience: float | None) -> float | None:
    if name.startswith(_EDIT):
        return float(name.removeprefix(_EDIT).removesuffix(" s"))
    if name.startswith("answer to "):
        return patience
    return _SCOUT_SECONDS if name.startswith("deadline of scout") else None
