"""What is passed on between the front door and the server."""

from collections.abc import Callable

from kode_sidecar.protocol.framing import FrameDecoder


class Handover:
    """What the front door passes on once `initialize` is answered.

    `params` and `result` are those of `initialize`, `handshake` its two messages. `bodies` came
    right behind it and `decoder` may hold the beginning of the next; its `failure` may be set.
    `unpacker_id` is the process that unpacked this one, read before it could have gone unnoticed;
    None where this is no one-file program.
    `wait_drained` blocks until everything the front door said is written: whoever writes next
    calls it first.
    """

    __slots__ = (
        "bodies",
        "decoder",
        "fd_in",
        "fd_out",
        "handshake",
        "params",
        "result",
        "unpacker_id",
        "wait_drained",
    )

    def __init__(
        self,
        fd_in: int,
        fd_out: int,
        params: dict[str, object],
        result: dict[str, object],
        handshake: tuple[bytes, bytes],
        decoder: FrameDecoder,
        bodies: list[bytes],
        wait_drained: Callable[[], None],
        unpacker_id: int | None,
    ) -> None:
        self.fd_in = fd_in
        self.fd_out = fd_out
        self.params = params
        self.result = result
        self.handshake = handshake
        self.decoder = decoder
        self.bodies = bodies
        self.unpacker_id = unpacker_id
        self.wait_drained = wait_drained
