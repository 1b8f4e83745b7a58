"""Run one program to its end or to its limits, and end everything that it started.

POSIX: the program gets a session of its own, which is killed as a group; on Linux a variable in
their environment also tells those processes that left the group. Windows: a job object, from which
nothing can break away.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

from kode_sidecar.commands.windows_job import WindowsJob
from kode_sidecar.errors import KodeError

Ended = Literal["exited", "timed_out", "too_much_output"]
_DRAIN_SECONDS = 2.0
_MARK = "KODE_COMMAND_ID"  # the variable that tells a command's processes from all others
_SWEEPS = 20
_CREATE_SUSPENDED = 0x00000004
_CREATE_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)
_CREATION_FLAGS = _CREATE_SUSPENDED | _CREATE_NO_WINDOW if sys.platform == "win32" else 0


@dataclass(frozen=True)
class CommandLimits:
    """What a command may use. `output_bytes` of standard output and error together."""

    seconds: float = 120.0
    output_bytes: int = 10_000_000


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended. `exit_code` is negative for a signal, None where it was killed by us.

    `output` is what it wrote, standard output and error as they came, up to the limit.
    """

    ended: Ended
    exit_code: int | None
    output: bytes


async def run_program(
    program: Path,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: CommandLimits,
) -> CommandEnd:
    """Run it without a shell and without input. All that it started ends with it, at the latest.

    Raises KodeError `ToolFailed` where it cannot be started, and asyncio.CancelledError after it
    was killed.
    """
    mark = uuid4().hex
    loop = asyncio.get_running_loop()
    try:
        started = await loop.subprocess_exec(
            lambda: _Watched(limits.output_bytes),
            str(program),
            *arguments,
            cwd=folder,
            env={**environment, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=sys.platform != "win32",
            creationflags=_CREATION_FLAGS,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise KodeError("ToolFailed", f"{program.name} cannot be started: {why}.") from None
    transport, watched = started
    try:
        return await _to_the_end(transport, watched, mark, limits)
    finally:
        transport.close()


async def _to_the_end(
    transport: asyncio.SubprocessTransport, watched: "_Watched", mark: str, limits: CommandLimits
) -> CommandEnd:
    ended: Ended = "timed_out"
    tree = _ProcessTree(transport.get_pid(), mark)
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
        tree.kill()
        await _until_done(asyncio.to_thread(tree.kill_escaped))
        # Its last words may still be in the pipe; one that escaped keeps the pipe open.
        await asyncio.wait((watched.exited, watched.closed), timeout=_DRAIN_SECONDS)
    code = transport.get_returncode() if ended == "exited" else None
    if ended == "exited" and watched.overflowed.done():
        ended = "too_much_output"
    return CommandEnd(ended, code, bytes(watched.output))


async def _until_done(work: Awaitable[None]) -> None:
    """Wait for the end of `work`; a cancellation that comes before is raised only then."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class _Watched(asyncio.SubprocessProtocol):
    """What comes from a process. The futures are done, each once, when it happens."""

    def __init__(self, limit: int) -> None:
        loop = asyncio.get_running_loop()
        self._limit = limit
        self.output = bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.overflowed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        del fd
        room = self._limit - len(self.output)
        self.output += data[:room]
        if len(data) > room:
            _set(self.overflowed)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del fd, exc
        _set(self.closed)

    def process_exited(self) -> None:
        _set(self.exited)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _ProcessTree:
    """A process that `run_program` started, with all its descendants; they carry `mark`.

    On Windows the process starts to run only now. Raises KodeError `ToolFailed` where the system
    gives no job for it; it is killed then.
    """

    def __init__(self, process_id: int, mark: str) -> None:
        self._process_id = process_id
        self._mark = f"{_MARK}={mark}".encode()
        if sys.platform == "win32":
            self._job = WindowsJob(process_id)

    def kill(self) -> None:
        """End the group or the job, at once."""
        if sys.platform == "win32":
            self._job.kill()
        else:
            _kill(os.killpg, self._process_id)

    def kill_escaped(self) -> None:
        """End those that left the group, on Linux; blocks, because it reads all of `/proc`.

        Again and again, because a process may start another one while it is looked for.
        """
        for _ in range(_SWEEPS):
            escaped = [pid for pid in _running() if self._mark in _environment(pid)]
            if not escaped:
                return
            for process_id in escaped:
                _kill(os.kill, process_id)


def _kill(send: Callable[[int, int], None], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        send(number, 9)  # SIGKILL, which Windows does not know


def _running() -> list[int]:
    """Return all process ids of the system, on Linux; elsewhere none."""
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _environment(process_id: int) -> list[bytes]:
    """Return the variables a process was started with; none of one that is gone, or not ours."""
    with suppress(OSError):
        return Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
    return []
