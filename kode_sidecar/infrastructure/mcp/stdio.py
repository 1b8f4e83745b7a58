"""The stdio transport of MCP: runs a server program and exchanges one JSON message per line.

The program runs under a guard (POSIX) or in a job object (Windows): it and all it started end with
the channel, and with the sidecar, however the sidecar ends.
"""

import asyncio
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.guard import guard_command
from kode_sidecar.infrastructure.commands.windows_job import WindowsJob
from kode_sidecar.infrastructure.mcp.contracts import Json, ServerConfig, quoted, server_error
from kode_sidecar.infrastructure.mcp.peer import Peer

MAX_MESSAGE_BYTES = 16_000_000
_CHUNK = 65_536
_TAIL_LINES, _TAIL_LINE_CHARS = 40, 400
_LEAVE_SECONDS = 1.0
_CREATE_SUSPENDED, _CREATE_NO_WINDOW = 0x00000004, 0x08000000


class StdioChannel:
    """A running server program. `stderr_tail` holds its last lines outside the protocol."""

    def __init__(self, config: ServerConfig, peer: Peer) -> None:
        self._config = config
        self._peer = peer
        self.stderr_tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._tasks: list[asyncio.Task[None]] = []
        self._lifeline = -1
        self._job: Any = None
        self._encoder = msgspec.json.Encoder()

    async def start(self, environment: Mapping[str, str], find: Callable[[str], str]) -> None:
        """Start the program, found by its name. Raises KodeError `ToolFailed`, `Denied`."""
        config = self._config
        argv = [find(config.argv[0]), *config.argv[1:]]
        options: dict[str, Any] = {}
        keep = -1
        if sys.platform == "win32":
            options["creationflags"] = _CREATE_SUSPENDED | _CREATE_NO_WINDOW
        else:
            keep, self._lifeline = os.pipe()
            argv = guard_command(keep, argv)
            options.update(pass_fds=(keep,), start_new_session=True)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=config.folder or None,
                env={**environment, **config.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **options,
            )
        except (OSError, ValueError) as error:
            self._cut_lifeline()
            why = error.strerror if isinstance(error, OSError) else str(error)
            text = f"cannot be started: {why}. Check its command in the settings."
            raise server_error(config.name, text, "not_started") from None
        finally:
            if keep >= 0:
                os.close(keep)
        if sys.platform == "win32" and self._process.pid:  # 0: a replayed recording, no process
            self._job = WindowsJob(self._process.pid)
        self._tasks = [
            asyncio.create_task(self._read()),
            asyncio.create_task(self._read_errors()),
        ]

    async def send(
        self, message: Json, *, version: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write one line. Raises KodeError `ToolFailed`."""
        del version, headers
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(self._encoder.encode(message) + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError):
            raise self._ended() from None

    async def cancel(self, request_id: int, *, modern: bool) -> bool:
        """Return False: the server needs a notification, as the pipe stays open."""
        del request_id, modern
        return False

    async def close(self) -> None:
        """Close its input, give it a moment to exit, then end it with all it started."""
        if not self._tasks:
            return
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError, RuntimeError):
            stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._process.wait()
        self.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._process.wait()
        self._tasks = []

    def kill(self) -> None:
        """End the program and all it started, at once. Safe to repeat, and from any thread."""
        self._cut_lifeline()
        if self._job is not None:
            self._job.kill()

    def _cut_lifeline(self) -> None:
        descriptor, self._lifeline = self._lifeline, -1
        if descriptor >= 0:
            os.close(descriptor)

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        parts: list[bytes] = []
        size = 0
        while chunk := await stdout.read(_CHUNK):
            *lines, rest = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join(parts) + lines[0]
                parts, size = [], 0
                for line in lines:
                    self._take(line)
            parts.append(rest)
            size += len(rest)
            if size > MAX_MESSAGE_BYTES:
                text = f"sent a message of more than {MAX_MESSAGE_BYTES:,} bytes and was stopped."
                self._peer.closed(server_error(self._config.name, text, "too_large"))
                self.kill()
                return
        self._peer.closed(self._ended())
        self.kill()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        messages = self._peer.read(line)
        for message in messages:
            self._peer.receive(message)
        if not messages:
            self._note(line)  # many programs log to stdout

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        rest = b""
        while chunk := await stderr.read(_CHUNK):
            *lines, rest = (rest[-_TAIL_LINE_CHARS * 4 :] + chunk).split(b"\n")
            for line in lines[-_TAIL_LINES:]:
                self._note(line)
        if rest:
            self._note(rest)

    def _note(self, line: bytes) -> None:
        text = line[: _TAIL_LINE_CHARS * 4].decode("utf-8", "replace")
        self.stderr_tail.append(without_controls(text)[:_TAIL_LINE_CHARS])

    def _ended(self) -> KodeError:
        said = " | ".join(list(self.stderr_tail)[-3:])
        hint = f" {quoted(said)}" if said else ""
        return server_error(self._config.name, f"has ended.{hint}", "ended", retryable=True)
