"""`/skills` and `/memory`: what the model can load, and what it is to remember."""

import os
from pathlib import Path

import pytest

from tests.support.chat_program import by_lines
from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.skill_files import write_skill

pytestmark = pytest.mark.program

FACTS = ("Tests run with pytest.", "The user likes tea.", "茶铺。")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


async def test_memories_are_listed_accepted_and_forgotten(project: Path) -> None:  # B10
    calls = [tool_call("write_memory", {"content": fact, "about": "user"}) for fact in FACTS]
    said = [answer(*calls), answer(text("ok")), answer(text("ok"))]
    first = (
        "remember\n/memory\n/memory accept 1 9\n/memory accept 1 3\n/memory reject all\n/memory\n"
    )
    done = await by_lines(project, first, said)
    assert done.code == 0, done.out
    assert "1 · waits · Tests run with pytest." in done.out
    assert "remembered from now on: 2" in done.out
    assert "forgotten: 1" in done.out
    assert "2 · remembered · 茶铺。" in done.out
    assert "2 · remembered · The user" not in done.out
    assert done.out.count("/memory accept NUMBERS") == 3  # 1 9 is refused as a whole
    again = await by_lines(project, "hello\n/memory reject 1 2\n/memory\n", [answer(text("hi"))])
    assert "nothing is remembered" in again.out, again.out
    assert again.model is not None
    asked = str(again.model.chats[0].body)
    assert FACTS[0] in asked
    assert FACTS[1] not in asked


async def test_skills_are_listed_with_what_is_wrong(project: Path) -> None:  # B8
    home = Path(os.environ["KODE_HOME"])
    assert "there are no skills" in (await by_lines(project, "/skills\n", [])).out
    write_skill(home / "skills", "greeting", description="Say 你好.")
    write(home, {"skills/bad/SKILL.md": "---\nid: bad\nname: Bad\n---\n"})
    done = await by_lines(project, "/skills\n", [])
    assert "greeting: Say 你好." in done.out
    assert "⚠ skills/bad/SKILL.md, line 2: `description`: is missing." in done.out
