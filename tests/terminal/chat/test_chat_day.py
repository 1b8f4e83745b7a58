"""A day's job at a terminal: a prompt and three answers, without a file or a flag before. F16"""

import sys
from pathlib import Path

import pytest

from tests.support.chat_program import at_terminal
from tests.support.day_job import PROMPT, SCRIPT, is_committed, is_done, lay_out, results
from tests.support.git import GIT

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
    pytest.mark.skipif(GIT is None, reason="needs git"),
]
ASKED = "anything else = no:"


async def test_edit_test_fix_and_commit(tmp_path: Path) -> None:
    known = lay_out(tmp_path)
    async with at_terminal(tmp_path, SCRIPT, PATH=known["PATH"]) as screen:
        screen.type("/mode keep\n")  # chosen once
        await screen.shows("the next turns have the mode keep")
        screen.type(f"{PROMPT}\n")
        for number, question in enumerate(("trust this workspace", "unittest", "git commit"), 1):
            await screen.counts(ASKED, number)
            assert question in screen.history
            screen.type("y\n")
        await screen.shows("Done. 完成", "5 hunk(s) are applied and saved: /keep")
        is_done(tmp_path, results(screen.model.chats[-1].body))
        is_committed(tmp_path)
        screen.type("/keep\n")
        await screen.shows("applied: 5")
