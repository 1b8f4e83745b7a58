"""A real Neovim with the plugin, driven over its RPC socket."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.editors.debian_packages import PackagesMissing
from tests.editors.neovim_builds import NeovimBuild, available, neovim
from tests.support.foreign import not_available
from tests.support.node_tools import not_run
from tests.support.program import ROOT, SERVE
from tests.support.sidecar import HANG_SECONDS

PLUGIN = ROOT / "editors" / "nvim"
INIT = Path(__file__).with_name("neovim_init.lua")
_REQUEST, _RESPONSE = 0, 1


def require_neovim(suite: str) -> NeovimBuild:
    """The build of a suite. Where it cannot be had the test says NOT RUN; on a CI it fails."""
    if not available():
        not_available("Neovim of Debian's suites needs Linux and apt-get")
    try:
        return neovim(suite)
    except PackagesMissing as error:
        not_run(str(error))


class NeovimError(Exception):
    """What Neovim answered a request with."""


@dataclass
class Neovim:
    """One request at a time, so that every answer is one message."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    log: Path
    number: int = 0

    async def request(self, method: str, *params: Any) -> Any:
        """The result of an API function."""
        self.number += 1
        self.writer.write(msgspec.msgpack.encode([_REQUEST, self.number, method, params]))
        async with asyncio.timeout(HANG_SECONDS * 2):
            kind, number, error, result = await self._receive()
        assert (kind, number) == (_RESPONSE, self.number)
        if error is not None:
            raise NeovimError(f"{method}: {error[1]}\n{self.said()}")
        return result

    async def _receive(self) -> Any:
        data = b""
        while chunk := await self.reader.read(1 << 20):
            data += chunk
            try:
                return msgspec.msgpack.decode(data, ext_hook=lambda _, raw: bytes(raw))
            except msgspec.DecodeError as error:
                if "truncated" not in str(error):
                    raise
        raise NeovimError(f"Neovim is gone: {self.said()}")

    def said(self) -> str:
        """What it wrote to its standard error, messages included."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    async def lua(self, code: str, *arguments: Any) -> Any:
        """What Lua code returns; `...` are the arguments."""
        return await self.request("nvim_exec_lua", code, list(arguments))

    async def until(self, condition: str, *arguments: Any) -> Any:
        """Wait in Neovim until a Lua expression is true; its value."""
        code = f"return Kode.until_(function(...) return {condition} end, ...)"
        done, value, seen = await self.lua(code, *arguments)
        assert done, f"waited in vain for {condition}\n{seen}\n{self.said()}"
        return value

    async def kode(self, *words: str) -> None:
        """Run `:Kode`."""
        await self.lua("require('kode').run(...)", *words)

    async def asked(self, method: str, params: Mapping[str, Any]) -> Any:
        """The sidecar's answer to a request of the plugin."""
        await self.lua(
            "local method, params = ... Kode.answer = nil require('kode.task').run(function()"
            " Kode.answer = require('kode.client').ask(method, params) or {} end)",
            method,
            params,
        )
        return await self.until("Kode.answer")

    async def keys(self, keys: str) -> None:
        """Type, as a user does, and wait until it was handled."""
        await self.lua("vim.api.nvim_feedkeys(vim.keycode(...), 'tx', false)", keys)

    async def typed(self, keys: str) -> None:
        """Put keys where those of a keyboard come from; whatever is asked next comes after them."""
        await self.request("nvim_input", keys)

    async def chat(self) -> list[str]:
        """The lines of the chat of the current session."""
        return await self.lua("return Kode.chat()")


@asynccontextmanager
async def running(
    build: NeovimBuild,
    folder: Path,
    root: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    init: Path = INIT,
) -> AsyncGenerator[Neovim]:
    """Neovim in `root` with nothing of the user's, and the sidecar under test as its program."""
    folder.mkdir(parents=True, exist_ok=True)
    # A path of a socket has room for about a hundred bytes.
    runtime = Path(os.environ.get("TMPDIR", "/tmp")) / f"kode-nvim-{os.getpid()}-{id(folder):x}"
    runtime.mkdir(mode=0o700)
    socket, log = runtime / "s", folder / "neovim.log"
    own = {f"XDG_{n}_HOME": str(folder / n.lower()) for n in ("CONFIG", "DATA", "STATE", "CACHE")}
    environment = {
        **os.environ,
        **build.environment,
        **own,
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": str(ROOT),
        **environment,
        "KODE_NVIM_PLUGIN": str(PLUGIN),
        "KODE_NVIM_OPTIONS": json.dumps({"cmd": SERVE, **options}),
    }
    arguments = ["--headless", "--listen", str(socket), "-u", str(init), "-i", "NONE", "-n"]
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *build.command,
            *arguments,
            cwd=root,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        reader, writer = await _connect(process, socket, log)
        neovim = Neovim(process, reader, writer, log)
        yield neovim
        writer.write(msgspec.msgpack.encode([_REQUEST, 0, "nvim_command", ["qall!"]]))
        async with asyncio.timeout(HANG_SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        shutil.rmtree(runtime, ignore_errors=True)


async def _connect(
    process: asyncio.subprocess.Process, socket: Path, log: Path
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(HANG_SECONDS):
        while process.returncode is None:
            try:
                return await asyncio.open_unix_connection(str(socket))
            except OSError:  # not yet listening; there is no other sign of it
                await asyncio.sleep(0.02)
    raise NeovimError(f"Neovim did not start: {log.read_text(errors='replace')}")
