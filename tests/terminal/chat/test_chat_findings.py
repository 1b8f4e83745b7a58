"""Findings of a code review in the chat and in `ask`: a list by file, and `f` with a number."""

from pathlib import Path

import pytest

from tests.support.chat_program import by_lines
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import (
    FAULT,
    INFO,
    NEW,
    OLD,
    changed_project,
    reviewing_model,
    reviews,
)
from tests.terminal.cli.test_commands import run

pytestmark = pytest.mark.program


async def test_a_finding_is_listed_explained_dismissed_and_fixed(tmp_path: Path) -> None:
    root = changed_project(tmp_path / "project")
    edit = tool_call("propose_edit", {"path": "app.py", "edits": [{"old": OLD, "new": NEW}]})
    main = [
        *(*reviews(), answer(text("It leaves one out."))),
        *(answer(tool_call("read_file", {"path": "app.py"})), answer(edit), answer(text("Done."))),
    ]
    found = [[FAULT, INFO], [INFO]]
    model = reviewing_model([*main, *reviews()], lambda _: found.pop(0))
    lines = "/review my changes\nf 1 explain\nf 2 dismiss types come later\nf 9\nf x y\n"
    lines += "f\nf 1\n/review again\n"
    done = await by_lines(root, lines, model, "--accept")
    assert done.code == 1, done.out  # there is no finding 9
    listed = """\
app.py
  f1 · 3: error · The last item is not counted
      total([1]) is 0.
  f2 · 5: info · No type
      total([1]) is 0.
2 findings (1 error, 1 info)
f 3 fixes · f 3 explain"""
    assert listed in done.out
    assert "It leaves one out." in done.out
    dismissed = """\
app.py
  f1 · 3: error · The last item is not counted
      total([1]) is 0.
"""
    assert done.out.count(dismissed) == 3  # when found, when the other one is dismissed, and by `f`
    assert "0 findings; 1 fixed" in done.out
    assert "types come later" in str([chat.body for chat in model.chats])
    assert "There is no finding f9; known: f1, f2." in done.out
    assert NEW in (root / "app.py").read_text(encoding="utf-8")
    assert "types come later" not in str(model.chats[0].body)


async def test_f_is_a_prompt_where_nothing_was_reviewed(tmp_path: Path) -> None:
    done = await by_lines(tmp_path, "f\n", [answer(text("What do you mean?"))])
    assert (done.code, "What do you mean?" in done.out) == (0, True), done.out


async def test_ask_prints_findings_after_the_answer(tmp_path: Path) -> None:
    root = changed_project(tmp_path / "project")
    async with reviewing_model(reviews(), lambda _: [FAULT]) as model:
        done = await run(model, root, "ask", "--verb", "review")
    assert (done.code, done.err) == (0, "")
    assert "Reviewed.\napp.py:3: error: The last item is not counted [f1]\n" in done.out
