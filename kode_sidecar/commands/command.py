"""Running one program to its end, or to its limits: nothing of it outlives the call."""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

from kode_sidecar.commands.process_tree import CREATION_FLAGS, MARK, NEW_SESSION, ProcessTree
from kode_sidecar.errors import KodeError

Ended = Literal["exited", "timed_out", "too_much_output"]
_DRAIN_SECONDS = 2.0


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
            env={**environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=NEW_SESSION,
            creationflags=CREATION_FLAGS,
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
    tree = ProcessTree(transport.get_pid(), mark)
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
        # Its last words may still be in the pipe; one that escaped keeps the pipe open.
        await asyncio.wait((watched.exited, watched.closed), timeout=_DRAIN_SECONDS)
    code = transport.get_returncode() if ended == "exited" else None
    if ended == "exited" and watched.overflowed.done():
        ended = "too_much_output"
    return CommandEnd(ended, code, bytes(watched.output))


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
