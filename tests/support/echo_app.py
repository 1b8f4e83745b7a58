"""A tiny app on the real server: what black-box tests of the stream talk to."""

import sys

from kode_sidecar.servers.boot import stdio_handshake


def main() -> int:
    handover = stdio_handshake.shake_hands()
    if isinstance(handover, int):
        return handover
    from tests.support.echo_handlers import serve

    return serve(handover)


if __name__ == "__main__":
    sys.exit(main())
