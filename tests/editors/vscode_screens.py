"""The pictures of the extension's documentation: `python3 -m tests.editors.vscode_screens FOLDER`.

They show what a scripted model says in real VS Code, in a dark and in a light scheme. Look at them,
and make them small, before they go to `editors/vscode/media/docs`.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.editors.vscode_steps import waiting
from tests.editors.vscode_world import Window, vscode
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, thinking, tool_call

SCHEMES = {"dark": "Default Dark Modern", "light": "Default Light Modern"}
FILE = "greetings.py"
TEXT = (
    "# 茶铺 🍵\n\n\ndef greet(name):\n    return 'hello ' + name\n\n\n"
    "def leave(name):\n    return 'bye ' + name\n"
)
EDITS = [
    {"old": "    return 'hello ' + name", "new": '    return f"你好 {name} 👋🏽"'},
    {"old": "    return 'bye ' + name", "new": '    return f"再见 {name}"'},
]
SAID = (
    "Both functions now use **f-strings**, as you asked.\n\n"
    '```python\ndef greet(name: str) -> str:\n    return f"你好 {name} 👋🏽"\n```\n\n'
    "Look at the two edits and decide:\n\n1. `greet` says it in Chinese\n2. `leave` does, too\n"
)


def respond(body: dict[str, Any]) -> RecordedResponse:
    """Read, propose, and say that it is done."""
    rounds = sum(message["role"] == "tool" for message in body["messages"])
    if rounds == 0:
        reading = tool_call("read_file", {"path": FILE})
        return answer(thinking("Where are they?"), text("Let me read the file."), reading)
    if rounds == 1:
        proposed = tool_call("propose_edit", {"path": FILE, "edits": EDITS})
        return answer(text("Both can use f-strings 🍵"), proposed)
    return answer(text(SAID))


async def show(window: Window, scheme: str, folder: Path) -> None:
    """A conversation, its edits, its fork, and the tour; a picture of each."""

    async def picture(name: str) -> None:
        await window.page.screenshot(path=str(folder / f"{name}-{scheme}.png"))

    await window.open_file(FILE)
    await window.command("kode: Open the Chat")
    await window.prompt("Use f-strings in the greetings, please. 谢谢 🙏")
    await window.chat.get_by_text("Look at the two edits").wait_for()
    await waiting(window, 2)
    await picture("chat")
    await window.command("kode: Next Edit")
    await window.page.locator(".codelens-decoration a", has_text="Edit 1 of 2").wait_for()
    await picture("review")
    await window.command("kode: Review All Edits")
    await window.page.locator(".multiDiffEditor .codelens-decoration a").first.wait_for()
    await picture("comparison")
    await window.chat.get_by_role("button", name="Accept all").click()
    await window.chat.locator(".review").wait_for(state="hidden")
    row = window.chat.locator(".row.assistant").last
    await row.hover()
    await row.get_by_role("button", name="Fork").click()
    await window.page.get_by_label("Sessions Section").click()
    tree = window.page.locator(".pane", has=window.page.get_by_label("Sessions Section"))
    await tree.locator(".monaco-list-row[aria-level='2']").wait_for()
    await picture("sessions")
    await window.command("kode: Take the Tour")
    await window.page.get_by_text("See it work, without a key").first.click()
    await window.page.get_by_text("Play the demo").first.wait_for()
    await picture("walkthrough")


async def chinese(folder: Path) -> None:
    """The chat and its edits in a small window, in Chinese; commands have English titles, too."""
    with tempfile.TemporaryDirectory() as own:
        files, reported = {FILE: TEXT.encode()}, {"workbench.colorTheme": SCHEMES["light"]}
        async with (
            AnsweringModel(respond) as model,
            vscode(
                Path(own), model, files=files, settings=reported, size=(1024, 700), chinese=True
            ) as window,
        ):
            await window.open_file(FILE)
            await window.command("kode: Open the Chat")
            await window.prompt("请在问候语中使用 f-string。")
            await window.chat.locator(".review").wait_for()
            await window.chat.get_by_text("Look at the two edits").wait_for()
            await window.page.screenshot(path=str(folder / "chat-chinese.png"))
            await window.command("kode: Review All Edits")
            await window.page.locator(".multiDiffEditor .codelens-decoration a").first.wait_for()
            await window.page.screenshot(path=str(folder / "review-chinese.png"))


async def main(folder: Path) -> None:
    await chinese(folder)
    for scheme, theme in SCHEMES.items():
        with tempfile.TemporaryDirectory() as own:
            files, reported = {FILE: TEXT.encode()}, {"workbench.colorTheme": theme}
            async with (
                AnsweringModel(respond) as model,
                vscode(
                    Path(own), model, files=files, settings=reported, size=(1180, 760)
                ) as window,
            ):
                await show(window, scheme, folder)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
