"""The chat at a terminal that cannot draw: keys, questions, Ctrl-C."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_program import CTRL_C, CTRL_D, at_dumb_terminal
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.processes import children, gone, serving
from tests.support.sidecar import HANG_SECONDS

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
PROMPT = "you › "
ASKED = "accept? [y/n/a/r/e/s/l/q/?] "
TEXT = "one\r\ntwo\r\nthree\r\nfour\r\nfive 茶\r\nsix\r\nseven\r\neight\r\n"


def propose(path: str, *edits: tuple[str, str]) -> Any:
    return tool_call(
        "propose_edit", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}
    )


THREE = propose("a.txt", ("two", "TWO"), ("five 茶", "FIVE 🍵"), ("eight", "EIGHT"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    return tmp_path


async def test_hunk_by_hunk_then_a_cancelled_turn(project: Path) -> None:
    responses = [
        answer(THREE),
        answer(text("Done.")),
        answer(text("thinking about it", size=99), hold("for ever"), text("never")),
        answer(text("Good bye.")),
    ]
    async with at_dumb_terminal(project, responses) as screen:
        screen.type("edit it\n")
        first = await screen.until(ASKED)
        assert "hunk 1 of 3" in first
        screen.type("?\n")
        await screen.until("q  decide later")
        await screen.until(ASKED)
        screen.type("y\n")
        await screen.until(ASKED)
        screen.type("n keep the tea\n")
        await screen.until(ASKED)
        screen.type("Y\n")
        await screen.until("applied: 2 · rejected: 1")
        changed = TEXT.replace("two", "TWO").replace("eight", "EIGHT")
        assert (project / "a.txt").read_bytes() == changed.encode()

        await screen.until(PROMPT)
        screen.type("go on\n")
        await screen.until("thinking about it")
        screen.type(CTRL_C)
        await screen.until("turn ended: cancelled")
        assert "keep the tea" in str(screen.model.chats[2].body["messages"])

        await screen.until(PROMPT)  # it lives on
        screen.type("and now?\n")
        await screen.until("Good bye.")
        await screen.until(PROMPT)
        screen.type(CTRL_D)
        assert await screen.left() == 0


async def test_deciding_later_and_a_file_changed_meanwhile(project: Path) -> None:
    responses = [answer(THREE), answer(text("Done."))]
    async with at_dumb_terminal(project, responses) as screen:
        screen.type("edit it\n")
        await screen.until(ASKED)
        screen.type("q\n")
        await screen.until("3 hunk(s) wait")
        await screen.until(PROMPT)
        # Another program adds a line on top; the hunks stand one line further down.
        (project / "a.txt").write_bytes(b"zero\r\n" + TEXT.encode())
        screen.type("/review\n")
        await screen.until(ASKED)
        screen.type("r\n")
        await screen.until("rejected: 3")
        await screen.until(PROMPT)
        assert (project / "a.txt").read_bytes() == b"zero\r\n" + TEXT.encode()
        screen.type("/quit\n")
        assert await screen.left() == 0
        assert "\x1b" not in screen.all


async def test_accepting_the_rest_lands_in_the_file_of_this_moment(project: Path) -> None:
    async with at_dumb_terminal(project, [answer(THREE), answer(text("Done."))]) as screen:
        screen.type("edit it\n")
        await screen.until(ASKED)
        (project / "a.txt").write_bytes(b"zero\r\n" + TEXT.encode())
        screen.type("a\n")
        await screen.until("applied: 3")
        expected = TEXT.replace("two", "TWO").replace("five 茶", "FIVE 🍵")
        expected = "zero\r\n" + expected.replace("eight", "EIGHT")
        assert (project / "a.txt").read_bytes() == expected.encode()


@pytest.mark.parametrize("key", ["y", ""])
async def test_a_question_is_answered_at_the_terminal(project: Path, key: str) -> None:
    edit = propose(".vscode/tasks.json", ("[]", "[1]"))
    responses = [answer(edit), answer(text("Well."))]
    async with at_dumb_terminal(project, responses, "--mode", "auto") as screen:
        screen.type("edit it\n")
        await screen.until("anything else = no: ")
        screen.type(f"{key}\n")
        await screen.until("turn ended: done")
        await screen.until(PROMPT)
        wanted = b'{"tasks": [1]}\n' if key else b'{"tasks": []}\n'
        assert (project / ".vscode" / "tasks.json").read_bytes() == wanted


def ask(**more: Any) -> Any:
    choices = ["prices.json", "数据库", "the environment"]
    return tool_call("ask_user", {"question": "Where to?", "choices": choices, **more})


async def test_a_choice_is_made_by_number(project: Path) -> None:
    responses = [answer(ask()), answer(ask(multi=True)), answer(ask()), answer(text("Well."))]
    async with at_dumb_terminal(project, responses) as screen:
        screen.type("go\n")
        shown = await screen.until("nothing = none: ")
        assert "? Where to?" in shown
        assert "2  数据库" in shown
        screen.type("4\n")
        await screen.until("nothing = none: ")  # there is no such number
        screen.type("1 2\n")
        await screen.until("nothing = none: ")  # one only
        screen.type("2\n")
        await screen.until("numbers of your choices")
        screen.type("3, 1\n")
        await screen.until("number of your choice")
        screen.type("\n")
        await screen.until("turn ended: done")
        reported = [
            m["content"] for m in screen.model.chats[-1].body["messages"] if m["role"] == "tool"
        ]
        assert reported[0] == "The user chose:\n- 数据库"
        assert reported[1] == "The user chose:\n- prices.json\n- the environment"
        assert reported[2].startswith("The user chose nothing.")
        await screen.until(PROMPT)


async def test_a_choice_nobody_makes_is_taken_back(project: Path) -> None:
    responses = [answer(ask()), answer(text("Well then."))]
    async with at_dumb_terminal(project, responses, KODE_PERMISSION_TIMEOUT="0.5") as screen:
        screen.type("go\n")
        await screen.until("nothing = none: ")
        await screen.until("No answer within 0.5 seconds")
        await screen.until("turn ended: done")
        await screen.until(PROMPT)
        screen.type("/mode\n")  # the line belongs to the prompt again
        await screen.until("mode: review")


async def test_ctrl_c_at_a_question_means_no_and_cancels(project: Path) -> None:
    edit = propose(".vscode/tasks.json", ("[]", "[1]"))
    async with at_dumb_terminal(project, [answer(edit), answer(text("Well."))]) as screen:
        screen.type("edit it\n")
        await screen.until("anything else = no: ")
        screen.type(CTRL_C)
        await screen.until("turn ended: cancelled")
        await screen.until(PROMPT)
        assert (project / ".vscode" / "tasks.json").read_bytes() == b'{"tasks": []}\n'


async def test_the_mode_ask_decides_while_the_turn_waits(project: Path) -> None:
    responses = [answer(THREE), answer(text("So be it."))]
    async with at_dumb_terminal(project, responses, "--mode", "ask") as screen:
        screen.type("edit it\n")
        await screen.until(ASKED)
        screen.type("y\n")
        await screen.until(ASKED)
        screen.type("q\n")
        await screen.until("So be it.")
        await screen.until(PROMPT)
        assert "applied: 1 · rejected: 2" in screen.all  # the answer may be shown first
        assert (project / "a.txt").read_bytes() == TEXT.replace("two", "TWO").encode()


async def test_two_ctrl_c_leave(project: Path) -> None:
    async with at_dumb_terminal(project, []) as screen:
        screen.type(CTRL_C)
        await screen.until("Ctrl-C once more")
        screen.type(CTRL_C)
        assert await screen.left() == 130


async def test_two_ctrl_c_leave_a_running_turn(project: Path) -> None:
    responses = [answer(text("wait", size=9), hold("for ever"), text("never"))]
    async with at_dumb_terminal(project, responses) as screen:
        screen.type("go\n")
        await screen.until("wait")
        screen.type(CTRL_C)
        await screen.until("cancelling")
        screen.type(CTRL_C)
        assert await screen.left() == 130


async def test_two_ctrl_c_leave_a_sidecar_that_does_not_answer(project: Path) -> None:
    async with at_dumb_terminal(project, []) as screen:
        (child,) = children(serving(screen.pid))
        os.kill(child, signal.SIGSTOP)
        screen.type("go\n")
        await screen.until("go\n")
        screen.type(CTRL_C)
        await screen.until("Ctrl-C once more")
        screen.type(CTRL_C)
        assert await screen.left() == 130
        assert gone(child)


async def test_ctrl_c_while_the_models_are_asked_for(project: Path) -> None:
    asked = asyncio.Semaphore(0)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.release()
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    async with silent, at_dumb_terminal(project, [], KIMI_BASE_URL=url) as screen:
        screen.type("/model\n")
        await asyncio.wait_for(asked.acquire(), HANG_SECONDS)
        screen.type(CTRL_C)
        await screen.until("Ctrl-C once more")
        await screen.until(PROMPT)
        screen.type("/mode\n")
        await screen.until("mode: review")
        screen.type(CTRL_D)
        assert await screen.left() == 0


async def test_keys_that_are_no_text_are_left_out(project: Path) -> None:
    """Ctrl-Space, which some input methods take, arrives as a NUL."""
    async with at_dumb_terminal(project, [answer(text("seen"))]) as screen:
        screen.type("a\x1b[A\x1b[1;5Db\x00\x1bOPc 茶\x07\n")
        await screen.until("seen")
        assert screen.model.chats[0].body["messages"][-1]["content"] == "abc 茶"
        await screen.until(PROMPT)


async def test_a_late_answer_to_one_question_is_none_to_the_next(project: Path) -> None:
    risky = propose(".vscode/tasks.json", ("[]", "[1]"))
    both = [answer(risky, THREE), answer(hold("gate"), text("Done."))]
    timeout = {"KODE_PERMISSION_TIMEOUT": "0.5"}
    async with at_dumb_terminal(project, both, **timeout) as screen:
        screen.type("edit it\n")
        await screen.until("anything else = no: ")
        await screen.model.reached("gate")  # the question has timed out
        screen.type("a\n")
        await screen.until("a\n")
        screen.model.release("gate")
        await screen.until(ASKED)
        screen.type("r\n")
        await screen.until("applied: 0 · rejected: 3")
        assert (project / "a.txt").read_bytes() == TEXT.encode()


async def test_the_end_of_input_at_a_question_decides_nothing(project: Path) -> None:
    async with at_dumb_terminal(project, [answer(THREE), answer(text("Done."))]) as screen:
        screen.type("edit it\n")
        await screen.until(ASKED)
        screen.type("y\n")
        await screen.until(ASKED)
        screen.type(CTRL_C)
        shown = await screen.until("2 hunk(s) wait")
        assert "^C\n" in re.sub(r"\x1b\[\d*m", "", shown)  # what follows is below the question
        assert (project / "a.txt").read_bytes() == TEXT.replace("two", "TWO").encode()
        await screen.until(PROMPT)
        screen.type("/review\n")
        await screen.until(ASKED)
        screen.type(CTRL_D)
        await screen.until("2 hunk(s) wait")
        assert await screen.left() == 0
        assert (project / "a.txt").read_bytes() == TEXT.replace("two", "TWO").encode()
