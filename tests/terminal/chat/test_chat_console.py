"""The chat in a console of Windows, or of Wine where there is a display."""

from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.chat_program import command, environment
from tests.support.model_script import answer, text, tool_call
from tests.support.windows_console import CTRL_C, can_have_windows, in_window

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(not can_have_windows(), reason="a console is Windows', or Wine's"),
]


async def test_a_console_draws_the_line_and_takes_keys(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n")
    edit = tool_call("propose_edit", {"path": "a.txt", "edits": [{"old": "one", "new": "eins"}]})
    responses = (answer(edit), answer(text("Done, **truly**.")))
    async with ModelServer(Recording(responses), paced=False) as model:
        run, env = command(tmp_path), environment(model, TERM="")
        async with in_window(run, env) as window:
            await window.shows("you › ask, or /help")
            window.type("draft")
            await window.shows("you › draft")
            window.type(CTRL_C)
            await window.shows("you › ask, or /help")
            window.type("two\rlines")  # at once: nobody types so
            await window.shows("you › two\n      lines")
            window.type(CTRL_C)
            await window.shows("you › ask, or /help")
            window.type("please 茶x")
            await window.shows("you › please ")
            window.type("\b")
            window.type("\r")
            await window.shows("hunk 1 of 1", "- one", "+ eins", "accept? [y/n/a/r/e/s/l/q/?]")
            assert "Done, truly." in window.display
            assert "\x1b" not in window.display
            assert "[0m" not in window.display
            window.type("y")
            await window.shows("?] y")
            window.type("\r")
            await window.shows("applied: 1 · rejected: 0", "you › ask, or /help")
            assert (tmp_path / "a.txt").read_bytes() == b"eins\r\n"
            assert "please 茶'" in str(model.chats[0].body["messages"])
            window.type("\x04")
            assert await window.left() == 0
