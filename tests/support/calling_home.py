"""A program that says that it runs: it connects to the test and sends process ids."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

STAYS = (
    "import os, socket, sys, time\n"
    "call = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
    "call.sendall(b'%d\\n' % os.getpid())\n"
    "time.sleep(600)\n"
)
"""For `python -c`, with the port as its argument."""


STAYS_WITH_CHILDREN = (
    "import os, socket, subprocess, sys, time\n"
    "stay = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
    "apart = sys.argv[2] == 'True'\n"
    "bare = {'start_new_session': True, 'env': {}} if apart and os.name != 'nt' else {}\n"
    "ids = [subprocess.Popen(stay, **bare).pid for _ in range(3)]\n"
    "call = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
    "call.sendall(' '.join(map(str, [os.getpid(), *ids])).encode() + b'\\n')\n"
    "if len(sys.argv) == 3: time.sleep(600)\n"
)
"""The same with three children, in sessions of their own without environment, or not.

A third argument: it ends and leaves them behind.
"""


@asynccontextmanager
async def calling_home() -> AsyncIterator[tuple[str, "asyncio.Future[list[int]]"]]:
    """The port, and the process ids that the first program that calls there has sent."""
    called: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set_result([int(word) for word in (await reader.readline()).split()])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield str(server.sockets[0].getsockname()[1]), called
