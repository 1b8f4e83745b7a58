"""The JSON-RPC dialect of ACP: one message a line, deltas as chunks, `$/cancel_request`."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from uuid import UUID

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.base_protocol import encode_line
from kode_sidecar.servers.lsp import RpcDialect, encode

_END = b"}}}}\n"
_TEXT = "\0"
_SHORT = "U"  # no id of an earlier version begins so


def short_message_id(message_id: str) -> str:
    """Return a message's UUID in 23 letters, for every chunk of its text carries it."""
    try:
        return _SHORT + urlsafe_b64encode(UUID(message_id).bytes).decode().rstrip("=")
    except ValueError:
        return message_id


def full_message_id(given: str) -> str:
    """Return the id of a message that a client gave, short or as it is."""
    if not given.startswith(_SHORT):
        return given
    try:
        return str(UUID(bytes=urlsafe_b64decode(f"{given.removeprefix(_SHORT)}==")))
    except (Base64Error, ValueError):
        return given


def chunk_head(session_id: str, kind: str, message_id: str) -> str:
    """Return the JSON that precedes the text in every chunk of one block.

    The outbox merges the deltas of one block by its id. Here this head serves as that id, so that
    a delta needs no table, and only its text has to be encoded.
    """
    content = {"type": "text", "text": _TEXT}
    update = {"sessionUpdate": kind, "messageId": short_message_id(message_id), "content": content}
    params = {"sessionId": session_id, "update": update}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return encode(message).decode().partition('"\\u0000"')[0]


def _chunks(deltas: Sequence[BlockDelta]) -> bytes:
    data = bytearray()
    for delta in deltas:
        data += delta.block_id.encode()
        data += encode(delta.add)
        data += _END
    return bytes(data)


ACP = RpcDialect(encode_line, _chunks, "$/cancel_request", "requestId", has_shutdown=False)
