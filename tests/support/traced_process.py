"""Asks a real process which files of the package it enters, and what it has imported."""

import asyncio
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

HOOK = Path(__file__).parent / "traced"
_LINE_BYTES = 1 << 20


@dataclass(frozen=True)
class Way:
    """The files that were entered between `begin` and `end`, in order, each with its functions."""

    files: dict[str, tuple[int, list[str]]]

    def until(self, moment_ns: int) -> "Way":
        """Return what was entered up to a moment of the monotonic clock."""
        return Way({name: found for name, found in self.files.items() if found[0] <= moment_ns})

    def shared(self, others: Iterable["Way"]) -> "Way":
        """Return what the others entered, too."""
        names = set(self.files).intersection(*(other.files for other in others))
        return Way({name: found for name, found in self.files.items() if name in names})

    def __str__(self) -> str:
        """For people: a line a file."""
        rows = (f"{name}: {', '.join(found[1])}" for name, found in self.files.items())
        return "\n".join([f"{len(self.files)} files", *rows])


class Trace:
    """Start it with `async with`, before the process; `environment` is for that one."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]

    async def __aenter__(self) -> "Trace":
        self._connected = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(
            lambda reader, writer: self._connected.set_result((reader, writer)),
            "127.0.0.1",
            0,
            limit=_LINE_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        if self._connected.done():
            self._connected.result()[1].close()
        await self._server.wait_closed()

    @property
    def environment(self) -> dict[str, str]:
        """For the process."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return {
            "PYTHONPATH": f"{HOOK}{os.pathsep}{ROOT}",
            "KODE_TEST_TRACE_PORT": str(port),
        }

    async def modules(self) -> set[str]:
        """What is imported now."""
        return set(await self._ask("modules"))

    async def begin(self, file: str = "") -> None:
        """Note what is entered from now on, or from the first time that `file` is entered."""
        await self._ask(f"begin {file}")

    async def end(self) -> Way:
        """Return what was entered, and note nothing more."""
        entered: dict[str, tuple[int, list[str]]] = await self._ask("end")
        inside = str(ROOT / "kode_sidecar") + os.sep
        rows = sorted(entered.items(), key=lambda row: row[1][0])
        return Way({path.removeprefix(inside): found for path, found in rows})

    async def _ask(self, question: str) -> Any:
        async with asyncio.timeout(HANG_SECONDS):
            reader, writer = await self._connected
            writer.write(f"{question}\n".encode())
            return json.loads(await reader.readline())
