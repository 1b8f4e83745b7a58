"""A spawned program on two pipes, as light as can be: a thread that stamps what it reads."""

import os
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kode_sidecar.core.protocol.base_protocol import FrameDecoder, encode_frame

HANG_SECONDS = 120.0
_READ_BYTES = 64 * 1024
_STDERR_CHARS = 2_000


class BenchError(Exception):
    """Something broke, so there is no figure. The message says what."""


class Arrival(NamedTuple):
    """A message, when the read that completed it returned, and its bytes on the wire."""

    at_ns: int
    body: bytes
    wire_bytes: int


class Framing(Protocol):
    """How messages are cut out of the stream and put into it."""

    def feed(self, data: bytes) -> list[tuple[bytes, int]]:
        """The messages that `data` completes, each with its bytes on the wire."""
        ...

    def wrap(self, body: bytes) -> bytes: ...


class LspFrames:
    """LSP base protocol."""

    def __init__(self) -> None:
        self._decoder = FrameDecoder()

    def feed(self, data: bytes) -> list[tuple[bytes, int]]:
        bodies = self._decoder.feed(data)
        if self._decoder.failure is not None:
            raise BenchError(f"lost the frames: {self._decoder.failure}")
        return [(body, len(encode_frame(body))) for body in bodies]

    def wrap(self, body: bytes) -> bytes:
        return encode_frame(body)


class Lines:
    """One message a line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, int]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [(line, len(line) + 1) for line in lines]

    def wrap(self, body: bytes) -> bytes:
        return body + b"\n"


class Process:
    """Spawns `command`. `spawned_ns` is the time right before that."""

    def __init__(
        self,
        command: Sequence[str],
        framing: Framing,
        *,
        environment: Mapping[str, str],
        cwd: Path,
        stderr: Path,
    ) -> None:
        self._framing = framing
        self._stderr = stderr
        self._arrivals: deque[Arrival] = deque()
        self._tail = b""  # the last read, and as much before it as a mark may need
        self._reads: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        with stderr.open("wb") as errors:
            self.spawned_ns = time.monotonic_ns()
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=cwd,
                bufsize=0,
            )
        self.pid = self._popen.pid
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, *bodies: bytes) -> int:
        """Write messages; the time right before."""
        data = b"".join(map(self._framing.wrap, bodies))
        assert self._popen.stdin is not None
        sent_ns = time.monotonic_ns()
        try:
            while data:
                data = data[self._popen.stdin.write(data) :]
        except OSError:
            raise self._ended() from None
        return sent_ns

    def until(self, mark: bytes) -> list[Arrival]:
        """The messages up to the first that holds `mark`.

        Nothing is cut or decoded before the mark has come: the program must not wait for us.
        """
        found: list[Arrival] = []
        marked = mark in self._tail
        while not self._move(found, mark):
            reads: list[tuple[int, bytes]] = []
            while not reads or not marked:
                reads.append(self._next_read())
                self._tail = self._tail[-len(mark) :] + reads[-1][1]
                marked = marked or mark in self._tail
            for at_ns, data in reads:
                for body, size in self._framing.feed(data):
                    self._arrivals.append(Arrival(at_ns, body, size))
        return found

    def lifetime_ns(self) -> int:
        """Wait until it ends by itself: from its spawn to its end."""
        self._popen.wait()
        return time.monotonic_ns() - self.spawned_ns

    def end_input(self) -> None:
        """Close stdin and wait until the process has ended."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        self._popen.wait(HANG_SECONDS)
        self.close()

    def close(self) -> None:
        """Kill it and wait until it is gone."""
        self._popen.kill()
        self._popen.wait()
        self._thread.join(HANG_SECONDS)
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def _move(self, found: list[Arrival], mark: bytes) -> bool:
        while self._arrivals:
            found.append(self._arrivals.popleft())
            if mark in found[-1].body:
                return True
        return False

    def _next_read(self) -> tuple[int, bytes]:
        try:
            read = self._reads.get(timeout=HANG_SECONDS)
        except queue.Empty:
            raise BenchError(f"nothing came for {HANG_SECONDS:g} s") from None
        if not read[1]:
            raise self._ended()
        return read

    def _ended(self) -> BenchError:
        said = self._stderr.read_bytes().decode(errors="replace")[-_STDERR_CHARS:]
        return BenchError(f"the program ended; on stderr it said: {said.strip() or 'nothing'}")

    def _read(self) -> None:
        assert self._popen.stdout is not None
        fd = self._popen.stdout.fileno()
        data = b"-"
        while data:
            try:
                data = os.read(fd, _READ_BYTES)
            except OSError:
                data = b""
            self._reads.put((time.monotonic_ns(), data))
