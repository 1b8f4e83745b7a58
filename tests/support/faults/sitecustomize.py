"""Faults for a sidecar under test: Python imports this before it when it is on PYTHONPATH.

KODE_TEST_FSYNC_PORT: every fsync first asks the test, which lets it happen when it likes.
KODE_TEST_BROKEN_UUID: making a UUID fails with that text.
KODE_TEST_FULL_DISK: nothing can be written to files while a file of that name exists.
KODE_TEST_STRAY: making a UUID prints that text, and writes it to descriptor 1.
"""

import errno
import os
import socket
import stat
import uuid

_fsync = os.fsync
_write = os.write
_uuid4 = uuid.uuid4


def _asking_fsync(fd: int) -> None:
    port = int(os.environ["KODE_TEST_FSYNC_PORT"])
    with socket.create_connection(("127.0.0.1", port)) as gate:
        gate.recv(1)
    _fsync(fd)


def _write_if_room(fd: int, data: bytes) -> int:
    if os.path.exists(os.environ["KODE_TEST_FULL_DISK"]) and stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(errno.ENOSPC, "No space left on device")
    return _write(fd, data)


def _no_uuid() -> uuid.UUID:
    raise ValueError(os.environ["KODE_TEST_BROKEN_UUID"])


def _chatty_uuid() -> uuid.UUID:
    stray = os.environ["KODE_TEST_STRAY"]
    print(f"{stray} print", flush=True)  # noqa: T201
    os.write(1, f"{stray} write\n".encode())
    return _uuid4()


if "KODE_TEST_FSYNC_PORT" in os.environ:
    os.fsync = _asking_fsync
if "KODE_TEST_FULL_DISK" in os.environ:
    os.write = _write_if_room
if "KODE_TEST_BROKEN_UUID" in os.environ:
    uuid.uuid4 = _no_uuid
if "KODE_TEST_STRAY" in os.environ:
    uuid.uuid4 = _chatty_uuid
