"""The agent in stock editors: no plugin on the path, every task by the editor's own functions.

The same stories are played in each editor. What one of them cannot do stands here, with why.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.editors import emacs_driver, neovim_driver
from tests.support.files import write
from tests.support.model_script import answer, hold, text, tool_call

INIT = Path(__file__).with_name("plain_init.lua")
CODE = "def one():\n    return 1\n\n\ndef two():\n    return 3  # 三\n"
EDITS = [{"old": "return 1", "new": "return 11"}, {"old": "return 3", "new": "return 2"}]
PROPOSED = (
    answer(tool_call("propose_edit", {"path": "a.py", "edits": EDITS})),
    answer(text("Done.")),
)
EDITORS = {
    "neovim 0.10": "trixie",
    "neovim newest": "sid",
    "emacs": "",
}
ONE_SERVER = ("emacs",)
"""eglot runs one server in a buffer, and sends to it only the diagnostics that it sent itself."""
NO_NEW_FILES = ("emacs",)
"""eglot announces no operations on files, and fails on them."""
Do = Callable[..., Awaitable[Any]]


@dataclass
class Scene:
    """A stock editor in a project of one file, and the model behind it.

    `do` calls a function of `plain_init.lua` or `plain_emacs.el`.
    """

    editor: str
    do: Do
    model: ModelServer
    root: Path
    home: Path

    def lines(self, first: int, end: int) -> dict[str, Any]:
        """Some lines of the file, as an argument of a command."""
        edges = {"start": {"line": first, "character": 0}, "end": {"line": end, "character": 0}}
        return {"uri": (self.root / "a.py").as_uri(), "range": edges}

    def asked(self) -> str:
        """What the model was asked last."""
        return str(self.model.chats[-1].body["messages"])


@asynccontextmanager
async def stock(
    editor: str,
    folder: Path,
    script: Sequence[Any] = (),
    *,
    source: str = CODE,
    **environment: str,
) -> AsyncGenerator[Scene]:
    """The editor, with the file open."""
    root, home = folder / "项目 one", folder / "home"
    root.mkdir(parents=True, exist_ok=True)
    (root / "a.py").write_bytes(source.encode())
    async with ModelServer(Recording(tuple(script)), paced=False) as model:
        known = {
            "KIMI_BASE_URL": model.base_url,
            "KIMI_API_KEY": "sk-test-key-000",
            "KODE_LOCALE": "en",
            "KODE_HOME": str(home),
            **environment,
        }
        async with _running(editor, folder, root, known) as do:
            await do("open", "a.py")
            yield Scene(editor, do, model, root, home)


@asynccontextmanager
async def _running(
    editor: str, folder: Path, root: Path, environment: dict[str, str]
) -> AsyncGenerator[Do]:
    if editor == "emacs":
        async with emacs_driver.running(folder, root, environment) as emacs:
            yield emacs.do
        return
    build = neovim_driver.require_neovim(EDITORS[editor])
    scene = neovim_driver.running(build, folder / "nvim", root, environment, {}, INIT)
    async with scene as nvim:

        async def do(name: str, *arguments: Any) -> Any:
            return await nvim.lua(f"return Plain.{name}(...)", *arguments)

        yield do


@pytest.fixture(params=EDITORS)
def editor(request: pytest.FixtureRequest) -> str:
    """Each of them."""
    return request.param


async def test_questions_and_a_whole_chat(editor: str, tmp_path: Path) -> None:
    script = [
        answer(text("Of one.")),
        answer(text("It gives "), hold("more"), text("one. 好")),
        answer(text("Second.")),
        answer(text("Third.")),
    ]
    async with stock(editor, tmp_path, script) as scene:
        do = scene.do
        await do("run", "kode.ask", "what is this?", scene.lines(0, 2))
        await do("wait_text", ".md", "Of one.\n\n## You\n\n")
        assert "def one" in scene.asked()
        assert "def two" not in scene.asked()
        await do("act", "a.py", 0, 2, "Explain")
        await do("wait_text", ".md", "It gives")
        await do("insert", ".md", -1, "my note 记")
        scene.model.release("more")
        await do("wait_text", ".md", "It gives one. 好")
        assert "my note 记" in await do("text", ".md")
        for words in ("Second.", "Third."):
            await do("insert", ".md", -1, "\n## You\n\nAnd then?")
            await do("act", ".md", 0, 0, "kode: send")
            await do("wait_text", ".md", words)
        assert len(scene.model.chats) == 4


async def test_hunks_are_decided_one_by_one(editor: str, tmp_path: Path) -> None:
    source = CODE.replace("\n", "\r\n")
    async with stock(editor, tmp_path, PROPOSED, source=source) as scene:
        do = scene.do
        await do("run", "kode.ask", "make it right")
        await do("wait_hunks", "a.py", 2)
        await do("insert", "a.py", 0, "# mine")
        first, second = await do("wait_hunks", "a.py", 2, 2)
        assert (first, second) == (2, 6)
        await do("act", "a.py", second, second, "accept this edit")
        await do("wait_text", "a.py", "return 2  # 三")
        await do("act", "a.py", first, first, "reject this edit")
        await do("wait_hunks", "a.py", 0)
        assert "return 11" not in await do("text", "a.py")
        await do("act", "a.py", 0, 0, "kode: undo")
        await do("wait_text", "a.py", "return 3  # 三")
        assert await do("text", "a.py") == "# mine\n" + CODE
        assert (scene.root / "a.py").read_bytes() == source.encode()


async def test_a_turn_is_stopped_and_the_server_restarted(editor: str, tmp_path: Path) -> None:
    script = [answer(text("Long "), hold("never"), text("story")), *PROPOSED]
    async with stock(editor, tmp_path, script) as scene:
        do = scene.do
        await do("run", "kode.ask", "tell")
        await do("wait_text", ".md", "Long")
        await do("run", "kode.stop")
        await do("wait_text", ".md", "Stopped.")
        await do("restart")
        await do("open", "a.py")
        await do("run", "kode.ask", "again")
        await do("wait_hunks", "a.py", 2)
        await do("run", "kode.accept")
        await do("wait_text", "a.py", "return 11")
        await do("wait_text", "a.py", "return 2  # 三")


async def test_a_problem_is_fixed_and_a_function_tested(editor: str, tmp_path: Path) -> None:
    new = {"action": "create", "path": "test_a.py", "content": "def test_one():\n    assert 一\n"}
    script = [
        *PROPOSED,
        answer(tool_call("propose_file", new)),
        answer(text("Tested.")),
    ]
    async with stock(editor, tmp_path, script) as scene:
        do = scene.do
        if editor in ONE_SERVER:
            await do("run", "kode.verb", "fix", "two() is 3", scene.lines(5, 6))
        else:
            await do("complain", "a.py", 5, "two() is 3")
            await do("act", "a.py", 5, 5, "two() is 3")
        await do("wait_hunks", "a.py", 2)
        assert "two() is 3" in scene.asked()
        await do("run", "kode.accept", {"uri": (scene.root / "a.py").as_uri()})
        await do("wait_text", "a.py", "return 2  # 三")
        await do("act", "a.py", 0, 2, "Write tests")
        if editor in NO_NEW_FILES:
            await do("wait_message", "Tested.")
            assert "cannot create files" in scene.asked()
            return
        await do("wait_message", "test_a.py")
        assert not (scene.root / "test_a.py").exists()
        await do("run", "kode.accept")
        await do("wait_text", "test_a.py", "assert 一")


async def test_files_unsaved_closed_and_sensitive(editor: str, tmp_path: Path) -> None:
    flow = ".github/workflows/ci.yml"
    wanted = (
        ("a.py", "return 1", "return 9"),
        ("b.py", "= 二", "= 2"),
        (flow, "on: push", "on: pull"),
    )
    calls = [
        tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})
        for path, old, new in wanted
    ]
    script = [*(answer(one) for one in calls), answer(text("Done."))]
    write(tmp_path / "项目 one", {"b.py": "b = 二\n", flow: "on: push\n"})
    async with stock(editor, tmp_path, script) as scene:
        do = scene.do
        await do("insert", "a.py", 0, "unsaved = True")
        await do("answer", "Allow once")
        await do("run", "kode.ask", "change all three")
        await do("wait_hunks", "a.py", 1, 2)
        await do("open", flow)
        await do("wait_text", "ci.yml", "on: pull")
        await do("wait_message", "2 edits wait")
        await do("run", "kode.accept")
        await do("wait_text", "a.py", "return 9")
        await do("open", "b.py")
        await do("wait_text", "b.py", "b = 2\n")
        assert (scene.root / "a.py").read_text("utf-8") == CODE


async def test_what_is_wrong_is_said(editor: str, tmp_path: Path) -> None:
    async with stock(editor, tmp_path, KIMI_API_KEY="") as scene:
        await scene.do("run", "kode.ask", "hello")
        await scene.do("wait_message", "KIMI_API_KEY")
    down = "http://127.0.0.1:9/v1"
    async with stock(editor, tmp_path / "down", KIMI_BASE_URL=down) as scene:
        await scene.do("run", "kode.ask", "hello")
        await scene.do("wait_message", "127.0.0.1:9")


async def test_two_folders_and_trust(editor: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    script = [
        answer(tool_call("read_file", {"path": str(other / "far.py")})),
        answer(text("Read both.")),
    ]
    write(other, {"far.py": "far = '远'\n"})
    write(tmp_path / "项目 one", {"AGENTS.md": "Say 你好.\n"})
    async with stock(editor, tmp_path, script) as scene:
        await scene.do("add_folder", str(other))
        await scene.do("answer", "Trust")
        await scene.do("run", "kode.ask", "read both")
        await scene.do("wait_text", ".md", "Read both.")
        assert "Say 你好." in scene.asked()
        assert "far = '远'" in scene.asked()
