"""Turns Ctrl-C into an event, and reads lines from a plain terminal or a pipe."""

import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol, TextIO, TypeVar

from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.terminal.chat.words import Words
from kode_sidecar.terminal.client.terminal import Terminal

if sys.platform == "win32":
    import msvcrt
else:
    import termios

LEAVE_SECONDS = 2.0
"""A second Ctrl-C within this time leaves."""

T = TypeVar("T")

# What a terminal sends for keys other than text (ECMA-48: CSI sequences, SS3 and a letter).
_KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)")


class Interrupted(Exception):
    """Ctrl-C: stop what is going on."""


class Leaving(Exception):
    """A second Ctrl-C: leave at once."""


class Interrupts:
    """Turns Ctrl-C into an event of the loop, inside `with`; on the main thread.

    `on_missed()` is called for a Ctrl-C that no code waits for yet.
    """

    def __init__(self, on_missed: Callable[[], None]) -> None:
        self._on_missed = on_missed
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._last = float("-inf")
        self._leave = False
        self._missed = False
        self._leaving: asyncio.Future[None] = self._loop.create_future()
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    async def wait(self) -> None:
        """Wait for the next Ctrl-C; return at once if one was missed.

        Raises Leaving if it soon follows another one.
        """
        if self._leave:
            raise Leaving
        if self._missed:
            self._missed = False
            return
        future = self._loop.create_future()
        self._waiting.add(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # Ctrl-C came just as the wait was cancelled
                self._miss()
            raise
        finally:
            self._waiting.discard(future)

    async def until_left(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. A second Ctrl-C cancels it and raises Leaving."""
        working = asyncio.ensure_future(work)
        # After that its result does not matter, so mark its exception as read.
        working.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait({working, self._leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Leaving
            return working.result()
        finally:
            working.cancel()

    async def unless(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. Ctrl-C cancels it and raises Interrupted or Leaving."""
        working = asyncio.ensure_future(work)
        interrupt = asyncio.create_task(self.wait())
        try:
            await asyncio.wait({working, interrupt}, return_when=asyncio.FIRST_COMPLETED)
            if interrupt.done():
                interrupt.result()
                raise Interrupted
            return working.result()
        finally:
            interrupt.cancel()
            working.cancel()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._loop.call_soon_threadsafe(self.arrived)

    def arrived(self) -> None:
        """Handle a Ctrl-C."""
        now = self._loop.time()
        if now - self._last < LEAVE_SECONDS and not self._leave:
            self._leave = True
            self._leaving.set_result(None)
        self._last = now
        waiting = [future for future in self._waiting if not future.done()]
        if not waiting:
            self._miss()
        for future in waiting:
            future.set_exception(Leaving()) if self._leave else future.set_result(None)

    def _miss(self) -> None:
        """Save the Ctrl-C for the next wait."""
        self._missed = True
        if not self._leave:
            self._on_missed()


class Asks(Protocol):
    """Reads the user's input: `Keyboard`, or `input_line.InputLine`, which draws.

    `interactive`: a user is at the terminal. `steer` takes texts for the running turn, None if
    none runs; `told` are those that the turn has not read yet, `queue` is for later turns.
    `reads`: a thread waits for a line. `edits`: the user's editor can be used. Enter it with
    `async with` before use.
    """

    steer: Callable[[str], None] | None
    reported: list[str]
    queue: list[str]

    @property
    def interactive(self) -> bool: ...

    @property
    def reads(self) -> bool: ...

    @property
    def edits(self) -> bool: ...

    async def __aenter__(self) -> "Asks": ...

    async def __aexit__(self, *_: object) -> None: ...

    def give_back(self) -> None:
        """Take `queue` back into the line, as the user has stopped what was to come before it."""
        ...

    async def prompt(self) -> str | None:
        """Return the next prompt; None at the end of input. Raises Interrupted and Leaving."""
        ...

    async def reply(self, question: str) -> str | None:
        """Return the answer to a question; None at the end of input. Raises as `prompt` does."""
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """Return a text after editing in the user's editor; None if that failed."""
        ...


class Keyboard:
    """Reads lines of standard input on a thread that ends with the process.

    An abandoned read is reused by the next one, so no line is lost. Piped input is one prompt,
    unless `by_lines`. It takes no input while a turn runs: `steer` is not called.
    """

    def __init__(
        self,
        interrupts: Interrupts,
        source: TextIO,
        terminal: Terminal,
        words: Words,
        *,
        interactive: bool,
        by_lines: bool,
    ) -> None:
        self.interactive = interactive
        self.edits = False
        self.steer: Callable[[str], None] | None = None
        self.reported: list[str] = []
        self.queue: list[str] = []
        self._interrupts = interrupts
        self._source = source
        self._terminal = terminal
        self._words = words
        self._by_lines = by_lines or interactive
        self._pending: asyncio.Future[str | None] | None = None
        self._ended = False
        reconfigure: Callable[..., None] | None = getattr(source, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")

    @property
    def reads(self) -> bool:
        """True while the thread waits for a line."""
        return self._pending is not None and not self._pending.done()

    def give_back(self) -> None:
        """Do nothing: what is typed while a turn runs is read after it."""

    async def __aenter__(self) -> "Keyboard":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: the thread ends with the process."""

    async def prompt(self) -> str | None:
        """Return a prompt of one or more lines; None at the end of input.

        Raises Interrupted and Leaving.
        """
        lines: list[str] = []
        while True:
            if self.interactive:
                self._terminal.line()
                self._terminal.prompt(self._words.more if lines else self._words.prompt)
            line = await self._line()
            if line is None:
                break
            continues = line.endswith("\\") if self._by_lines else True
            lines.append(line[:-1] if continues and self._by_lines else line)
            if not continues:
                break
        return "\n".join(lines) if lines else None

    async def reply(self, question: str) -> str | None:
        """Return a line typed below `question`; None at the end of input.

        Raises Interrupted and Leaving.
        """
        self._forget_typed_ahead()
        self._terminal.prompt(question)
        try:
            return await self._line()
        except (Interrupted, asyncio.CancelledError):
            self._terminal.line()  # below the question
            raise

    async def edit(self, text: str, suffix: str) -> str | None:
        """Return None: plain lines have no editor."""
        del text, suffix

    async def _line(self) -> str | None:
        """Return the next line without its end; None at the end of input."""
        while not self._ended:
            if self._pending is None:
                self._pending = self._start()
            text = await self._interrupts.unless(asyncio.shield(self._pending))
            self._pending = None
            if text is None:
                self._ended = True
            elif text.endswith("\n"):
                return self._cleaned(text)
        return None

    def _forget_typed_ahead(self) -> None:
        """Drop text typed before a question, as it is no answer to it."""
        if not self.interactive:
            return
        if self._pending is not None and self._pending.done() and self._pending.result():
            self._pending = None  # read for a wait that was abandoned
        if sys.platform == "win32":
            while msvcrt.kbhit():
                msvcrt.getwch()
        else:
            with suppress(termios.error, OSError, ValueError):
                termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def _cleaned(self, line: str) -> str:
        """Return a line without its end and, from a terminal, without the codes of other keys."""
        text = line.rstrip("\r\n").removeprefix("\ufeff")
        return without_controls(_KEYS.sub("", text)) if self.interactive else text

    def _start(self) -> asyncio.Future[str | None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str | None] = loop.create_future()

        def deliver(text: str | None) -> None:
            if not future.done():
                future.set_result(text)

        def read() -> None:
            text = self._read()
            with suppress(RuntimeError):  # the loop is closed: we have left
                loop.call_soon_threadsafe(deliver, text)

        threading.Thread(target=read, name="keyboard", daemon=True).start()
        return future

    def _read(self) -> str | None:
        """Return a line with its end, None at the end of input, "" after Ctrl-C."""
        try:
            if self.interactive and sys.platform == "win32":
                return input() + "\n"  # only `input` gets Ctrl-C and Ctrl-Z from its console
            line = self._source.readline()
            return line.rstrip("\n") + "\n" if line else None
        except KeyboardInterrupt:  # raised on this thread by Windows consoles only
            return ""
        except (EOFError, OSError, ValueError):
            return None


def end_process(code: int) -> None:
    """End now, although a thread still reads standard input, for which C libraries may wait."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
