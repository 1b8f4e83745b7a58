"""A scripted LSP process for tests of the client; run as a program. Only stdin and stdout."""

import json
import os
import sys
from typing import Any

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame

STUBBORN = "--stubborn" in sys.argv
Json = dict[str, Any]


class Echo:
    """Each method of this class answers the message of that name."""

    def __init__(self) -> None:
        self._asked: int | str = 0

    def initialize(self, message: Json) -> None:
        reply(message, {"capabilities": {"seen": message["params"]}})

    def echo(self, message: Json) -> None:
        reply(message, message.get("params"))

    def fail(self, message: Json) -> None:
        send({"id": message["id"], "error": message["params"]})

    def ask(self, message: Json) -> None:
        """Ask the client; its answer becomes the answer."""
        self._asked = message["id"]
        send({"id": "q-1", **message["params"]})

    def answered(self, message: Json) -> None:
        send({"id": self._asked, "result": message})

    def flood(self, message: Json) -> None:
        for number in range(message["params"]["count"]):
            send({"method": "drop", "params": {"number": number, "pad": "x" * 1000}})
        reply(message, None)

    def cancelrequest(self, message: Json) -> None:
        send({"method": "cancelled", "params": message["params"]})

    def die(self, message: Json) -> None:
        sys.stderr.write("boom: the disk is on fire\n" + message["params"]["more"])
        sys.stderr.flush()
        os._exit(3)

    def garbage(self, message: Json) -> None:
        write(b"this is no frame\r\n\r\n")

    def shutdown(self, message: Json) -> None:
        if not STUBBORN:
            reply(message, None)

    def exit(self, message: Json) -> None:
        if not STUBBORN:
            os._exit(0)

    def ignore(self, message: Json) -> None:
        pass


def reply(message: Json, result: Any) -> None:
    send({"id": message["id"], "result": result})


def send(message: Json) -> None:
    write(encode_frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main() -> None:
    decoder, echo = FrameDecoder(), Echo()
    while True:
        data = os.read(sys.stdin.fileno(), 65536)
        if not data and not STUBBORN:
            return
        for body in decoder.feed(data):
            message = json.loads(body)
            name = message.get("method", "answered").lower().removeprefix("$/")
            getattr(echo, name, echo.ignore)(message)


if __name__ == "__main__":
    main()
