"""`kode-sidecar chat` as a process: at a pseudo-terminal of POSIX, or fed by a pipe."""

import asyncio
import os
import re
import struct
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyte

from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

if sys.platform != "win32":
    import fcntl
    import termios

CTRL_C = "\x03"
CTRL_D = "\x04"
CTRL_J = "<Ctrl-J>"


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
    responses: Sequence[RecordedResponse] | ModelServer | None = (),
    *arguments: str,
    **more: str,
) -> Piped:
    """Run a chat over `lines` to its end; `responses` None = without a key."""
    if not isinstance(responses, ModelServer):
        recorded = ModelServer(Recording(tuple(responses or ())), paced=False)
    else:
        recorded = responses
    async with recorded as server:
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


_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>()][0-9A-B]?)")
IDLE = "ask, or /help"
"""Stands in the empty line while nothing runs."""


async def by_lines(
    root: Path,
    lines: str,
    responses: Sequence[RecordedResponse] | None = (),
    *arguments: str,
    **more: str,
) -> Piped:
    """Run a chat in which each line is a prompt or a command."""
    return await piped(root, lines, responses, "--lines", *arguments, **more)


class Screen:
    """A pseudo-terminal with the chat at the other end, and what stands on it (`pyte`)."""

    def __init__(
        self,
        master: int,
        child: asyncio.subprocess.Process,
        model: ModelServer,
        size: tuple[int, int] = (100, 30),
    ) -> None:
        self.model = model
        self.all = ""
        self.dumb = False
        self.emulator = pyte.HistoryScreen(*size, history=5_000, ratio=0.1)
        self._stream = pyte.ByteStream(self.emulator)
        self._master = master
        self._child = child
        self._seen = 0
        self._data = b""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    async def until(self, text: str) -> str:
        """Wait until `text` is printed after what was waited for before; all printed on the way."""
        await self._wait(lambda: text in self._plain()[self._seen :], text)
        plain = self._plain()
        found = plain.index(text, self._seen)
        shown = plain[self._seen : found + len(text)]
        self._seen = found + len(text)
        return shown

    async def shows(self, *texts: str) -> None:
        """Wait until all texts stand on the screen at once."""
        await self._wait(lambda: all(text in self.display for text in texts), " and ".join(texts))

    async def counts(self, text: str, number: int) -> None:
        """Wait until a text was printed, or stands on the screen, so many times."""
        await self._wait(lambda: self.history.count(text) == number, f"{number} × {text}")

    async def idle(self) -> None:
        """Wait for the empty line, and nothing running."""
        hints = (f"you › {IDLE}", "你 › 请提问")
        if self.dumb:
            await self.until("you › ")
        else:
            await self._wait(lambda: any(hint in self.display for hint in hints), "the empty line")

    @property
    def display(self) -> str:
        """What stands on the screen now; a wide character takes one place."""
        return "\n".join(line.rstrip() for line in self.emulator.display).rstrip()

    @property
    def history(self) -> str:
        """What was printed and scrolled away, then what stands on the screen."""
        top = ["".join(row[x].data for x in range(self.emulator.columns)) for row in self._above()]
        return "\n".join([*(line.rstrip() for line in top), self.display])

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal's window."""
        self.emulator.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys; Enter is a newline, and Ctrl-J is `CTRL_J`."""
        if not self.dumb:
            keys = keys.replace("\n", "\r").replace(CTRL_J, "\n")
        os.write(self._master, keys.encode())

    async def paste(self, text: str) -> None:
        """Paste as terminals do, in pieces that the other end takes (bracketed paste)."""
        data = b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~"
        for start in range(0, len(data), 2_000):
            await asyncio.to_thread(os.write, self._master, data[start : start + 2_000])

    def _above(self) -> list[Any]:
        return list(self.emulator.history.top)

    def _plain(self) -> str:
        return _SEQUENCE.sub("", self.all)

    async def _wait(self, condition: Callable[[], bool], wanted: str) -> None:
        try:
            async with asyncio.timeout(HANG_SECONDS):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
                    if not self._data and not condition():
                        raise AssertionError(f"ended without {wanted!r}:\n{self.history}")
        except TimeoutError:
            raise AssertionError(f"never {wanted!r}:\n{self.history}") from None

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
        self._stream.feed(self._data)
        self._news.set()


@asynccontextmanager
async def at_terminal(
    root: Path,
    responses: Sequence[RecordedResponse],
    *arguments: str,
    size: tuple[int, int] = (100, 30),
    **more: str,
) -> AsyncIterator[Screen]:
    """A chat at a terminal of its own, at its first prompt."""
    async with ModelServer(Recording(tuple(responses)), paced=False) as model:
        run = command(root, *arguments)
        async with on_screen(run, environment(model, **more), model, size) as screen:
            screen.dumb = more.get("TERM") == "dumb"
            await screen.idle()
            yield screen


@asynccontextmanager
async def on_screen(
    run: Sequence[str], env: Mapping[str, str], model: ModelServer, size: tuple[int, int]
) -> AsyncIterator[Screen]:
    """Any program at a terminal of its own; it is killed in the end."""
    assert sys.platform != "win32"
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that the keys of signals reach it

    child = await asyncio.create_subprocess_exec(
        *run,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(slave)
    screen = Screen(master, child, model, size)
    try:
        yield screen
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        screen.close()


AtTerminal = Callable[..., AbstractAsyncContextManager[Screen]]
at_dumb_terminal = partial(at_terminal, TERM="dumb")
"""One that cannot draw: lines in, lines out."""
