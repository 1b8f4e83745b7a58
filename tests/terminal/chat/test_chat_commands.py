"""Commands at a terminal: the user's own `!`, `/new`, `/compact`, `/diff`, `/output`, the menu."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_program import (
    CTRL_C,
    IDLE,
    AtTerminal,
    at_dumb_terminal,
    at_terminal,
    by_lines,
)
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.processes import gone

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
CTRL_O = "\x0f"
EDIT = {"path": "a.txt", "edits": [{"old": "two", "new": "TWO 茶"}]}


def prompts(body: Any) -> list[str]:
    """The texts that the user and the program said in a request."""
    return [str(one["content"]) for one in body["messages"] if one["role"] == "user"]


@pytest.mark.parametrize("at", [at_terminal, at_dumb_terminal])
async def test_a_command_of_the_user_is_run_and_read_with_the_next_prompt(
    tmp_path: Path, at: AtTerminal
) -> None:
    async with at(tmp_path, [answer(text("I see."))]) as screen:
        screen.type("!printf 'fine 茶\\n\\033[31mred\\n'; pwd >&2; exit 3\n")
        await screen.counts("! ended with 3", 1)
        assert "  fine 茶" in screen.history.replace("茶 ", "茶")
        assert "  red\n" in screen.history
        assert screen.model.chats == []
        screen.type("what was that?\n")
        await screen.counts("turn ended", 1)
        (said,) = prompts(screen.model.chats[0].body)
        assert "What it printed" not in screen.history  # it stands there already
        assert "what was that?" in said
        assert "(ended with 3)" in said
        assert f"fine 茶\nred\n{tmp_path}\n" in said.replace("\\n", "\n")


async def test_ctrl_c_ends_a_command_and_what_it_started(tmp_path: Path) -> None:
    async with at_terminal(tmp_path, []) as screen:
        screen.type("!sleep 987 & echo =$!=; wait\n")
        await screen.until("  =")
        pid = int((await screen.until("=")).removesuffix("="))
        screen.type(CTRL_C)
        await screen.shows("! stopped", IDLE)
        assert gone(pid)


async def test_a_secret_in_its_output_stays_here(tmp_path: Path) -> None:
    secret = "AKIA" + "IOSFODNN7" + "ABCDEFG"
    async with at_terminal(tmp_path, [answer(text("Ok."))]) as screen:
        screen.type(f"!echo aws_key={secret}\n")
        await screen.shows("The output is not sent")
        screen.type("go on\n")
        await screen.counts("turn ended", 1)
        (said,) = prompts(screen.model.chats[0].body)
        assert "The output is not sent" in said
        assert secret not in said.partition("What it printed")[2]


async def test_a_pipe_runs_nothing_and_an_image_is_no_command(tmp_path: Path) -> None:
    done = await by_lines(tmp_path, "!touch made\n", [answer(text("No."))])
    assert done.model is not None
    assert "!touch made" in str(done.model.chats[0].body)
    assert not (tmp_path / "made").exists()
    async with at_terminal(tmp_path, [answer(text("An image."))]) as screen:
        screen.type("![a](b.png) is what?\n")
        await screen.counts("turn ended", 1)


async def test_a_command_waits_while_a_turn_runs(tmp_path: Path) -> None:
    async with at_terminal(tmp_path, [answer(text("Wait"), hold("here"), text(" on"))]) as screen:
        screen.type("hello\n")
        await screen.shows("Wait")
        screen.type("!echo n$((1+1))w\n")
        await screen.shows("next › !echo")
        screen.model.release("here")
        await screen.shows("n2w", "! ended with 0")
        assert len(screen.model.chats) == 1


async def test_diff_output_and_new(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", "utf-8")
    long = "".join(f"<{number}>{'茶' * 60}\n" for number in range(400))  # more than 64 KB
    (tmp_path / "long.txt").write_text(long, "utf-8")
    said = [
        answer(tool_call("read_file", {"path": "long.txt"})),
        answer(tool_call("propose_edit", EDIT)),
        answer(text("Done.")),
    ]
    async with at_terminal(tmp_path, said) as screen:
        screen.type("/diff\n")
        await screen.shows("has proposed and changed nothing")
        screen.type("/output\n")
        await screen.shows("there is no such output")
        screen.type("edit it\n")
        await screen.shows("accept?")
        screen.type("q\n")
        await screen.shows("1 hunk(s) wait", IDLE)
        screen.type("/diff\n")
        await screen.shows("hunk 1 of 1 · a.txt · proposed", "+ TWO")
        screen.type(CTRL_O)
        await screen.counts("/output", 2)
        screen.type("/output 2\n")
        await screen.counts("<399>", 1)
        assert screen.history.count("<0>") == 1
        screen.type("/new\n")
        await screen.shows("a new session:")
        screen.type("/diff\n")
        await screen.counts("has proposed and changed nothing", 2)


async def test_the_menu_names_the_modes(tmp_path: Path) -> None:
    async with at_terminal(tmp_path, []) as screen:
        screen.type("/mo")
        await screen.shows("/mode", "review, ask")
        assert "{modes}" not in screen.display
