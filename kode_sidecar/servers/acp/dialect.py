"""The JSON-RPC dialect of ACP: one message a line, deltas as chunks, `$/cancel_request`."""

from collections.abc import Sequence

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.protocol.base_protocol import encode_line
from kode_sidecar.servers.lsp import RpcDialect, encode

_END = b"}}}}\n"
_TEXT = "\0"


def chunk_head(session_id: str, kind: str, message_id: str) -> str:
    """Return the JSON that precedes the text in every chunk of one block.

    The outbox merges the deltas of one block by its id. Here this head serves as that id, so that
    a delta needs no table, and only its text has to be encoded.
    """
    content = {"type": "text", "text": _TEXT}
    update = {"sessionUpdate": kind, "messageId": message_id, "content": content}
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
