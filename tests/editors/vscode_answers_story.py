"""From an answer into the code, and from the code to a prompt, in real VS Code."""

from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.editors.vscode_steps import at_line, buffer_has
from tests.editors.vscode_world import vscode
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text

FILES = {
    "深/tea.py": "".join(f"line = {number}\n" for number in range(40)).encode(),
    "a.py": b"x = 1\ny = 2\n",
}
SAID = "See `tea.py:30` and 深/tea.py:7.\n\n```python\nz = '茶'\n```\n"


async def test_an_answer_leads_into_the_code_and_back(tmp_path: Path) -> None:
    """Places are links, code is inserted or applied; verbs stand where the cursor is."""

    asked: list[str] = []

    def respond(body: dict[str, Any]) -> RecordedResponse:
        asked.append(str(body["messages"]))
        return answer(text(f"Answer {len(asked)}." if len(asked) > 1 else SAID))

    async with (
        AnsweringModel(respond) as model,
        vscode(tmp_path, model, files=FILES) as window,
    ):
        await window.open_file("a.py")
        await window.command("kode: Open the Chat")
        await window.prompt("Where is the tea?")
        await window.chat.get_by_role("link", name="深/tea.py:7").click()
        await window.tab("tea.py").wait_for()
        await at_line(window, 7)
        await window.chat.get_by_role("link", name="tea.py:30", exact=True).click()
        await at_line(window, 30)

        code = window.chat.locator("pre", has_text="z = '茶'")
        await code.hover()
        await code.get_by_role("button", name="Insert").click()
        await buffer_has(window, "z = '茶'")
        await code.hover()
        await code.get_by_role("button", name="Apply as an edit").click()
        await window.chat.get_by_text("Answer 2.").wait_for()
        assert "Apply this code" in asked[-1]

        menu = window.page.locator(".monaco-menu")
        await window.editor().click(button="right")
        await menu.get_by_text("kode", exact=True).hover()
        await window.page.screenshot(path=str(tmp_path / "menu.png"))
        await menu.get_by_text("Explain", exact=True).hover()
        await window.page.keyboard.press("Enter")  # a menu that has just opened ignores clicks
        await window.chat.get_by_text("Answer 3.").wait_for()
        await window.chat.locator(".row.user:not(.folded)", has_text="/explain").wait_for()

        await window.editor().click()
        await window.page.keyboard.press("Control+a")
        await window.command("Refactor...")
        actions = window.page.locator(".action-widget")
        await actions.locator(".focused", has_text="Refactor with kode").wait_for()
        await window.page.keyboard.press("Enter")
        await window.chat.get_by_text("Answer 4.").wait_for()
        await window.chat.locator(".row.user:not(.folded)", has_text="/refactor").wait_for()
