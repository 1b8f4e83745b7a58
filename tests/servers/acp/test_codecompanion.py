"""CodeCompanion in a real Neovim holds a conversation.

No registry has it, so no CI runs this: `KODE_TEST_CODECOMPANION` names the folders of
codecompanion.nvim and plenary.nvim, with a colon in between.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.editors.neovim_driver import Neovim, require_neovim, running
from tests.support.foreign import not_available
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.program import PROGRAM

# Read now: nothing of whoever runs the tests reaches them later.
FOLDERS = os.environ.get("KODE_TEST_CODECOMPANION", "")
INIT = Path(__file__).with_name("codecompanion_init.lua")
ASKED = "Please select an option"


def edit(old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": "app.py", "edits": [{"old": old, "new": new}]})


async def begin(nvim: Neovim) -> None:
    await nvim.lua("Kode.open()")
    await nvim.until("Kode.ready()")


async def choose(nvim: Neovim, choice: str, question: int) -> None:
    """Answer the so-manieth question of the chat."""
    await nvim.until("Kode.count(...) == " + str(question), ASKED)
    await nvim.lua("Kode.choose(...)", choice)


@pytest.mark.program
async def test_codecompanion_holds_a_conversation_and_loses_no_line(tmp_path: Path) -> None:
    if not FOLDERS:
        not_available("KODE_TEST_CODECOMPANION names no codecompanion.nvim; no registry has it")
    build = require_neovim("sid")
    project = tmp_path / "project"
    project.mkdir()
    file = project / "app.py"
    file.write_text("one\ntwo\nthree\n")
    responses = (
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(edit("two", "zwei")),
        answer(edit("three", "drei")),
        answer(text("It is done.")),
        answer(thinking("hm"), text("Once upon"), hold("never")),
        answer(text("Here I am.")),
        answer(text("After all.")),
    )
    async with ModelServer(Recording(responses), paced=False) as model:
        environment = {
            "CODECOMPANION": FOLDERS,
            "KODE_COMMAND": json.dumps([*PROGRAM, "acp"]),
            "HOME": str(tmp_path),
            "KODE_HOME": str(tmp_path / "kode"),
            "KIMI_BASE_URL": model.base_url,
            "KIMI_API_KEY": "sk-test-key-000",
        }
        async with running(build, tmp_path / "one", project, environment, {}, INIT) as nvim:
            await nvim.lua("vim.cmd.edit('app.py')")
            await nvim.lua("vim.api.nvim_buf_set_lines(0, 3, 3, false, { 'not saved' })")
            await begin(nvim)
            await nvim.lua("Kode.ask('Change both')")
            await nvim.until("Kode.count(...) == 1", ASKED)
            assert "+zwei" in await nvim.lua("return Kode.text()")
            assert file.read_text() == "one\ntwo\nthree\n"
            await choose(nvim, "accept", 1)
            await choose(nvim, "reject", 2)
            await nvim.until("Kode.count('It is done.') == 1 and Kode.idle()")
            assert file.read_text() == "one\nzwei\nthree\n"
            # It reads the disk and would have overwritten the buffer.
            lines = "return vim.api.nvim_buf_get_lines(vim.fn.bufnr('app.py'), 0, -1, true)"
            assert (await nvim.lua(lines))[-1] == "not saved"
            await nvim.lua("Kode.ask('A story')")
            await nvim.until("Kode.count('Once upon') == 1")
            await nvim.lua("Kode.stop()")
            await nvim.until("Kode.idle()")
            await nvim.lua("Kode.ask('Are you there?')")
            await nvim.until("Kode.count('Here I am.') == 1 and Kode.idle()")
        async with running(build, tmp_path / "two", project, environment, {}, INIT) as nvim:
            await begin(nvim)
            await nvim.lua("Kode.resume('Change both')")
            await nvim.until("Kode.count('Here I am.') == 1")
            said = await nvim.lua("return Kode.text()")
            assert all(one in said for one in ("Change both", "It is done.", "Once upon"))
            await nvim.lua("Kode.ask('Go on')")
            await nvim.until("Kode.count('After all.') == 1 and Kode.idle()")
        reported = str(model.chats[-1].body["messages"])
        assert "Change both" in reported
        assert "Here I am." in reported
