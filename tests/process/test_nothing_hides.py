"""Escapes, bidi and tag characters of models and projects: on the wire, to the model, in names."""

import io
import json
import sys
from pathlib import Path

import pytest

from kode_sidecar.terminal.cli.ask import _print as print_answer
from tests.support.hostile_project import HIDDEN
from tests.support.model_script import answer, text, thinking, tool_call
from tests.support.sidecar import sidecar

pytestmark = pytest.mark.program

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\x08\x00\x7f"


async def test_no_escape_of_an_answer_is_on_the_wire(tmp_path: Path) -> None:
    call = tool_call("read_file", {"path": f"no{ESCAPES}file.txt"})
    script = [answer(thinking(f"hm{ESCAPES}", size=3), text(f"A{ESCAPES}茶\n\tB", size=3), call)]
    async with sidecar([*script, answer(text("on"))], roots=[tmp_path]) as world:
        session = await world.session()
        assert (await world.turn(session, "go")).stop_reason == "end_turn"
        blocks = [one.block for one in session.blocks.values()]
        shown = [one["text"] for one in blocks if one["type"] in ("text", "thinking")]
        assert shown[1:] == ["hm]0;title[2J31m", "A]0;title[2J31m茶\n\tB", "on"]
        reported = [one.get("summary", "") + one.get("title", "") for one in blocks]
        kept = [b.get("text", "") for m in world.messages(session) for b in m["content"]]
    assert not set("\x1b\x07\x9b\x08\x00\x7f") & set("".join([*shown, *reported, *kept]))


async def test_hidden_characters_of_project_notes_do_not_reach_the_model(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(f"Use{HIDDEN} tabs, 👨\u200d👩\u200d👧 too.\n", "utf-8")
    trusted = {"trusted": True}
    async with sidecar([answer(text("on"))], roots=[tmp_path], handshake=trusted) as world:
        await world.turn(await world.session(), "go")
        asked = json.dumps(world.asked(), ensure_ascii=False)
    assert "Use tabs, 👨\u200d👩\u200d👧 too." in asked
    assert not set(HIDDEN) & set(asked)


@pytest.mark.parametrize(
    ("name", "flag"),
    [("good\u202eyp.txt", "U+202E"), ("a\u200bb.py", "U+200B"), ("p\u0430y.py", "mixes alphabets")],
)
async def test_the_name_of_a_new_file_is_asked_about(tmp_path: Path, name: str, flag: str) -> None:
    """Whatever the mode: the question names the character."""
    new = tool_call("propose_file", {"action": "create", "path": name, "content": "x = 1\n"})
    async with sidecar([answer(new), answer(text("on"))], roots=[tmp_path]) as world:
        session = await world.session(mode="auto")
        await world.turn(session, "go")
        (asked,) = [one for one in world.events() if one["type"] == "permission.requested"]
    assert flag in json.dumps(asked), asked
    assert session.change_sets == {}
    assert not (tmp_path / name).exists()


class Terminal(io.StringIO):
    """A screen."""

    def isatty(self) -> bool:
        return True


def test_what_ask_writes_on_a_terminal_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    family = "👨\u200d👩"
    shown = {Terminal(): f"a<U+202E>b {family}", io.StringIO(): f"a\u202eb {family}"}
    for stdout, wanted in shown.items():
        monkeypatch.setattr(sys, "stdout", stdout)
        print_answer(f"a\x1b\u202eb {family}")
        assert stdout.getvalue() == wanted
