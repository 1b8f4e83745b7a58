"""A loopback proxy that answers CONNECT with a real tunnel."""

import asyncio
import ssl
from typing import Self


class Tunnel:
    """Notes the head of every CONNECT. It takes any name for this machine."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.heads: list[str] = []
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        port = int(head.split()[1].rpartition(":")[2])
        behind, to_behind = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, target in ((reader, to_behind), (behind, writer)):
            task = asyncio.create_task(_copy(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    finally:
        target.transport.abort()
