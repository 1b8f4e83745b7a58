"""What the model sends and what it is answered, in every shape of an edit, over real stdio. A9"""

import re
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.infrastructure.workspace.document import text_rev
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import World, only_change_set, sidecar

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"
REV = text_rev(TEXT)[:12]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    folder.mkdir()
    (folder / "a.py").write_bytes(TEXT.replace("\n", "\r\n").encode())
    (folder / "gbk.txt").write_bytes("一\n二\n".encode("gbk"))
    return folder


def results(world: World) -> list[str]:
    """What the tools answered, as the model's last request holds it."""
    return [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]


async def run(project: Path, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """One turn that makes these calls, a step each, everything accepted; the tools' answers."""
    script = [answer(tool_call(name, arguments)) for name, arguments in calls]
    async with sidecar([*script, answer(text("ok"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "edit")
        if session.change_sets:
            await world.decide(only_change_set(session))
        return results(world)


async def test_lines_by_number_after_a_read(project: Path) -> None:
    by_range = {"path": "a.py", "range": [6, 6], "new_content": "    return 2\n", "base_rev": REV}
    unread, read, changed = await run(
        project,
        ("propose_edit", by_range),
        ("read_file", {"path": "a.py"}),
        ("propose_edit", by_range),
    )
    assert "no base_rev of a.py that you were shown" in unread
    assert f"base_rev {REV}" in read
    assert "-    return 1\n+    return 2" in changed
    assert "not yet applied" in changed


async def test_a_quote_that_is_not_unique_is_answered_with_its_places(project: Path) -> None:
    (reported,) = await run(
        project, ("propose_edit", {"path": "a.py", "old_str": "return 1", "new_str": "return 2"})
    )
    assert "occurs 2 times, beginning at lines 2, 6" in reported
    assert "1\tdef f():\n2\t    return 1" in reported


async def test_other_shapes_of_an_edit_are_understood(project: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def g():\n-    return 1\n+    return 3\n"
    cut, whole = await run(
        project,
        ("propose_edit", {"input": patch}),
        ("propose_edit", {"input": patch + "*** End Patch"}),
    )
    assert "its end may be missing" in cut
    assert "[Your arguments were fixed: a patch was read as edits.]" in whole


async def test_a_file_that_is_only_proposed_is_read_and_found(project: Path) -> None:
    made, read, found, listed = await run(
        project,
        ("propose_file", {"action": "create", "path": "new/b.py", "content": "needle = 1\n"}),
        ("read_file", {"path": "new/b.py"}),
        ("search_code", {"query": "needle"}),
        ("list_files", {}),
    )
    rev = re.findall(r"base_rev (\w+)", made)
    assert rev == [text_rev("needle = 1\n")[:12]] == re.findall(r"base_rev (\w+)", read)
    assert "new/b.py:1: needle = 1" in found
    assert "new/b.py (proposed by you, not on disk)" in listed


async def test_what_an_encoding_lacks_never_becomes_a_hunk(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KODE_FILE_ENCODING", "gbk")
    edit = {"path": "gbk.txt", "edits": [{"old": "二\n", "new": "二\n三😀\n"}]}
    (reported,) = await run(project, ("propose_edit", edit))
    assert "gbk, which has no U+1F600 (😀), in line 3 of the new text" in reported
