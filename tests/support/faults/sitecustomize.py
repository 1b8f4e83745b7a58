"""Faults for a sidecar under test: Python imports this before it when it is on PYTHONPATH.

KODE_TEST_FSYNC_PORT: every fsync first asks the test, which lets it happen when it likes.
KODE_TEST_BROKEN_UUID: making a UUID fails with that text.
"""

import os
import socket
import uuid

_fsync = os.fsync


def _asking_fsync(fd: int) -> None:
    port = int(os.environ["KODE_TEST_FSYNC_PORT"])
    with socket.create_connection(("127.0.0.1", port)) as gate:
        gate.recv(1)
    _fsync(fd)


def _no_uuid() -> uuid.UUID:
    raise ValueError(os.environ["KODE_TEST_BROKEN_UUID"])


if "KODE_TEST_FSYNC_PORT" in os.environ:
    os.fsync = _asking_fsync
if "KODE_TEST_BROKEN_UUID" in os.environ:
    uuid.uuid4 = _no_uuid
