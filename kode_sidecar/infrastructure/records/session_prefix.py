"""The beginning of a session's requests, in `prefix.json`: saved at the first one, then fixed.

Hosts cache requests by prefix, so that a later process must send the same bytes. It is beside
`meta.json` because lists of sessions read that one, and this one is large.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS

PREFIX_FILE = "prefix.json"


class SavedTool(Struct, frozen=True):
    """A tool as the model was offered it. `late`: not at first, but in mid-conversation."""

    name: str
    description: str
    schema: dict[str, Any]
    late: bool = False


class SessionPrefix(Struct, frozen=True, kw_only=True):
    """What all requests of a session begin with; snake_case on disk.

    `version` is that of the program that wrote it. `surroundings` has what `system` says of the
    surroundings, by name. `model` and `effort` are those that were asked last: both are part of
    what a host caches by. `root` is the turn at the root of the branch that was asked last.
    """

    version: str
    system: str
    tools: tuple[SavedTool, ...] = ()
    surroundings: dict[str, str]
    model: str = ""
    effort: str = ""
    root: str = ""


_decode = msgspec.json.Decoder(SessionPrefix).decode


def read_prefix(folder: Path) -> SessionPrefix | None:
    """Return the saved prefix; None if there is none that can be read: the next turn makes one."""
    path = folder / PREFIX_FILE
    try:
        return None if path.is_symlink() else _decode(path.read_bytes())
    except (OSError, *DECODE_ERRORS):
        return None
