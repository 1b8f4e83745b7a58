"""The chat as a program: its options, the process it talks to, its exit code.

Ctrl-C must arrive once, not twice, in a program of two processes. The terminal sends SIGINT to its
whole foreground group, and the first process of a one-file program forwards every signal to the
second, which is us. So we use a group of our own, without the first. Ctrl-Z is then ignored,
as the shell would not notice that we stopped. Source: POSIX, General Terminal Interface.
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

from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.unpacked import unpacked_folder
from kode_sidecar.terminal.chat.conversation import ChatConversation, Face
from kode_sidecar.terminal.chat.keyboard import Interrupts, Keyboard, Leaving, end_process
from kode_sidecar.terminal.chat.words import Words, words_for
from kode_sidecar.terminal.client.connection import Client, ConnectionLost, RpcError
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.labels import labels_for, system_locale
from kode_sidecar.terminal.client.terminal import Terminal, prepare

LEFT_BY_CTRL_C = 130
HURRIED_CLOSE_SECONDS = 1.0
"""How long each step of the sidecar's end may take if the user leaves by Ctrl-C."""


@contextmanager
def own_foreground() -> Generator[None, None, None]:
    """Make our own process group the terminal's foreground, if needed and possible."""
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
        # Otherwise SIGTTOU would stop a process that is not in the foreground.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, group)
        signal.signal(signal.SIGTTOU, before)


@dataclass(frozen=True)
class ChatOptions:
    """`root` is the folder the model may read, by default the working directory.

    `model` and `mode`: None means the user's settings. `agent` is that of new sessions. `accept`:
    accept every hunk that is not sensitive, without asking. `trusted`: the user trusts this folder.
    `locale`: None means the system's. `by_lines`: each line of piped input is a prompt, not all of
    it together. `prompt` comes before what is typed. `resumed` is the session to go on in, by the
    first letters of its id; "" is the latest one, None a new one.
    """

    root: Path | None = None
    model: str | None = None
    agent: str = "coder"
    mode: str | None = None
    accept: bool = False
    trusted: bool = False
    locale: str | None = None
    by_lines: bool = False
    prompt: str = ""
    resumed: str | None = None


def chat(options: ChatOptions) -> int:
    """Run the chat on standard input and output until the user leaves; return the exit code.

    It is 1 without a key or, with piped input, if a turn failed. Raises KodeError.
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
    plain = Terminal(out, labels_for(locale), echo=not interactive)
    try:
        client = await Client.spawn(keep_frames=0, apart=True)
    except OSError as error:
        plain.line(words.no_start.format(error=error), "red")
        return 1, False
    face: Face | None = None

    def missed() -> None:
        if face is None or face.terminal is plain:
            plain.line(f"\n{words.leave}", "dim")
        else:  # a line is drawn, and this goes above it
            face.terminal.line(words.leave, "dim")

    try:
        async with client:
            with Interrupts(missed) as interrupts:
                face = _face(options, root, interrupts, plain, words, locale)
                try:
                    code = await interrupts.until_left(_talk(options, root, client, face, locale))
                except Leaving:
                    code = LEFT_BY_CTRL_C
                    await client.close(HURRIED_CLOSE_SECONDS)
    except (ConnectionLost, RpcError) as error:
        plain.line(words.failed.format(error=error), "red")
        code = 1
    return code, face is not None and face.keyboard.reads


async def _talk(options: ChatOptions, root: Path, client: Client, face: Face, locale: str) -> int:
    talk = ChatConversation(
        client, face, {"model": options.model, "mode": options.mode}, accept=options.accept
    )
    if not await talk.begin(_handshake(root, locale, options), options.resumed):
        return 1
    try:
        async with face.keyboard:
            return await talk.run(options.prompt)
    finally:
        talk.show_way_back()


def _face(
    options: ChatOptions,
    root: Path,
    interrupts: Interrupts,
    plain: Terminal,
    words: Words,
    locale: str,
) -> Face:
    """Return a drawn input line on a terminal that can draw; else plain lines."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive and (sys.platform == "win32" or os.environ.get("TERM", "dumb") != "dumb"):
        # Imported late: it takes 0.3 s, which piped input need not pay.
        from kode_sidecar.terminal.chat.screen import drawn_face  # noqa: PLC0415

        return drawn_face(root, interrupts, words, labels_for(locale))
    keyboard = Keyboard(
        interrupts, sys.stdin, plain, words, interactive=interactive, by_lines=options.by_lines
    )
    return Face(keyboard, plain, words, interrupts)


def _handshake(root: Path, locale: str, options: ChatOptions) -> Handshake:
    return Handshake(
        roots=[root],
        locale="zh-CN" if locale.lower().startswith("zh") else "en",
        trusted=options.trusted,
        settings={"agent": options.agent},
        client_name="kode-sidecar chat",
    )
