"""`kode-sidecar setup` at a terminal: choices, a hidden key, mistakes; and who begins with it."""

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.chat_program import CTRL_D, Screen, environment, on_screen
from tests.support.program import PROGRAM
from tests.support.raw_http import Answer, RawHttpServer, RawRequest, response, says

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
KEY, WRONG = "sk-right-0001", "sk-wrong-0002"
UNREAD = ModelServer(Recording(()), paced=False)


def host(asked: RawRequest) -> Answer:
    """Answer who has the right key."""
    if asked.headers.get("authorization") != f"Bearer {KEY}":
        return response(401, {"error": {"type": "invalid_authentication_error", "message": "no"}})
    return says("hello 你好") if asked.method == "POST" else response(200, {"data": [{"id": "m"}]})


@asynccontextmanager
async def at(arguments: Sequence[str], url: str = "", columns: int = 100) -> AsyncGenerator[Screen]:
    """A command at a terminal, where no key is set."""
    env = environment(None, LC_ALL="C", **({"KIMI_BASE_URL": url} if url else {}))
    async with on_screen([*PROGRAM, *arguments], env, UNREAD, (columns, 60)) as screen:
        yield screen


async def set_up(screen: Screen) -> None:
    """Choose wrongly, then Kimi by Enter; give a wrong key, then the right one."""
    await screen.shows("1  kimi ", "13  lmstudio", "on this machine", "number, name or address")
    screen.type("99\n")
    await screen.counts("There is no provider 99", 1)
    await screen.counts("(Enter is kimi):", 2)
    screen.type("\n")
    await screen.counts("Keys are made at https://platform.kimi.com", 1)
    await screen.counts("is not shown", 1)
    screen.type(f"{WRONG}\n")
    await screen.counts("is not shown", 2)
    screen.type(f"{KEY}\n")
    await screen.counts("Saved in ", 1)


async def test_setup_asks_again_until_it_works() -> None:
    async with RawHttpServer() as server:
        server.choose = host
        async with at(["setup"], server.url) as screen:
            await set_up(screen)
            await screen.counts("kode-sidecar chat", 1)
            assert await screen.left() == 0
            assert KEY not in screen.all
            assert WRONG not in screen.all
    saved = Path(os.environ["KODE_HOME"], ".env").read_text("utf-8").splitlines()
    assert saved == [f"KIMI_API_KEY={KEY}", "KODE_MODEL=ide-chat"]


@pytest.mark.parametrize("command", [["chat"], ["ask", "hi"]])
async def test_without_a_key_a_command_begins_with_setup(
    tmp_path: Path, command: list[str]
) -> None:
    async with RawHttpServer() as server:
        server.choose = host
        async with at([*command, "--root", str(tmp_path)], server.url) as screen:
            await screen.shows("no key for a model yet")
            await set_up(screen)
            if command[0] == "chat":
                await screen.idle()
                screen.type("hi\n")
            await screen.counts("hello", 1)


async def test_who_gives_up_learns_how_to_begin_again(tmp_path: Path) -> None:
    run = ["chat", "--locale", "zh", "--root", str(tmp_path)]
    async with at(run, columns=60) as screen:
        await screen.shows("本机运行")
        screen.type(CTRL_D)
        await screen.shows("kode-sidecar setup")
        assert await screen.left() == 1
    assert not Path(os.environ["KODE_HOME"], ".env").exists()
