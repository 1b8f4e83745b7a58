"""What LSP and ACP say differently over JSON-RPC 2.0; everything else of a connection is one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kode_sidecar.domain.agent_event import BlockDelta
from kode_sidecar.protocol.base_protocol import encode_frame
from kode_sidecar.protocol.events import DeltaParams
from kode_sidecar.server.codec import Notification, encode


@dataclass(frozen=True)
class Dialect:
    """How messages are framed, and the words of one protocol.

    `frame` puts a body on the wire, `deltas` growth of blocks. `cancel` is the notification that
    takes a request back, `cancelled` its member with the id. `has_shutdown`: the client says
    `shutdown` and `exit`, and speaks the standard lane of LSP; else the end of the input is a good
    end.
    """

    frame: Callable[[bytes], bytes]
    deltas: Callable[[Sequence[BlockDelta]], bytes]
    cancel: str
    cancelled: str
    has_shutdown: bool


def _kode_delta(deltas: Sequence[BlockDelta]) -> bytes:
    return encode_frame(encode(Notification("kode/delta", DeltaParams(tuple(deltas)))))


LSP = Dialect(encode_frame, _kode_delta, "$/cancelRequest", "id", has_shutdown=True)
