"""An edit that the editor refuses: the hunk, the model and the screen have the true reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_edit_variants import results
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar

UNTRUE = ("changed meanwhile", "another text, by now", "another file, or another text")
CALLS = {
    "edit": ("propose_edit", {"path": "f.txt", "edits": [{"old": "one", "new": "two"}]}),
    "create": ("propose_file", {"action": "create", "path": "n.txt", "content": "x\n"}),
    "delete": ("propose_file", {"action": "delete", "path": "f.txt"}),
    "move": ("propose_file", {"action": "move", "path": "f.txt", "to": "g.txt"}),
}


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_what_the_editor_says_is_passed_on(
    tmp_path: Path, call: tuple[str, Mapping[str, Any]], opened: bool
) -> None:
    (tmp_path / "f.txt").write_bytes(b"one\n")
    async with sidecar([answer(tool_call(*call)), answer(text("ok"))], roots=[tmp_path]) as world:
        if opened:
            world.editor.open(tmp_path / "f.txt")
        world.editor.manners.refuse = "the buffer is read-only"
        session = await world.session()
        await world.turn(session, "go", mode="auto")
        (hunk,) = only_change_set(session).hunks("conflict")
        assert hunk.info["reason"] == "the editor did not apply it: the buffer is read-only"
        (reported,) = results(world)
        assert "not applied: the editor did not apply it: the buffer is read-only." in reported
        assert not any(words in reported for words in UNTRUE)
        # Once it is writable, the same hunk can be accepted, and has no reason any more.
        world.editor.manners.refuse = None
        await world.decide(
            only_change_set(session), decisions=[{"hunkId": hunk.id, "action": "accept"}]
        )
        (hunk,) = only_change_set(session).hunks("applied")
        assert not hunk.info.get("reason")


async def test_an_editor_that_does_nothing_and_says_that_it_did(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"one\n")
    script = [answer(tool_call(*CALLS["edit"])), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        world.editor.open(tmp_path / "f.txt")
        world.editor.manners.drop_edits = True
        session = await world.session()
        await world.turn(session, "go", mode="auto")
        (reported,) = results(world)
        assert "but no didChange shows it" in reported
        assert not any(words in reported for words in UNTRUE)


async def test_nothing_is_proposed_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"one\n")
    create = {"action": "create", "content": "x\n"}
    calls = [
        tool_call("propose_file", create | {"path": "f.txt/a"}),
        tool_call("propose_file", create | {"path": "f.txt/a/b"}),
        tool_call("propose_file", {"action": "move", "path": "f.txt", "to": "f.txt/g"}),
        tool_call("propose_file", create | {"path": "new"}),
        tool_call("propose_file", create | {"path": "new/a"}),
    ]
    async with sidecar([answer(*calls), answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        reported = results(world)
        assert all("f.txt is a file, so nothing can be below it" in one for one in reported[:3]), (
            reported
        )
        assert "new is a file, so nothing can be below it" in reported[4]
        (hunk,) = only_change_set(session).hunks("proposed")
        assert hunk.info["path"] == "new"
