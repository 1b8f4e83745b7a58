"""The review in real VS Code: one native comparison, keys in the buffer, the mode `keep`.

A scripted model answers on the loopback. What counts is the buffer and the disk.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.editors.vscode_steps import answer_box, at_line, buffer_has, click_lens, until, waiting
from tests.editors.vscode_world import Window, playwright, vscode
from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, text, tool_call

LINES = [f"line {number} 行\n" for number in range(40)]
FILES = {"a/菜单.py": "".join(LINES), "b.py": "".join(LINES)}
NEW_FILE = "def tea():\n    return '茶'\n"
FIRST, LAST = (
    {"old": LINES[3], "new": "three 三\nand more\n"},
    {"old": LINES[30], "new": "thirty\n"},
)
ALL = (
    ("propose_edit", {"path": "a/菜单.py", "edits": [FIRST, LAST]}),
    ("propose_edit", {"path": "b.py", "edits": [FIRST]}),
    ("propose_file", {"action": "create", "path": "c.py", "content": NEW_FILE}),
)


def propose(*calls: tuple[str, dict[str, Any]]) -> Any:
    def respond(body: dict[str, Any]) -> RecordedResponse:
        if any(message["role"] == "tool" for message in body["messages"]):
            return answer(text("Done."))
        return answer(*(tool_call(name, arguments) for name, arguments in calls))

    return respond


def files() -> dict[str, bytes]:
    return {name: content.encode() for name, content in FILES.items()}


async def ask(window: Window, hunks: str) -> None:
    await window.command("kode: Open the Chat")
    await window.prompt("Change them.")
    await window.chat.get_by_text("Done.").wait_for()
    await window.chat.locator(".review", has_text=hunks).wait_for()


GHOST_HAS = """(wanted) => [...document.querySelectorAll('.view-line span')]
  .some((span) => getComputedStyle(span, '::after').content.includes(wanted))"""


def lenses(window: Window, title: str) -> Any:
    """Those of the comparison."""
    return window.page.locator(".multiDiffEditor .codelens-decoration a", has_text=title)


async def click_first(window: Window, title: str) -> None:
    """Of those on the screen: VS Code puts parts that it will need again far above it."""
    for _ in range(20):  # one that is drawn anew meanwhile is not hit
        lens = await window.page.wait_for_function(FIRST_LENS, arg=title)
        with suppress(playwright().Error):
            return await lens.as_element().click(timeout=3000)
    raise AssertionError(f"the lens {title} cannot be hit")


FIRST_LENS = """(title) => [...document.querySelectorAll('.multiDiffEditor .codelens-decoration a')]
  .find((lens) => lens.textContent.includes(title) && lens.getBoundingClientRect().top > 0)"""


async def decided(window: Window, left: int) -> None:
    """Wait until the comparison shows so many edits: a click while it changes hits nothing."""
    await window.page.wait_for_function(LENSES, arg=left)


LENSES = """(wanted) => [...document.querySelectorAll('.multiDiffEditor .codelens-decoration a')]
  .filter((lens) => lens.textContent.includes('Accept') && lens.getBoundingClientRect().top > 0)
  .length === wanted"""


async def test_all_edits_stand_in_one_comparison(tmp_path: Path) -> None:
    """Decided there, it follows, and closes itself; an edit of one's own has its surroundings."""
    async with (
        AnsweringModel(propose(*ALL)) as model,
        vscode(tmp_path, model, files=files(), size=(1400, 1400)) as window,
    ):
        await ask(window, "4 edits in 3 files")
        await window.chat.locator(".review").get_by_role("button", name="Review").click()
        tab = window.page.locator(".tabs-container .tab", has_text="Edits that wait for you")
        await tab.wait_for()
        await lenses(window, "Accept").nth(3).wait_for()
        await window.page.screenshot(path=str(tmp_path / "review.png"))

        await click_first(window, "Accept")
        await window.chat.locator(".review", has_text="3 edits in 3 files").wait_for()
        await until(lambda: "three 三" in (window.project / "a/菜单.py").read_text("utf-8"))
        await decided(window, 3)
        await click_first(window, "Edit")
        own = window.page.locator(".codelens-decoration a", has_text="Accept with this text")
        await own.wait_for()
        await buffer_has(window, "line 29 行")
        await window.page.keyboard.insert_text("dreißig")
        await own.click()
        await window.chat.locator(".review", has_text="2 edits in 2 files").wait_for()
        await decided(window, 2)
        await until(lambda: "dreißig\n" in (window.project / "a/菜单.py").read_text("utf-8"))

        await click_first(window, "Reject")
        await waiting(window, 1)
        await decided(window, 1)
        await click_first(window, "Accept")
        await window.chat.locator(".review").wait_for(state="hidden")
        await tab.wait_for(state="detached")
        await until(lambda: (window.project / "c.py").exists())
        assert (window.project / "c.py").read_text("utf-8") == NEW_FILE
        assert (window.project / "b.py").read_text("utf-8") == FILES["b.py"]


async def test_keys_decide_in_the_buffer(tmp_path: Path) -> None:
    """Shown at the first edit; the new line stands green behind the old one."""
    async with (
        AnsweringModel(propose(*ALL[:2])) as model,
        vscode(tmp_path, model, files=files()) as window,
    ):
        press = window.page.keyboard.press
        await window.open_file("菜单.py")
        await ask(window, "3 edits in 2 files")
        await press("Alt+F5")
        await window.page.locator(".codelens-decoration a", has_text="Alt+Y").wait_for()
        await at_line(window, 4)
        await window.page.wait_for_function(GHOST_HAS, arg="three\u00a0三\u00a0\u00a0+1\u00a0lines")
        await window.page.screenshot(path=str(tmp_path / "buffer.png"))
        await press("Alt+y")
        await window.chat.locator(".review", has_text="2 edits in 2 files").wait_for()
        await press("Alt+F5")
        await at_line(window, 32)
        await press("Alt+n")
        await waiting(window, 1)
        await press("Alt+F5")
        await window.tab("b.py").wait_for()
        await at_line(window, 4)
        await window.command("kode: Reject with a Comment")
        await answer_box(window, "不要")
        await window.chat.locator(".review").wait_for(state="hidden")
        changed = FILES["a/菜单.py"].replace(LINES[3], FIRST["new"])
        await until(lambda: (window.project / "a/菜单.py").read_text("utf-8") == changed)
        await press("Shift+Alt+u")
        await until(lambda: (window.project / "a/菜单.py").read_text("utf-8") == FILES["a/菜单.py"])


async def test_what_is_applied_at_once_is_kept_or_undone(tmp_path: Path) -> None:
    """The mode `keep`: on disk before anybody is asked, marked in the gutter, undone by a lens."""
    settings = {"kode.mode": "keep", "editor.minimap.enabled": False}
    async with (
        AnsweringModel(propose(*ALL[:2])) as model,
        vscode(tmp_path, model, files=files(), settings=settings) as window,
    ):
        file = window.project / "a/菜单.py"
        await window.open_file("菜单.py")
        await ask(window, "3 edits in 2 files")
        both = FILES["a/菜单.py"].replace(LINES[3], FIRST["new"]).replace(LINES[30], LAST["new"])
        await until(lambda: file.read_text("utf-8") == both)
        await window.chat.get_by_role("button", name="Keep all").wait_for()
        await window.page.locator(".codelens-decoration a", has_text="Keep").first.wait_for()
        gutter = window.page.locator(".editor-instance .dirty-diff-glyph")
        await gutter.first.wait_for()
        await window.page.screenshot(path=str(tmp_path / "keep.png"))
        await window.editor().click()
        await window.page.keyboard.press("Alt+F3")
        peek = window.page.locator(".peekview-widget")
        await peek.wait_for()
        await window.page.screenshot(path=str(tmp_path / "peek.png"))
        await window.page.keyboard.press("Escape")
        await peek.wait_for(state="detached")
        await click_lens(window, "Undo")
        one = FILES["a/菜单.py"].replace(LINES[30], LAST["new"])
        await until(lambda: file.read_text("utf-8") == one)
        await window.chat.locator(".review", has_text="2 edits in 2 files").wait_for()
        await window.chat.get_by_role("button", name="Keep all").click()
        await window.chat.locator(".review").wait_for(state="hidden")
        await gutter.first.wait_for(state="detached")
        assert file.read_text("utf-8") == one


async def test_five_hundred_edits_in_forty_files(tmp_path: Path) -> None:
    """The review opens, and a decision is seen, without a pause that a user would feel."""
    many = {f"f{number:02}.py": "".join(LINES) for number in range(40)}
    places = range(0, 39, 3)
    edits = [{"old": LINES[at], "new": f"changed {at}\n"} for at in places]
    calls = [("propose_edit", {"path": name, "edits": edits}) for name in many]
    async with (
        AnsweringModel(propose(*calls)) as model,
        vscode(
            tmp_path, model, files={name: content.encode() for name, content in many.items()}
        ) as window,
    ):
        await ask(window, "520 edits in 40 files")
        began = time.monotonic()
        await window.command("kode: Review All Edits")
        await lenses(window, "Accept").first.wait_for()
        opened = time.monotonic() - began
        began = time.monotonic()
        await click_first(window, "Accept")
        await window.chat.locator(".review", has_text="519 edits").wait_for()
        decided = time.monotonic() - began
        sys.stdout.write(f"\nopens in {opened:.2f} s, decides in {decided:.2f} s\n")
