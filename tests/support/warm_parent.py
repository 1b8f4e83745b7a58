"""A process that has imported the program already and forks it: the same code over the same pipes.

Starting Python and importing the program is most of what a test over the process costs. This file
is both ends: run as a program it is the parent, imported it is what asks that parent. Linux only.
"""

import array
import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_MOST_BYTES = 256 * 1024  # of a request: its arguments and its environment


class ForkedProcess:
    """The part of `asyncio.subprocess.Process` that `SidecarProcess` uses.

    The parent that forked it reaps it and writes its exit code to the pipe `status`.
    """

    def __init__(self, pid: int, streams: Sequence[Any], status: asyncio.StreamReader) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = streams
        self._ended = asyncio.create_task(self._await_status(status))

    async def wait(self) -> int:
        """Return the exit code, negative for a signal."""
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """Raises ProcessLookupError once it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, signal.SIGKILL)

    async def _await_status(self, status: asyncio.StreamReader) -> int:
        self.returncode = int(await status.read())
        return self.returncode


async def fork(
    arguments: Sequence[str], env: Mapping[str, str], cwd: str, limit: int
) -> ForkedProcess:
    """Fork the program with these arguments. `limit` bounds what is read ahead, in bytes."""
    stdin, stdout, stderr, status = (os.pipe() for _ in range(4))
    theirs = (stdin[0], stdout[1], stderr[1], status[1])
    request = json.dumps([list(arguments), dict(env), cwd]).encode()
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))
    _parent().sendmsg([request], [rights])
    for descriptor in theirs:
        os.close(descriptor)
    reported = await _reader(status[0], limit)
    pid = int(await reported.readline())
    outputs = [await _reader(end, limit) for end in (stdout[0], stderr[0])]
    return ForkedProcess(pid, [await _writer(stdin[1]), *outputs], reported)


async def _reader(descriptor: int, limit: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit)
    file = os.fdopen(descriptor, "rb", 0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    file = os.fdopen(descriptor, "wb", 0)
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # only for its flow control
    transport, _ = await loop.connect_write_pipe(lambda: protocol, file)
    return asyncio.StreamWriter(transport, protocol, None, loop)


@cache
def _parent() -> socket.socket:
    """The one of this test process; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, env=env)
    theirs.close()
    return ours


# --- the parent itself -----------------------------------------------------------------------


def serve_forks(requests: socket.socket) -> None:
    """Fork for each request until nobody is there to ask."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _report_ended(running)
        if requests in ready:
            size = array.array("i").itemsize * 4
            data, ancillary, _, _ = requests.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(size))
            if not data:
                return
            pipes = array.array("i", ancillary[0][2])
            if (pid := os.fork()) == 0:
                requests.close()
                _become(*json.loads(data), pipes[:3], [*running.values(), *pipes, woken, wake])
            os.write(pipes[3], f"{pid}\n".encode())
            running[pid] = pipes[3]
            for descriptor in pipes[:3]:
                os.close(descriptor)


def _report_ended(running: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            if (pipe := running.pop(pid, None)) is None:
                continue
            with contextlib.suppress(BrokenPipeError):
                os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(pipe)


def _become(
    arguments: list[str], env: dict[str, str], cwd: str, streams: Sequence[int], spare: list[int]
) -> None:
    """Run the program as a fresh process would; never returns."""
    from kode_sidecar.__main__ import main

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in spare:
        os.close(descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["kode-sidecar", *arguments]
    code = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)


def import_program() -> None:
    """What a server imports in its first second. None of it starts a thread."""
    import kode_sidecar.devtools.recording
    import kode_sidecar.infrastructure.http.client
    import kode_sidecar.servers.boot.acp_app
    import kode_sidecar.servers.boot.agent
    import kode_sidecar.servers.boot.app
    import kode_sidecar.servers.boot.stdio_handshake
    import kode_sidecar.servers.boot.system
    import kode_sidecar.servers.lsp.language_server  # noqa: F401


if __name__ == "__main__":
    import_program()
    serve_forks(socket.socket(fileno=int(sys.argv[1])))
