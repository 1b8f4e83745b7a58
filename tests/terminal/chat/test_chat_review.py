"""Proposed edits at a terminal that draws: decided, commented, edited, taken back another day."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_program import CTRL_C, CTRL_D, at_terminal
from tests.support.model_script import answer, text, tool_call

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's"),
]
TEXT = "one\r\ntwo 茶铺 x\r\nthree\r\nfour\r\nfive\r\nsix\r\n"
ASKED = "accept? [y/n/a/r/e/s/l/q/?]"


def propose(path: str, *edits: tuple[str, str]) -> Any:
    return tool_call(
        "propose_edit", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}
    )


THREE = propose("a.txt", ("two 茶铺 x", "two 茶馆 x"), ("four", "4"), ("six", "6"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    return tmp_path


async def test_words_are_marked_and_each_key_does_its_work(project: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nprintf 'vier\\n' > \"$1\"\n")
    editor.chmod(0o755)
    responses = [answer(THREE), answer(text("Done.")), answer(text("I see."))]
    async with at_terminal(project, responses, VISUAL=str(editor)) as screen:
        screen.type("edit it\n")
        await screen.shows("hunk 1 of 3", "+ two 茶馆 x", ASKED)
        where = next(y for y, line in enumerate(screen.emulator.display) if "- two 茶铺" in line)
        row = screen.emulator.buffer[where]
        marked = "".join(row[x].data for x in range(100) if row[x].reverse)
        assert marked == "铺"  # not the line, and not the shared 茶
        assert row[12].fg == "red"
        screen.type("l\n")
        await screen.shows("  3  a.txt", ASKED)
        screen.type("y fine, 茶馆 it is\n")
        await screen.shows("hunk 2 of 3", ASKED)
        screen.type("e shorter\n")  # the user's editor makes another text of it
        await screen.shows("hunk 3 of 3", ASKED)
        screen.type("s\n")
        await screen.until("1 hunk(s) wait: /review")
        changed = TEXT.replace("茶铺", "茶馆").replace("four", "vier")
        assert (project / "a.txt").read_bytes() == changed.encode()
        await screen.idle()
        screen.type("/review\n")
        await screen.shows("hunk 1 of 1", ASKED)
        screen.type("n keep the six\n")
        await screen.until("rejected: 1")
        await screen.idle()
        screen.type("well?\n")
        await screen.until("I see.")
        reported = str(screen.model.chats[-1].body["messages"])
        for comment in ("fine, 茶馆 it is", "vier", "keep the six"):
            assert comment in reported


async def test_an_editor_that_fails_accepts_nothing(project: Path) -> None:
    async with at_terminal(
        project, [answer(THREE), answer(text("Done."))], VISUAL="false"
    ) as screen:
        screen.type("edit it\n")
        await screen.shows("hunk 1 of 3", ASKED)
        screen.type("e\n")
        await screen.until("no editor could be used")
        screen.type("y\n")
        await screen.shows("hunk 2 of 3", ASKED)
        screen.type("e and a comment\n")
        await screen.until("no editor could be used")
        screen.type("r\n")
        await screen.until("applied: 1 · rejected: 2")
        assert (project / "a.txt").read_bytes() == TEXT.replace("茶铺", "茶馆").encode()


async def test_comments_and_undo_live_through_a_restart(project: Path) -> None:
    first = [answer(THREE), answer(text("Done."))]
    async with at_terminal(project, first) as screen:
        screen.type("edit it\n")
        await screen.shows("hunk 1 of 3", ASKED)
        screen.type("y\n")
        await screen.shows("hunk 2 of 3", ASKED)
        screen.type("n four stays\n")
        await screen.shows("hunk 3 of 3", ASKED)
        screen.type("y six was too long\n")
        await screen.until("applied: 2 · rejected: 1")
        await screen.idle()
        screen.type("/session\n")
        await screen.shows("records:")
        (found,) = re.findall(r"session (\S+) ·", screen.display)
        await screen.idle()
        screen.type(CTRL_D)
        assert await screen.left() == 0
    changed = TEXT.replace("茶铺", "茶馆").replace("six", "6")
    assert (project / "a.txt").read_bytes() == changed.encode()
    async with at_terminal(project, [answer(text("I see."))]) as screen:
        screen.type(f"/session {found}\n")
        await screen.shows("1  edit it")
        await screen.idle()
        screen.type("go on\n")
        await screen.until("I see.")
        reported = str(screen.model.chats[0].body["messages"])
        assert "four stays" in reported
        assert "six was too long" in reported
        await screen.idle()
        screen.type("/undo\n")
        await screen.until("taken back: 2 hunk(s)")
        assert (project / "a.txt").read_bytes() == TEXT.encode()
        await screen.idle()
        screen.type("/redo\n")
        await screen.until("put back: 2 hunk(s)")
        assert (project / "a.txt").read_bytes() == changed.encode()


async def test_a_sensitive_edit_shows_what_a_yes_is_for(project: Path) -> None:
    edit = propose(".vscode/tasks.json", ("[]", '[{"command": "rm"}]'))
    async with at_terminal(project, [answer(edit), answer(text("Well."))]) as screen:
        screen.type("edit it\n")
        await screen.shows('+{"tasks": [{"command": "rm"}]}', "anything else = no:")
        screen.type("n\n")
        await screen.until("Well.")
        assert (project / ".vscode" / "tasks.json").read_bytes() == b'{"tasks": []}\n'


async def test_auto_shows_what_it_applied_and_a_new_file_as_it_is(project: Path) -> None:
    new = tool_call("propose_file", {"action": "create", "path": "new.py", "content": "a = 1\nb\n"})
    both = answer(propose("a.txt", ("four", "4")), new)
    async with at_terminal(project, [both, answer(text("Well."))], "--mode", "auto") as screen:
        screen.type("edit it\n")
        await screen.until("Well.")
        await screen.idle()
        await screen.shows("- four", "+ 4", "@@ -0,0 +1,2 @@", "1 + a = 1", "2 + b")
        assert "3 +" not in screen.display
        assert (project / "new.py").read_bytes() == b"a = 1\nb\n"


async def test_ctrl_c_at_a_decision_leaves_it_for_later(project: Path) -> None:
    said = [answer(propose("a.txt", ("four", "4"))), answer(text("Done."))]
    async with at_terminal(project, said) as screen:
        screen.type("go\n")
        await screen.shows(ASKED)
        screen.type(CTRL_C)
        await screen.until("1 hunk(s) wait: /review")
        await screen.idle()
        screen.type("/review\n")
        await screen.shows(ASKED)
        screen.type("y\n")
        await screen.until("a.txt is written")
    assert (project / "a.txt").read_bytes() == TEXT.replace("four", "4").encode()


async def test_what_is_applied_at_once_is_kept_or_undone_afterwards(project: Path) -> None:
    responses = [answer(THREE), answer(text("Done.")), answer(text("I see."))]
    kept = "{} hunk(s) are applied and saved: /keep"
    async with at_terminal(project, responses, "--mode", "keep") as screen:
        screen.type("edit it\n")
        await screen.shows("+ two 茶馆 x", "+ 6", kept.format(3))
        everything = TEXT.replace("茶铺", "茶馆").replace("four", "4").replace("six", "6")
        assert (project / "a.txt").read_bytes() == everything.encode()
        screen.type("/review\n")
        await screen.shows("hunk 1 of 3", "keep? [y/n/a/r/s/l/q/?]")
        screen.type("n the old name\n")
        await screen.shows("hunk 2 of 3")
        screen.type("q\n")
        await screen.shows(kept.format(2))
        assert (project / "a.txt").read_bytes() == everything.replace("茶馆", "茶铺").encode()
        screen.type("/keep\n")
        await screen.until("applied: 2")
        screen.type("/review\n")
        await screen.until("nothing waits for a decision")
        screen.type("and?\n")
        await screen.until("I see.")
        reported = str(screen.model.chats[-1].body["messages"])
        assert "undone by the user" in reported
        assert "The user says: the old name" in reported
