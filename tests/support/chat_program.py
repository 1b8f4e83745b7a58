"""`kode-sidecar chat` as a process: at a pseudo-terminal of POSIX, or fed by a pipe."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kode_sidecar.demo.model_server import ModelServer, RecordedResponse, Recording
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

if sys.platform != "win32":
    import fcntl
    import termios

CTRL_C = "\x03"
CTRL_D = "\x04"


def environment(model: ModelServer | None, **more: str) -> dict[str, str]:
    """The chat's environment; without a model there is no key either."""
    made = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "TERM": "xterm"}
    if model is not None:
        made |= {"KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test-key-000"}
    return made | more


def command(root: Path, *arguments: str) -> list[str]:
    return [*PROGRAM, "chat", "--root", str(root), "--locale", "en", *arguments]


@dataclass
class Piped:
    """What a piped chat did."""

    code: int | None
    out: str
    err: str
    model: ModelServer | None


async def piped(
    root: Path,
    lines: str,
    responses: Sequence[RecordedResponse] | None = (),
    *arguments: str,
    **more: str,
) -> Piped:
    """Run a chat over `lines` to its end; `responses` None = without a key."""
    async with ModelServer(Recording(tuple(responses or ())), paced=False) as server:
        model = server if responses is not None else None
        child = await asyncio.create_subprocess_exec(
            *command(root, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(model, **more),
        )
        try:
            async with asyncio.timeout(HANG_SECONDS):
                out, err = await child.communicate(lines.encode())
        finally:
            if child.returncode is None:
                child.kill()
        return Piped(child.returncode, out.decode(), err.decode(), model)


class Screen:
    """A pseudo-terminal with the chat at the other end."""

    def __init__(self, master: int, child: asyncio.subprocess.Process, model: ModelServer) -> None:
        self.model = model
        self.all = ""
        self._master = master
        self._child = child
        self._seen = 0
        self._data = b""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    async def until(self, text: str) -> str:
        """Wait until `text` is shown below what was waited for before; all shown on the way."""
        async with asyncio.timeout(HANG_SECONDS):
            while (found := self.all.find(text, self._seen)) < 0:
                self._news.clear()
                await self._news.wait()
                if not self._data and text not in self.all[self._seen :]:
                    raise AssertionError(f"ended without {text!r}:\n{self.all[self._seen :]}")
        shown = self.all[self._seen : found + len(text)]
        self._seen = found + len(text)
        return shown

    def type(self, keys: str) -> None:
        """Press keys; Enter is a newline."""
        os.write(self._master, keys.encode())

    @property
    def pid(self) -> int:
        """The chat's process."""
        return self._child.pid

    async def left(self) -> int:
        """Wait until the program has ended; its exit code."""
        async with asyncio.timeout(HANG_SECONDS):
            return await self._child.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    def _read(self) -> None:
        try:
            self._data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other end is closed
            self._data = b""
        if not self._data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.all += self._data.decode("utf-8", "replace").replace("\r\n", "\n")
        self._news.set()


@asynccontextmanager
async def at_terminal(
    root: Path, responses: Sequence[RecordedResponse], *arguments: str, **more: str
) -> AsyncIterator[Screen]:
    """A chat at a terminal of its own, at its first prompt."""
    assert sys.platform != "win32"
    master, slave = os.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that the keys of signals reach it

    async with ModelServer(Recording(tuple(responses)), paced=False) as model:
        child = await asyncio.create_subprocess_exec(
            *command(root, *arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(model, **more),
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(slave)
        screen = Screen(master, child, model)
        try:
            await screen.until("you › ")
            yield screen
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
            screen.close()
