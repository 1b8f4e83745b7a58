"""Faults for a sidecar under test: Python imports this before it when it is on PYTHONPATH.

KODE_TEST_CLOCK: the monotonic clock is ahead by the seconds in that file, also when they change.
KODE_TEST_FSYNC_PORT: every fsync first asks the test, which lets it happen when it likes.
KODE_TEST_BROKEN_UUID: making a UUID fails with that text.
KODE_TEST_BROKEN_FSYNC: no fsync succeeds while a file of that name exists.
KODE_TEST_FULL_DISK: while a file of that name exists, nothing that holds its text can be written.
KODE_TEST_NO_NETWORK: any attempt to reach a network address ends the process with code 77.
KODE_TEST_STRAY: making a UUID prints that text, and writes it to descriptor 1.
"""

import errno
import os
import selectors
import socket
import stat
import time
import uuid
from contextlib import suppress
from typing import Any

_fsync = os.fsync
_write = os.write
_uuid4 = uuid.uuid4


def _asking_fsync(fd: int) -> None:
    port = int(os.environ["KODE_TEST_FSYNC_PORT"])
    with socket.create_connection(("127.0.0.1", port)) as gate:
        gate.recv(1)
    _fsync(fd)


def _failing_fsync(fd: int) -> None:
    if os.path.exists(os.environ["KODE_TEST_BROKEN_FSYNC"]):
        raise OSError(errno.EIO, "Input/output error")
    _fsync(fd)


def _write_if_room(fd: int, data: bytes) -> int:
    with suppress(FileNotFoundError), open(os.environ["KODE_TEST_FULL_DISK"], "rb") as file:
        if file.read() in bytes(data) and stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.ENOSPC, "No space left on device")
    return _write(fd, data)


class _MovedClock:
    """Looked at before each wait of the event loop, which is kept short."""

    ahead = 0.0

    def __init__(self) -> None:
        self._monotonic = time.monotonic
        self._select = selectors.DefaultSelector.select

    def monotonic(self) -> float:
        return self._monotonic() + self.ahead

    def select(self, selector: Any, timeout: float | None = None) -> Any:
        with open(os.environ["KODE_TEST_CLOCK"], encoding="ascii") as file:
            self.ahead = float(file.read() or self.ahead)  # empty while it is written anew
        return self._select(selector, 0.02 if timeout is None else min(timeout, 0.02))


def _no_uuid() -> uuid.UUID:
    raise ValueError(os.environ["KODE_TEST_BROKEN_UUID"])


def _chatty_uuid() -> uuid.UUID:
    stray = os.environ["KODE_TEST_STRAY"]
    print(f"{stray} print", flush=True)  # noqa: T201
    os.write(1, f"{stray} write\n".encode())
    return _uuid4()


def _no_network(*args: Any, **named: Any) -> Any:
    os._exit(77)


if "KODE_TEST_NO_NETWORK" in os.environ:
    socket.getaddrinfo = _no_network
    for method in ("connect", "connect_ex", "sendto", "bind"):
        setattr(socket.socket, method, _no_network)
if "KODE_TEST_CLOCK" in os.environ:
    clock = _MovedClock()
    time.monotonic = clock.monotonic
    selectors.DefaultSelector.select = lambda *args: clock.select(*args)
if "KODE_TEST_FSYNC_PORT" in os.environ:
    os.fsync = _asking_fsync
if "KODE_TEST_BROKEN_FSYNC" in os.environ:
    os.fsync = _failing_fsync
if "KODE_TEST_FULL_DISK" in os.environ:
    os.write = _write_if_room
if "KODE_TEST_BROKEN_UUID" in os.environ:
    uuid.uuid4 = _no_uuid
if "KODE_TEST_STRAY" in os.environ:
    uuid.uuid4 = _chatty_uuid
