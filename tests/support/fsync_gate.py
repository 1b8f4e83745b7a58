"""A disk whose fsyncs wait for the test, so that "saved" can be told from "written"."""

import asyncio
import os
from pathlib import Path

from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

FAULTS = Path(__file__).parent / "faults"


def with_faults(**variables: str) -> dict[str, str]:
    """The environment of a sidecar whose Python loads `faults/sitecustomize.py`."""
    return {"PYTHONPATH": f"{FAULTS}{os.pathsep}{ROOT}", **variables}


class FsyncGate:
    """Start it with `async with`. Open at first; `waiting` fsyncs are held while it is shut."""

    def __init__(self) -> None:
        self.waiting = 0
        self._open = asyncio.Event()
        self._open.set()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "FsyncGate":
        self._server = await asyncio.start_server(self._asked, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self.open()
        self._server.close()
        await self._server.wait_closed()

    @property
    def environment(self) -> dict[str, str]:
        """For the sidecar."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return with_faults(KODE_TEST_FSYNC_PORT=str(port))

    def shut(self) -> None:
        """Hold every fsync from now on."""
        self._open.clear()

    def open(self) -> None:
        """Let all of them happen."""
        self._open.set()

    async def held(self) -> None:
        """Wait until an fsync waits at the gate."""
        async with asyncio.timeout(HANG_SECONDS), self._changed:
            await self._changed.wait_for(lambda: self.waiting > 0)

    async def _asked(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(1)
        await self._open.wait()
        await self._count(-1)
        writer.close()

    async def _count(self, step: int) -> None:
        async with self._changed:
            self.waiting += step
            self._changed.notify_all()
