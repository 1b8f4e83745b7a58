"""The agent in stock Neovim: no plugin on the path, every task by Neovim's own functions."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.editors.neovim_builds import SUITES
from tests.editors.neovim_driver import Neovim, require_neovim, running
from tests.support.model_script import answer, hold, text, tool_call

INIT = Path(__file__).with_name("plain_init.lua")
CODE = "def one():\n    return 1\n\n\ndef two():\n    return 3  # 三\n"
EDITS = [{"old": "return 1", "new": "return 11"}, {"old": "return 3", "new": "return 2"}]
PROPOSED = (
    answer(tool_call("propose_edit", {"path": "a.py", "edits": EDITS})),
    answer(text("Done.")),
)


@asynccontextmanager
async def stock_neovim(
    suite: str, folder: Path, script: Sequence[Any], source: bytes = CODE.encode()
) -> AsyncGenerator[tuple[Neovim, ModelServer, str]]:
    """Neovim with one open file, the model behind it, and the file's URI."""
    root = folder / "项目 one"
    root.mkdir()
    (root / "a.py").write_bytes(source)
    async with ModelServer(Recording(tuple(script)), paced=False) as model:
        environment = {
            "KIMI_BASE_URL": model.base_url,
            "KIMI_API_KEY": "sk-test-key-000",
            "KODE_LOCALE": "en",
        }
        build = require_neovim(suite)
        async with running(build, folder / "nvim", root, environment, {}, INIT) as nvim:
            yield nvim, model, await nvim.lua("return Plain.open(...)", "a.py")


async def do(nvim: Neovim, name: str, *arguments: Any) -> Any:
    """Call one of the functions of `plain_init.lua`."""
    return await nvim.lua(f"return Plain.{name}(...)", *arguments)


@pytest.mark.parametrize("suite", SUITES)
async def test_explain_a_selection_and_chat_on(suite: str, tmp_path: Path) -> None:
    script = [
        answer(text("It gives "), hold("more"), text("one. 好")),
        answer(text("Second.")),
        answer(text("Third.")),
    ]
    async with stock_neovim(suite, tmp_path, script) as (nvim, model, uri):
        await do(nvim, "act", uri, 0, 2, "Explain")
        await do(nvim, "wait_text", ".md", "It gives")
        await do(nvim, "insert", ".md", -1, "my note 记")
        model.release("more")
        await do(nvim, "wait_text", ".md", "It gives one. 好")
        assert "my note 记" in await do(nvim, "text", ".md")
        for words in ("Second.", "Third."):
            await do(nvim, "insert", ".md", -1, "\n## You\n\nAnd then?")
            await do(nvim, "act", ".md", 0, 0, "kode: send")
            await do(nvim, "wait_text", ".md", words)
        assert len(model.chats) == 3


@pytest.mark.parametrize("suite", SUITES)
async def test_hunks_are_decided_one_by_one(suite: str, tmp_path: Path) -> None:
    source = CODE.replace("\n", "\r\n").encode()
    async with stock_neovim(suite, tmp_path, PROPOSED, source) as (nvim, _, uri):
        await do(nvim, "run", "kode.ask", "make it right")
        await do(nvim, "wait_hunks", uri, 2)
        await do(nvim, "insert", uri, 0, "# mine")
        first, second = await do(nvim, "wait_hunks", uri, 2, 2)
        assert (first, second) == (2, 6)
        await do(nvim, "act", uri, second, second, "accept this edit")
        await do(nvim, "wait_text", uri, "return 2  # 三")
        await do(nvim, "act", uri, first, first, "reject this edit")
        await do(nvim, "wait_hunks", uri, 0)
        assert "return 11" not in await do(nvim, "text", uri)
        await do(nvim, "act", uri, 0, 0, "kode: undo")
        await do(nvim, "wait_text", uri, "return 3  # 三")
        assert await do(nvim, "text", uri) == "# mine\n" + CODE
        assert (tmp_path / "项目 one" / "a.py").read_bytes() == source


@pytest.mark.parametrize("suite", SUITES)
async def test_a_turn_is_stopped_and_the_server_restarted(suite: str, tmp_path: Path) -> None:
    script = [answer(text("Long "), hold("never"), text("story")), *PROPOSED]
    async with stock_neovim(suite, tmp_path, script) as (nvim, _, uri):
        await do(nvim, "run", "kode.ask", "tell")
        await do(nvim, "wait_text", ".md", "Long")
        await do(nvim, "run", "kode.stop")
        await do(nvim, "wait_text", ".md", "Stopped.")
        await do(nvim, "restart")
        await do(nvim, "open", "a.py")
        await do(nvim, "run", "kode.ask", "again")
        await do(nvim, "wait_hunks", uri, 2)
        await do(nvim, "run", "kode.accept")
        await do(nvim, "wait_text", uri, "return 11")
        await do(nvim, "wait_text", uri, "return 2  # 三")
