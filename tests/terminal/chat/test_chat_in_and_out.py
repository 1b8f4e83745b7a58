"""Into the chat and out of it: a first prompt, the way back, and what was said before."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.chat_program import (
    CTRL_C,
    CTRL_D,
    IDLE,
    AtTerminal,
    at_dumb_terminal,
    at_terminal,
    by_lines,
)
from tests.support.model_script import answer, text

pytestmark = pytest.mark.program
at_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
TEA = [answer(text("Tea is **hot**.")), answer(text("So it is 茶."))]


@at_a_terminal
@pytest.mark.parametrize("at", [at_terminal, at_dumb_terminal])
async def test_a_session_is_left_and_taken_up_again(tmp_path: Path, at: AtTerminal) -> None:
    async with at(tmp_path, TEA[:1], "what is tea?") as screen:
        await screen.counts("turn ended", 1)
        await screen.shows("you ›" if screen.dumb else IDLE)
        screen.type(CTRL_D)
        assert await screen.left() == 0
        await screen.until("to go on with it: kode-sidecar chat --session ")
        command = screen.all.rpartition("kode-sidecar chat ")[2]
    options = re.sub(r"\x1b\[\d*m", "", command).split()
    assert options[2:] == ["--root", str(tmp_path)]
    for way in (options[:2], ["--continue"]):
        async with at(tmp_path, TEA[1:], *way) as screen:
            assert screen.history.index("what is tea?") < screen.history.index("Tea is")
            screen.type("and now?\n")
            await screen.counts("turn ended", 1)
            assert "what is tea?" in str(screen.model.chats[0].body["messages"])


@at_a_terminal
async def test_who_leaves_by_ctrl_c_sees_the_way_back_and_an_empty_session_has_none(
    tmp_path: Path,
) -> None:
    async with at_terminal(tmp_path, TEA) as screen:
        screen.type("hello\n")
        await screen.shows("Tea is", IDLE)
        screen.type(CTRL_C)
        screen.type(CTRL_C)
        assert await screen.left() == 130
        await screen.until("chat --session ")
    async with at_terminal(tmp_path, TEA) as screen:
        screen.type(CTRL_D)
        assert await screen.left() == 0
        assert "--session" not in screen.all


async def test_a_first_prompt_comes_before_piped_ones(tmp_path: Path) -> None:
    done = await by_lines(tmp_path, "two\n", TEA, "one", "word")
    assert done.model is not None
    assert [one.body["messages"][-1]["content"] for one in done.model.chats] == ["one word", "two"]


@pytest.mark.parametrize("way", ["--continue", "--session=019"])
async def test_nothing_to_go_on_in_is_an_error(tmp_path: Path, way: str) -> None:
    done = await by_lines(tmp_path, "hello\n", TEA, way)
    assert done.code == 1
    assert "no session of this folder" in done.out


async def test_a_wrong_flag_shows_the_usage_of_its_command(tmp_path: Path) -> None:
    done = await by_lines(tmp_path, "", TEA, "--nonsense")
    assert done.code == 2
    assert "usage: kode-sidecar chat [-h]" in done.err
    assert "unrecognized arguments: --nonsense" in done.err
