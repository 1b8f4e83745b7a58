"""A day's job in real VS Code: a bug over three files, failing tests, the fix, the commit.

The commands are real: Python runs the tests, Git makes the commit. What the user does is counted.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.editors.vscode_steps import until
from tests.editors.vscode_world import Window, vscode
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, tool_call

FILES = {
    "price.py": "def price(cents):\n    return cents / 10\n",
    "total.py": (
        "from price import price\n\n\ndef total(items):\n    return price(sum(items[1:]))\n"
    ),
    "receipt.py": (
        "from total import total\n\n\ndef receipt(items):\n    return f'总计 {total(items)}'\n"
    ),
    "test_receipt.py": (
        "import unittest\n\nfrom receipt import receipt\n\n\n"
        "class ReceiptTest(unittest.TestCase):\n    def test_receipt(self):\n"
        "        self.assertEqual(receipt([150, 250]), '总计：4.00')\n"
    ),
}
WRONG = ("    return f'总计 {total(items)}'", "    return f'总计：{total(items):.1f}'")
RIGHT = (WRONG[1], "    return f'总计：{total(items):.2f}'")
TESTS = {"argv": ["python3", "-m", "unittest"]}
COMMIT = {"argv": ["git", "commit", "-qam", "修复总计 Fix the total"]}


def edit(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


STEPS = [
    (
        text("Three places are wrong."),
        edit("price.py", "    return cents / 10", "    return cents / 100"),
        edit("total.py", "    return price(sum(items[1:]))", "    return price(sum(items))"),
        edit("receipt.py", *WRONG),
    ),
    (text("Now the tests."), tool_call("run_command", TESTS)),
    (text("Two digits, not one: see receipt.py:5."), edit("receipt.py", *RIGHT)),
    (text("Again."), tool_call("run_command", TESTS)),
    (text("They pass."), tool_call("run_command", COMMIT)),
    (text("The total is right, and committed. 完成"),),
]


def respond(body: dict[str, Any]) -> RecordedResponse:
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    return answer(*STEPS[len(said)])


class Hand:
    """Clicks as a user does, and counts."""

    def __init__(self, window: Window, pictures: Path) -> None:
        self.window = window
        self.pictures = pictures
        self.count = 0

    async def click(self, name: str) -> None:
        self.count += 1
        await self.window.chat.get_by_role("button", name=name, exact=True).click()

    async def look(self, name: str) -> None:
        await self.window.page.screenshot(path=str(self.pictures / f"day-{name}.png"))


LOOKS = {
    "light": {"workbench.colorTheme": "Default Light Modern"},
    "dark": {"workbench.colorTheme": "Default Dark Modern"},
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_bug_over_three_files(tmp_path: Path, look: str) -> None:
    """A prompt and three clicks; nothing was set up before but the mode."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "茶铺")
    git(project, "config", "user.email", "tea@example.org")
    for name, content in FILES.items():
        (project / name).write_text(content, encoding="utf-8")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Begin")
    settings = {"kode.mode": "keep", **LOOKS[look]}
    async with (
        AnsweringModel(respond) as model,
        vscode(
            tmp_path,
            model,
            files={name: content.encode() for name, content in FILES.items()},
            settings=settings,
            size=(1024, 700) if look == "dark" else (1400, 900),
        ) as window,
    ):
        hand = Hand(window, tmp_path)
        await window.open_file("receipt.py")
        await window.command("kode: Open the Chat")
        await window.prompt("The total on the receipt is wrong. 修好它, run the tests and commit.")
        await window.chat.locator(".question", has_text="unittest").wait_for()
        await hand.look("question")
        await hand.click("Allow in this session")
        asked = window.chat.locator(".question", has_text="git commit")
        await asked.wait_for()
        outputs = window.chat.locator(".output:visible")
        assert "AssertionError" in await outputs.first.inner_text()
        assert "OK" in await outputs.nth(1).inner_text()
        await hand.look("tests")
        await hand.click("Allow once")
        await window.chat.get_by_text("The total is right").wait_for()
        await hand.look("done")
        await hand.click("Keep all")
        await window.chat.locator(".review").wait_for(state="hidden")
        await window.chat.get_by_role("link", name="receipt.py:5").click()
        await window.page.locator('[id="status.editor.selection"]').get_by_text("Ln 5,").wait_for()
        await hand.look("kept")
        assert git(project, "log", "-1", "--format=%s") == "修复总计 Fix the total\n"
        assert git(project, "status", "--porcelain", "-uno") == ""
        await until(lambda: ":.2f" in (project / "receipt.py").read_text("utf-8"))
        sys.stdout.write(f"\na prompt and {hand.count} clicks\n")
        assert hand.count <= 3


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout
