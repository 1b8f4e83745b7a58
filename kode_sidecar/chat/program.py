"""The chat as a program: its options, the process it talks to, its exit code.

Ctrl-C must come once, and not twice, in a program that is two processes. The terminal sends SIGINT
to its whole foreground group, and the first process of a one-file program forwards every signal it
gets to the second, which is us: a group of our own leaves the first out. Ctrl-Z then means nothing,
as the shell would not be told that we stopped. Source: POSIX, General Terminal Interface.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kode_sidecar.boot.unpacked import unpacked_folder
from kode_sidecar.chat.conversation import Conversation
from kode_sidecar.chat.keyboard import Interrupts, Keyboard, Leaving, end_process
from kode_sidecar.chat.words import words_for
from kode_sidecar.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.client.handshake import Handshake
from kode_sidecar.client.labels import labels_for, system_locale
from kode_sidecar.client.terminal import Terminal, prepare
from kode_sidecar.errors import KodeError

LEFT_BY_CTRL_C = 130
HURRIED_CLOSE_SECONDS = 1.0
"""What the sidecar gets for each step of its end when the user leaves by Ctrl-C."""


@contextmanager
def own_foreground() -> Generator[None, None, None]:
    """Have the terminal on standard input to ourselves, where that is needed and can be."""
    if sys.platform == "win32" or unpacked_folder() is None or not os.isatty(0):
        yield
        return
    before = os.tcgetpgrp(0)
    if before != os.getpgrp() or os.getpid() == before:
        yield  # started in the background, or on our own
        return
    stopped = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    with suppress(OSError):
        os.setpgid(0, 0)
        _give_terminal(os.getpgrp())
    try:
        yield
    finally:
        with suppress(OSError):  # hung up
            _give_terminal(before)
        signal.signal(signal.SIGTSTP, stopped)


def _give_terminal(group: int) -> None:
    if sys.platform != "win32":
        # Who is not in the foreground would be stopped by it.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


@dataclass(frozen=True)
class ChatOptions:
    """`root` is the folder the model may read, by default the working directory.

    `model` and `mode` None = as the user's settings say. `accept`: accept every hunk that is not
    sensitive, without asking. `trusted`: the user trusts this folder. `locale` None asks the
    system.
    """

    root: Path | None = None
    model: str | None = None
    mode: str | None = None
    accept: bool = False
    trusted: bool = False
    locale: str | None = None


def chat(options: ChatOptions) -> int:
    """Talk on standard input and output until the user leaves; the exit code.

    It is 1 when there is no key or, for a piped conversation, when a turn failed. Raises KodeError.
    """
    root = (options.root or Path.cwd()).absolute()
    if not root.is_dir():
        raise KodeError("NotFound", f"--root {root} is no folder; name one that exists.")
    with own_foreground():
        code, still_reads = asyncio.run(_chat(options, root))
    if still_reads:
        end_process(code)
    return code


async def _chat(options: ChatOptions, root: Path) -> tuple[int, bool]:
    out: TextIO = sys.stdout
    prepare(out)
    locale = options.locale or system_locale()
    words = words_for(locale)
    interactive = sys.stdin.isatty() and out.isatty()
    terminal = Terminal(out, labels_for(locale), echo=not interactive)
    keyboard = None
    try:
        client = await Client.spawn(keep_frames=0, apart=True)
    except OSError as error:
        terminal.line(words.no_start.format(error=error), "red")
        return 1, False
    try:
        async with client:
            with Interrupts(lambda: terminal.line(f"\n{words.leave}", "dim")) as interrupts:
                keyboard = Keyboard(interrupts, sys.stdin, interactive=interactive)
                choice = {"model": options.model, "mode": options.mode}
                talk = Conversation(
                    client, interrupts, keyboard, terminal, words, choice, accept=options.accept
                )
                handshake = _handshake(root, locale, trusted=options.trusted)
                try:
                    code = await interrupts.until_left(talk.run(handshake))
                except Leaving:
                    code = LEFT_BY_CTRL_C
                    await client.close(HURRIED_CLOSE_SECONDS)
    except (ConnectionLost, RpcError) as error:
        terminal.line(words.failed.format(error=error), "red")
        code = 1
    return code, keyboard is not None and keyboard.reads


def _handshake(root: Path, locale: str, *, trusted: bool) -> Handshake:
    return Handshake(
        roots=[root],
        locale="zh-CN" if locale.lower().startswith("zh") else "en",
        trusted=trusted,
        client_name="kode-sidecar chat",
    )
