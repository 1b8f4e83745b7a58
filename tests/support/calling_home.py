"""A program that says that it runs: it connects to the test and sends its process id."""

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


@asynccontextmanager
async def calling_home() -> AsyncIterator[tuple[str, "asyncio.Future[int]"]]:
    """The port, and the process id of the first program that calls there."""
    called: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set_result(int(await reader.readline()))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield str(server.sockets[0].getsockname()[1]), called
