"""What a user does in VS Code, and what they wait for, in more than one story."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from tests.editors.vscode_world import WAIT_MS, Window
from tests.support.answering_model import AnsweringModel


async def type_at_top(window: Window, typed: str) -> None:
    await window.page.locator(
        ".editor-group-container.active .monaco-editor .view-lines"
    ).first.click()
    await window.page.keyboard.press("Control+Home")
    await window.page.keyboard.insert_text(typed)


async def waiting(window: Window, hunks: int) -> None:
    """Wait until the chat counts so many pending hunks."""
    said = "1 edit waits for you" if hunks == 1 else f"{hunks} edits in 1 file wait for you"
    await window.chat.locator(".review", has_text=said).wait_for()


async def click_lens(window: Window, title: str, *, exact: bool = False) -> None:
    wanted = re.compile(rf"^\W*{title}$") if exact else title
    await window.page.locator(".codelens-decoration a", has_text=wanted).first.click()


async def at_line(window: Window, line: int) -> None:
    """Wait until the cursor is there: what moves it closes a box that is opened before."""
    position = window.page.locator('[id="status.editor.selection"]')
    await position.get_by_text(f"Ln {line},").wait_for()


async def answer_box(window: Window, said: str) -> None:
    await window.page.locator(".quick-input-widget .quick-input-message").wait_for()
    box = window.page.locator(".quick-input-widget input.input")
    await box.fill(said)
    await box.press("Enter")


async def edit_prompt(window: Window, old: str, new: str) -> None:
    row = window.chat.locator(".row.user", has_text=old)
    await row.hover()
    await row.get_by_role("button", name="Edit").click()
    await window.prompt(new)


async def buffer_has(window: Window, wanted: str) -> None:
    await window.page.wait_for_function(
        f"(wanted) => ({VISIBLE_TEXT})().includes(wanted)", arg=wanted
    )


async def buffer_lacks(window: Window, unwanted: str) -> None:
    await window.page.wait_for_function(
        f"(unwanted) => !({VISIBLE_TEXT})().includes(unwanted)", arg=unwanted
    )


VISIBLE_TEXT = """() => [...document.querySelectorAll('.editor-instance .view-line')]
  .map((line) => line.textContent.replaceAll('\\u00a0', ' ')).join('\\n')"""


async def save(window: Window, file: Path) -> None:
    await window.page.keyboard.press("Control+S")
    await window.page.locator(".tabs-container .tab.active.dirty").wait_for(state="detached")


async def until(condition: Callable[[], bool]) -> None:
    """For what no page tells."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while not condition():  # noqa: ASYNC110  (a file and a list, nobody sets an event)
            await asyncio.sleep(0.05)


def all_said(model: AnsweringModel) -> list[str]:
    return [
        str(message.get("content"))
        for request in model.chats
        for message in request.body["messages"]
    ]


def sidecar_pids(window: Window) -> list[int]:
    """Of all that were started, oldest first."""
    return [int(pid) for pid in re.findall(r"protocol [\d.]+, pid (\d+)", window.log())]
