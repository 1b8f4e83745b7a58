"""Runs the sidecar as a child process with three pipes, and makes sure that it ends."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike

# In a frozen program the executable is the sidecar itself. With -P Python loads no module from the
# working directory, which belongs to a project.
_FROZEN = hasattr(sys, "frozen")
PROGRAM = (sys.executable,) if _FROZEN else (sys.executable, "-P", "-m", "kode_sidecar")
"""The command line that runs this same program."""
DEFAULT_COMMAND = (*PROGRAM, "serve")
STDERR_TAIL_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024
_KILL_SECONDS = 5.0
# An editor that starts us on Windows wants no console window.
_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class SidecarProcess:
    """A running child. Its stderr is always drained; only the end of it is kept."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child = child
        self._stdin = child.stdin
        self._stdout = child.stdout
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._stderr = bytearray()
        self._drainer = asyncio.create_task(self._drain_stderr(child.stderr))

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        apart: bool = False,
    ) -> "SidecarProcess":
        """Start `command` (an argument list, never a shell line). `env` is the whole environment.

        `apart`: Ctrl-C in our terminal does not reach it (on Windows it never does).
        Raises OSError when the program cannot be started.
        """
        child = await asyncio.create_subprocess_exec(
            *(command or DEFAULT_COMMAND),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            limit=_READ_BYTES,
            creationflags=_NO_WINDOW,
            start_new_session=apart and sys.platform != "win32",
        )
        return cls(child)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._child.returncode

    @property
    def stderr_tail(self) -> str:
        """The last 64 KiB written to stderr."""
        return self._stderr.decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Queue bytes for stdin; order is kept."""
        self._stdin.write(data)

    async def drain(self) -> None:
        """Wait until the queue for stdin has room."""
        await self._stdin.drain()

    async def read(self) -> bytes:
        """Return the next bytes of stdout, empty at its end. Waits while reading is paused."""
        await self._may_read.wait()
        return await self._stdout.read(_READ_BYTES)

    def pause_reading(self) -> None:
        """Stop reading stdout: after at most 128 KiB more the pipe itself fills up."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def close_stdin(self) -> None:
        """Close stdin: the child sees the end of its input."""
        with suppress(OSError):
            self._stdin.close()

    async def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if the process still runs after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                code = await self._child.wait()
                await asyncio.wait([self._drainer])
                return code
        except TimeoutError:
            return self._child.returncode

    async def end(self, seconds: float) -> int | None:
        """Close stdin, wait up to `seconds`, then kill; stdout must be read meanwhile.

        Returns the exit code, or None if the process survives even that.
        """
        self.close_stdin()
        self.resume_reading()
        code = await self.wait(seconds)
        if code is None:
            with suppress(ProcessLookupError):
                self._child.kill()
            code = await self.wait(_KILL_SECONDS)
        self._drainer.cancel()
        return code

    async def _drain_stderr(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(_READ_BYTES):
            self._stderr += data
            del self._stderr[:-STDERR_TAIL_BYTES]
