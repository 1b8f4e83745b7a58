"""Choices that hold: `a` for a turn, the mode by a key and for the next chat; `e`; the plan."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_program import CTRL_D, IDLE, at_terminal
from tests.support.model_script import answer, hold, text, tool_call

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
ASKED = "accept? [y/n/a/r/e/s/l/q/?]"
SHIFT_TAB = "\x1b[Z"
TEXT = "one\ntwo\nthree\nfour\n"


def edit(old: str, new: str, path: str = "a.txt") -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


def editor(folder: Path, script: str) -> str:
    """An editor of the user: a shell script that gets the file's name."""
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text(TEXT, "utf-8")
    return tmp_path / "shop"


async def test_all_holds_for_the_turn_and_for_no_other(project: Path) -> None:
    said = [answer(edit("one", "1")), answer(edit("two", "2")), answer(text("Done."))]
    said += [answer(edit("three", "3")), answer(text("Done."))]
    async with at_terminal(project, said, "--mode", "ask") as screen:
        screen.type("edit it\n")
        await screen.shows("- one", ASKED)
        screen.type("a\n")
        await screen.shows("all other edits of this turn are accepted", "turn ended", IDLE)
        assert (project / "a.txt").read_text("utf-8") == "1\n2\nthree\nfour\n"
        screen.type("more\n")
        await screen.shows("- three", ASKED)
        screen.type("n\n")
        await screen.counts("turn ended", 2)
        assert (project / "a.txt").read_text("utf-8") == "1\n2\nthree\nfour\n"


async def test_a_key_changes_the_mode_and_the_next_chat_here_begins_in_it(project: Path) -> None:
    async with at_terminal(project, [answer(edit("one", "1")), answer(text("Done."))]) as screen:
        for mode in ("ask", "auto"):
            screen.type(SHIFT_TAB)
            await screen.shows(f"the next turns have the mode {mode}", f"ide-chat · {mode}")
        screen.type("edit it\n")
        await screen.counts("turn ended", 1)
        assert (project / "a.txt").read_text("utf-8").startswith("1\n")
        screen.type(CTRL_D)
        assert await screen.left() == 0
    async with at_terminal(project, []) as screen:
        await screen.shows("ide-chat · auto · ")
    async with at_terminal(project, [], "--mode", "plan") as screen:
        await screen.shows("ide-chat · plan · ")
    async with at_terminal(project.parent, []) as screen:
        await screen.shows("ide-chat · review · ")


async def test_the_editor_shows_old_and_new_and_no_change_asks_again(project: Path) -> None:
    folder = project.parent
    script = (
        'cp "$1" "$0.seen"; if [ -e "$0.done" ]; then sed -i s/^TWO/zwei/ "$1"; fi; : > "$0.done"'
    )
    said = [answer(edit("two", "TWO")), answer(text("Done."))]
    async with at_terminal(project, said, VISUAL=editor(folder, script)) as screen:
        screen.type("edit it\n")
        await screen.shows(ASKED)
        screen.type("e\n")
        await screen.shows("nothing was changed in the editor", ASKED)
        assert (project / "a.txt").read_text("utf-8") == TEXT
        seen = (folder / "editor.sh.seen").read_text("utf-8").split("\n")
        assert seen[0] == "TWO"
        assert "# - two" in seen
        screen.type("e\n")
        await screen.counts("turn ended", 1)
        await screen.shows("applied: 1", IDLE)
        assert (project / "a.txt").read_text("utf-8") == TEXT.replace("two", "zwei")


async def test_a_deletion_is_no_empty_page_and_can_be_undone_in_the_editor(project: Path) -> None:
    script = 'cp "$1" "$0.seen"; { echo zwei; cat "$0.seen"; } > "$1"'
    said = [answer(edit("two\n", "")), answer(text("Done."))]
    async with at_terminal(project, said, VISUAL=editor(project.parent, script)) as screen:
        screen.type("edit it\n")
        await screen.shows(ASKED)
        screen.type("e\n")
        await screen.shows("applied: 1", IDLE)
        assert "# - two" in (project.parent / "editor.sh.seen").read_text("utf-8")
        assert (project / "a.txt").read_text("utf-8").split() == ["one", "zwei", "three", "four"]


async def test_the_plan_is_a_list_that_ticks(project: Path) -> None:
    steps = [["in_progress", "pending"], ["done", "in_progress"]]
    calls = [
        tool_call(
            "update_plan",
            {"items": [{"text": f"step {n} 茶", "state": s} for n, s in enumerate(step)]},
        )
        for step in steps
    ]
    said = [answer(calls[0]), answer(calls[1]), answer(text("So"), hold("here"), text(" it is."))]
    async with at_terminal(project, said) as screen:
        screen.type("plan it\n")
        await screen.shows("☑ step 0", "▸ step 1")
        screen.model.release("here")
        await screen.shows("turn ended", "☑ step 0", IDLE)
        assert screen.display.count("☑ step 0") == 1
