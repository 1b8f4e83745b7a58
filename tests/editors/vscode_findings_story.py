"""Findings of a code review in real VS Code: reviewed, fixed, dismissed, and reviewed again.

A scripted model answers on the loopback. What counts is what stands at the lines, and on the disk.
"""

from pathlib import Path
from typing import Any

from tests.editors.vscode_steps import answer_box, save, type_at_top, waiting
from tests.editors.vscode_world import Window, vscode
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import (
    AFTER,
    FAULT,
    INFO,
    NEW,
    OLD,
    changed_project,
    reviewing,
    reviews,
)


async def review(window: Window, said: str) -> None:
    """Ask for it with an empty box, which means all that is not committed."""
    await window.command("kode: Review Changes")
    box = window.page.locator(".quick-input-widget input.input")
    await window.page.locator(".quick-input-title", has_text="What to review").wait_for()
    await box.press("Enter")
    await window.chat.get_by_text(said).wait_for()


def row(window: Window, title: str) -> Any:
    """A finding in the list of the side bar."""
    tree = window.page.locator(".pane", has=window.page.get_by_label("Findings Section"))
    return tree.locator(".monaco-list-row[aria-level='2']", has_text=title)


async def test_the_whole_loop_of_a_review(tmp_path: Path) -> None:
    """A comment's button fixes one, the list dismisses one; both stay decided at the next."""
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": OLD, "new": NEW}]})
    main = [
        *(reviews()[0], answer(text("Reviewed once."))),
        *(answer(tool_call("read_file", {"path": "app.py"})), answer(edit), answer(text("Fixed."))),
        *(reviews()[0], answer(text("Reviewed twice."))),
    ]
    found = [[FAULT, INFO], [INFO]]
    file = changed_project(tmp_path / "project") / "app.py"
    async with (
        AnsweringModel(reviewing(main, lambda _: found.pop(0))) as model,
        vscode(tmp_path, model, files={}) as window,
    ):
        page = window.page
        await window.open_file("app.py")
        await review(window, "Reviewed once.")
        await page.locator(".squiggly-error").first.wait_for()
        await page.locator(".squiggly-info").first.wait_for()
        await page.get_by_label("Findings Section").click()
        await row(window, "The last item is not counted").wait_for()
        await page.screenshot(path=str(tmp_path / "findings.png"))

        await row(window, "No type").hover()
        await row(window, "No type").get_by_role("button", name="Dismiss").click()
        await answer_box(window, "types come later")
        await page.locator(".squiggly-info").wait_for(state="detached")
        await row(window, "No type").get_by_text("dismissed").wait_for()

        await type_at_top(window, "# 茶 tea\n")
        await row(window, "The last item is not counted").get_by_text("4 · off").wait_for()
        await page.locator(".comments-panel .monaco-list-row", has_text="[Ln 4]").click()
        comment = page.locator(".review-widget", has_text="The last item is not counted")
        await comment.wait_for()
        await page.screenshot(path=str(tmp_path / "comment.png"))
        await comment.get_by_role("button", name="Fix").first.click()
        await window.chat.get_by_text("Fixed.").wait_for()
        await waiting(window, 1)
        await window.chat.get_by_role("button", name="Accept all").click()
        await page.locator(".squiggly-error").wait_for(state="detached")
        await comment.wait_for(state="detached")
        await window.editor().click()
        await save(window, file)
        assert file.read_text("utf-8") == "# 茶 tea\n" + AFTER.replace(OLD, NEW)

        await review(window, "Reviewed twice.")
        await row(window, "The last item is not counted").get_by_text("fixed").wait_for()
        await row(window, "No type").get_by_text("dismissed").wait_for()
        assert await page.locator(".squiggly-error, .squiggly-info").count() == 0
        await page.screenshot(path=str(tmp_path / "again.png"))
        asked = [str(chat.body["messages"]) for chat in model.chats]
        reported = [one for one in asked if "The user dismissed these before" in one]
        assert reported
        assert all("types come later" in one for one in reported)
