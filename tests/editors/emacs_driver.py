"""A real Emacs with eglot, driven over a socket."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.foreign import not_available
from tests.support.program import ROOT, SERVE
from tests.support.sidecar import HANG_SECONDS

INIT = Path(__file__).with_name("plain_emacs.el")
HAS_EGLOT = "(progn (package-initialize) (kill-emacs (if (require 'eglot nil t) 0 1)))"
_MOST_BYTES = 1 << 24


def emacs() -> list[str]:
    """An Emacs that has eglot: of its own since 29, before as a package."""
    found = shutil.which("emacs") or not_available("emacs is missing")
    command = [found, "--batch"]
    if subprocess.run([*command, "--eval", HAS_EGLOT], capture_output=True).returncode != 0:
        not_available("this Emacs has no eglot; on Debian 12 that is elpa-eglot")
    return command


class Emacs:
    """Calls the functions of `plain_emacs.el`, one at a time."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        self.connected = asyncio.get_running_loop().create_future()

    async def do(self, name: str, *arguments: Any) -> Any:
        """The result of a function."""
        reader, writer = await self.connected
        writer.write(json.dumps([name, *arguments]).encode() + b"\n")
        async with asyncio.timeout(HANG_SECONDS * 2):
            line = await reader.readline()
        answer = json.loads(line or b"{}")
        said = self.log.read_text(encoding="utf-8", errors="replace")
        assert "result" in answer, f"{name}: {answer.get('error')}\n{said}"
        return answer["result"]


@asynccontextmanager
async def running(
    folder: Path, root: Path, environment: Mapping[str, str]
) -> AsyncGenerator[Emacs]:
    """Emacs in `root` with nothing of the user's, and the sidecar under test as its program."""
    home = folder / "emacs"
    home.mkdir()
    driver = Emacs(home / "emacs.log")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        driver.connected.set_result((reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_MOST_BYTES)
    with driver.log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *(*emacs(), "--load", str(INIT)),
            cwd=root,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HOME": str(home),
                "LC_ALL": "C.UTF-8",
                "EDITOR_PORT": str(server.sockets[0].getsockname()[1]),
                "EDITOR_SERVER": json.dumps(SERVE),
                **environment,
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        async with asyncio.timeout(HANG_SECONDS):
            gone = asyncio.create_task(process.wait())
            await asyncio.wait((gone, driver.connected), return_when=asyncio.FIRST_COMPLETED)
        assert driver.connected.done(), driver.log.read_text(encoding="utf-8", errors="replace")
        yield driver
        _, writer = await driver.connected
        writer.close()
        async with asyncio.timeout(HANG_SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        server.close()
