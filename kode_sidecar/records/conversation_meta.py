"""`meta.json`: the head of a conversation (A7)."""

import os
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from kode_sidecar.records.json_text import DECODE_ERRORS
from kode_sidecar.records.storage_error import not_read

META_FILE = "meta.json"

_USUAL_BYTES = 16 * 1024
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class HeadMark(Struct, frozen=True):
    """Where the head was moved to; None: before the first message.

    It holds until a message is written after `newest`: then that one is the head.
    """

    id: str | None
    newest: str | None


class ConversationMeta(Struct, frozen=True, kw_only=True):
    """What `meta.json` says; snake_case on disk.

    `agent_type` names an agent; times are RFC 3339 in UTC, `updated_at` that of the newest
    message. `meta` is the user's own and holds `projectRoot` and `roots`. `mode` and `model` are
    there when the user chose them for this session, `head` when it is not the newest message.
    """

    id: str
    title: str = ""
    agent_type: str = ""
    created_at: str = ""
    updated_at: str = ""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    mode: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    head: HeadMark | UnsetType = UNSET


_decode = msgspec.json.Decoder(ConversationMeta).decode


def read_meta(folder: str | os.PathLike[str]) -> ConversationMeta | None:
    """The meta of a conversation; None when it is missing or damaged.

    Raises KodeError `Storage` when the disk fails.
    """
    try:
        # Without pathlib and buffers, which cost more than the rest: a list reads thousands.
        fd = os.open(os.path.join(folder, META_FILE), _READ)
        try:
            data = os.read(fd, _USUAL_BYTES)
            while len(data) % _USUAL_BYTES == 0 and (more := os.read(fd, _USUAL_BYTES)):
                data += more
        finally:
            os.close(fd)
        return _decode(data)
    except (FileNotFoundError, *DECODE_ERRORS):
        return None
    except OSError as error:
        raise not_read(META_FILE, error) from None
