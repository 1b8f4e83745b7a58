"""What the chat sends the terminal for a user who looks elsewhere."""

import base64
import re
import sys
from pathlib import Path

import pytest

from tests.support.chat_program import Screen, at_terminal
from tests.support.model_script import answer, failure, text, tool_call

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
ASKS = answer(tool_call("ask_user", {"question": "Where to?", "choices": ["here", "there"]}))


def states(screen: Screen) -> list[str]:
    """The program states (OSC 7501) in order, each with its text."""
    found = re.findall(r"\x1b\]7501;state=(\S+?):app=kode(?::msg=(\S+?))?\x1b\\", screen.all)
    return [f"{state} {base64.b64decode(said).decode()}".strip() for state, said in found]


def calls(screen: Screen) -> list[str]:
    """The notifications (OSC 9), each followed by the bell."""
    return re.findall(r"\x1b\]9;(.*?)\x1b\\\x07", screen.all)


async def test_a_question_and_the_end_of_a_turn_call_the_user(tmp_path: Path) -> None:
    async with at_terminal(tmp_path, [ASKS, answer(text("ok"))]) as screen:
        screen.type("go\n")
        await screen.shows("Where to?", "1  here")
        screen.type("1\n")
        await screen.until("turn ended: done")
        assert states(screen) == [
            "working",
            "blocked:kind=question Where to?",
            "working",
            "done the turn is done",
        ]
        assert calls(screen) == ["kode: Where to?", "kode: the turn is done"]


async def test_a_failure_says_what_is_wrong(tmp_path: Path) -> None:
    async with at_terminal(tmp_path, [failure(400, "bad", "no such tea")]) as screen:
        screen.type("go\n")
        await screen.until("turn ended: ")
        (called,) = calls(screen)
        assert "no such tea" in called
        assert states(screen)[1].startswith("error ")


@pytest.mark.parametrize(("how", "bells"), [("bell", 1), ("none", 0)])
async def test_the_user_says_which_signals(tmp_path: Path, how: str, bells: int) -> None:
    async with at_terminal(tmp_path, [answer(text("ok"))], KODE_SIGNALS=how) as screen:
        screen.type("go\n")
        await screen.until("turn ended: done")
        await screen.idle()
        assert (calls(screen), states(screen), screen.all.count("\x07")) == ([], [], bells)
