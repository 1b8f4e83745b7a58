"""Programs in a recording: what they say and how they end is written down, and repeated.

A playing process starts none of them. Commands and MCP servers alike are reached by the event
loop, so this is all there is; what is written to a program follows from the other lines.
"""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Callable, Sequence
from subprocess import PIPE
from typing import Any

from kode_sidecar.devtools.recording.recorded_lines import ProgramInput, data_of, with_data
from kode_sidecar.infrastructure.commands.guard import guarded_program

ProgramKey = tuple[str, int]


class ProgramNumbers:
    """Counts the programs of each name as they begin, from 1."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def key(self, argv: Sequence[str]) -> ProgramKey:
        """Return the name and number of the next one; a guard counts as what it runs."""
        name = os.path.basename(os.path.realpath(guarded_program(argv)))
        self._counts[name] += 1
        return name, self._counts[name]


class ProgramLog:
    """Writes what programs do as lines of a recording."""

    def __init__(self, write: Callable[[ProgramInput], None]) -> None:
        self._write = write
        self._numbers = ProgramNumbers()

    def watched(
        self, protocol_factory: Callable[[], Any], argv: Sequence[str]
    ) -> tuple[ProgramKey, Callable[[], Any]]:
        """Return the program's key, and what makes a protocol whose calls are noted."""
        key = self._numbers.key(argv)

        def make() -> Any:
            protocol = protocol_factory()
            made, said = protocol.connection_made, protocol.pipe_data_received
            closed, exited = protocol.pipe_connection_lost, protocol.process_exited
            transports: list[Any] = []

            def connection_made(transport: Any) -> None:
                transports.append(transport)
                self._note(key, "started")
                made(transport)

            def pipe_data_received(fd: int, data: bytes) -> None:
                self._note(key, "said", fd=fd, **with_data(data))
                said(fd, data)

            def pipe_connection_lost(fd: int, error: Exception | None) -> None:
                self._note(key, "closed", fd=fd)
                closed(fd, error)

            def process_exited() -> None:
                self._note(key, "exited", code=transports[0].get_returncode())
                exited()

            protocol.connection_made, protocol.pipe_data_received = (
                connection_made,
                pipe_data_received,
            )
            protocol.pipe_connection_lost, protocol.process_exited = (
                pipe_connection_lost,
                process_exited,
            )
            return protocol

        return key, make

    def failed(self, key: ProgramKey, error: OSError | ValueError) -> None:
        """Note that a program could not be started."""
        why = error.strerror if isinstance(error, OSError) else str(error)
        self._note(key, "failed", text=why or type(error).__name__)

    def _note(self, key: ProgramKey, event: Any, **more: Any) -> None:
        self._write(ProgramInput(program=key[0], number=key[1], event=event, **more))


class RecordedProgram(asyncio.SubprocessTransport):
    """A program that does not run: its protocol gets what was recorded.

    `started` is done once it began then; it fails where it failed then. Its id is 0.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol_factory: Callable[[], Any],
        pipes: tuple[object, object, object],
    ) -> None:
        super().__init__()
        self.started: asyncio.Future[None] = loop.create_future()
        self.protocol = protocol_factory()
        self._loop = loop
        self._exited: asyncio.Future[int] = loop.create_future()
        self._stdin = _Discarded() if pipes[0] == PIPE else None
        self._open = {fd: asyncio.ReadTransport() for fd in (1, 2) if pipes[fd] == PIPE}
        self._pipes = {0: self._stdin, **self._open}

    def take(self, line: ProgramInput) -> None:
        """Let happen what a line says."""
        if line.event == "started":
            self.protocol.connection_made(self)
            _set(self.started)
        elif line.event == "failed":
            if not self.started.done():
                self.started.set_exception(OSError(errno.EINVAL, line.text))
        elif line.event == "exited":
            if not self._exited.done():
                self._exited.set_result(-1 if line.code is None else line.code)
            self.protocol.process_exited()
        elif data := data_of(line):
            self.protocol.pipe_data_received(line.fd, data)
        if line.event == "closed":
            self.protocol.pipe_connection_lost(line.fd, None)
            self._open.pop(line.fd, None)
        if self._exited.done() and not self._open and line.event in ("exited", "closed"):
            self._loop.call_soon(self.protocol.connection_lost, None)

    def get_pid(self) -> int:
        """Return 0: there is no process."""
        return 0

    def get_returncode(self) -> int | None:
        """Return how it ended, once it has."""
        return self._exited.result() if self._exited.done() else None

    def get_pipe_transport(self, fd: int) -> Any:
        """Return the pipe of that number; None where there was none."""
        return self._pipes.get(fd)

    async def _wait(self) -> int:
        return await asyncio.shield(self._exited)

    def close(self) -> None:
        """Do nothing: what followed then is in the recording."""

    def is_closing(self) -> bool:
        """Return whether it has ended."""
        return self._exited.done()

    def send_signal(self, signal: int) -> None:
        """Do nothing, as `close`."""

    def terminate(self) -> None:
        """Do nothing, as `close`."""

    def kill(self) -> None:
        """Do nothing, as `close`."""


class _Discarded(asyncio.WriteTransport):
    """The input of a program that does not run."""

    _closing = False

    def write(self, data: Any) -> None:
        """Do nothing: nobody reads it."""

    def close(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
