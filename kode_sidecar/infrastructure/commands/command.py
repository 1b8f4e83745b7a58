"""Runs one program to its end or to its limits, and ends everything that it started.

POSIX: the program runs under a guard (`commands.guard`), which ends it and its descendants when
our pipe to the guard closes, also because the sidecar was killed. Windows: a job object, which no
process can leave.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.guard import guard_command
from kode_sidecar.infrastructure.commands.windows_job import WindowsJob

Ended = Literal["exited", "timed_out", "too_much_output"]
_DRAIN_SECONDS = 2.0
_ERRORS = {True: subprocess.STDOUT, False: subprocess.DEVNULL, "apart": subprocess.PIPE}
_CREATE_SUSPENDED = 0x00000004
_CREATE_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)


@dataclass(frozen=True)
class CommandLimits:
    """The limits of a command. `output_bytes` is for standard output and error together."""

    seconds: float = 120.0
    output_bytes: int = 10_000_000


@dataclass(frozen=True)
class ProgramRun:
    """A program to run, with its folder, environment and limits.

    Its `errors` go to its output, are dropped (False), or come "apart". It reads `given`.
    """

    program: Path
    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    limits: CommandLimits
    errors: bool | Literal["apart"] = True
    given: bytes = b""


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. `exit_code` is negative for a signal, None if we killed it.

    `output` is standard output and error in the order they came, up to the limit; with `errors`
    apart, `output` is standard output alone.
    """

    ended: Ended
    exit_code: int | None
    output: bytes
    errors: bytes = b""


def _unwatched(_output: bytes) -> None:
    """Ignore the output."""


async def run_program(
    wanted: ProgramRun, on_output: Callable[[bytes], None] = _unwatched
) -> CommandEnd:
    """Run a program without a shell, and end everything it started with it.

    `on_output` gets its output as it comes, up to the limit. Raises KodeError `ToolFailed` if it
    cannot be started, and asyncio.CancelledError after killing it.
    """
    loop = asyncio.get_running_loop()
    tree = _ProcessTree()
    argv, options = tree.start_options([str(wanted.program), *wanted.arguments])
    try:
        transport, watched = await loop.subprocess_exec(
            lambda: _Watched(wanted, on_output),
            *argv,
            cwd=wanted.folder,
            env=wanted.environment,
            stdin=subprocess.PIPE if wanted.given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=_ERRORS[wanted.errors],
            **options,
        )
    except (OSError, ValueError) as error:
        tree.end()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise KodeError("ToolFailed", f"{wanted.program.name} cannot be started: {why}.") from None
    finally:
        tree.started()
    try:
        tree.adopt(transport.get_pid())
        _give(transport, wanted.given)
        return await _to_the_end(transport, watched, tree, wanted.limits)
    finally:
        tree.end()
        transport.close()


async def _to_the_end(
    transport: asyncio.SubprocessTransport,
    watched: "_Watched",
    tree: "_ProcessTree",
    limits: CommandLimits,
) -> CommandEnd:
    ended: Ended = "timed_out"
    try:
        events = (watched.exited, watched.overflowed)
        done, _ = await asyncio.wait(
            events, timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if watched.overflowed in done:
            ended = "too_much_output"
        elif done:
            ended = "exited"
    finally:
        tree.end()
        # Its last output may still be in the pipe; an escaped process would keep the pipe open.
        await _until_done(asyncio.wait((watched.exited, watched.closed), timeout=_DRAIN_SECONDS))
    code = transport.get_returncode() if ended == "exited" else None
    if ended == "exited" and watched.overflowed.done():
        ended = "too_much_output"
    return CommandEnd(ended, code, bytes(watched.output), bytes(watched.errors))


def _give(transport: asyncio.SubprocessTransport, given: bytes) -> None:
    """Write the program's input; one that does not read it is no failure."""
    pipe: Any = transport.get_pipe_transport(0)
    if pipe is not None:
        pipe.write(given)
        pipe.close()


async def _until_done(work: Awaitable[Any]) -> None:
    """Wait for the end of `work`; raise a cancellation that comes before only after it."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class _Watched(asyncio.SubprocessProtocol):
    """Collects the output of a process; the futures are set when their event happens."""

    def __init__(self, wanted: ProgramRun, on_output: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self._room = wanted.limits.output_bytes
        self._on_output = on_output
        self._open = {1, 2} if wanted.errors == "apart" else {1}
        self.output, self.errors = bytearray(), bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.overflowed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        fits = data[: self._room]
        self._room -= len(fits)
        if fd == 1:
            self.output += fits
        else:
            self.errors += fits
        self._on_output(fits)
        if len(data) > len(fits):
            _set(self.overflowed)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        self._open.discard(fd)
        if not self._open:
            _set(self.closed)

    def process_exited(self) -> None:
        _set(self.exited)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _ProcessTree:
    """A program with all its descendants, which end together."""

    def __init__(self) -> None:
        self._read_end = self._lifeline = -1
        self._job: Any = None

    def start_options(self, argv: list[str]) -> tuple[list[str], dict[str, Any]]:
        """Return the command line to start in place of `argv`, and the options to start it with."""
        if sys.platform == "win32":
            return argv, {"creationflags": _CREATE_SUSPENDED | _CREATE_NO_WINDOW}
        self._read_end, self._lifeline = os.pipe()
        options = {"pass_fds": (self._read_end,), "start_new_session": True}
        return guard_command(self._read_end, argv), options

    def started(self) -> None:
        """Close the end of the pipe that only the child needs."""
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1

    def adopt(self, process_id: int) -> None:
        """Put the process into a job on Windows, where it starts to run only now.

        `process_id` 0 is a replayed recording, without a process. Raises KodeError `ToolFailed` if
        the system gives no job; the process is then killed.
        """
        if sys.platform == "win32" and process_id:
            self._job = WindowsJob(process_id)

    def end(self) -> None:
        """Kill all processes that still run; harmless when repeated."""
        if self._job is not None:
            self._job.kill()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
