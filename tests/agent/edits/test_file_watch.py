"""Files that come, move and go: own doing is no news, what others do is. C13"""

from pathlib import Path

import pytest

from kode_sidecar.core.domain.agent_event import FreshnessChanged, PermissionRequested
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from tests.support.edit_editor import Desk

TEXT = "一 one\ntwo\nthree\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def call(desk: Desk) -> ToolCall:
    return ToolCall("tool-1", "propose_file", "s-1", desk.turn_id, "m-1")


async def read(desk: Desk, path: str, start: int | None = None, end: int | None = None) -> None:
    lines = {name: line for name, line in (("start", start), ("end", end)) if line is not None}
    await desk.use("read_file", path=path, **lines)


def reported(desk: Desk) -> str:
    """What the model hears about files, without the verdicts on its edits."""
    text = desk.sets.take_reminders() or ""
    return text.partition("Files that you have read")[2]


def news(desk: Desk) -> list[tuple[str, str]]:
    events = [event for event in desk.events if isinstance(event, FreshnessChanged)]
    return [(file.path, file.change) for event in events for file in event.files]


async def test_a_file_that_is_only_proposed_is_no_lost_file(desk: Desk) -> None:
    await desk.sets.proposals.propose_create("new.py", TEXT, call(desk))
    await read(desk, "new.py")
    assert reported(desk) == ""
    await desk.edit("new.py", ("two", "2"))
    assert reported(desk) == ""
    await desk.decide(rest="accept", seen_seq=1_000)
    await read(desk, "new.py")
    assert reported(desk) == ""
    assert news(desk) == []
    await desk.edit("new.py", ("2", "zwei"))
    assert desk.hunks[-1].flags == ()


async def test_a_created_file_is_known_without_having_been_read(desk: Desk) -> None:
    await desk.sets.proposals.propose_create("new.py", TEXT, call(desk))
    await desk.decide(rest="accept", seen_seq=1_000)
    await desk.edit("new.py", ("two", "2"))
    assert desk.hunks[-1].flags == ()
    assert news(desk) == []


async def test_a_moved_file_is_still_known(desk: Desk) -> None:
    desk.file("old.py", TEXT)
    await read(desk, "old.py", 1, 2)
    await desk.sets.proposals.propose_move("old.py", "new.py", call(desk))
    assert reported(desk) == ""
    await desk.decide(rest="accept", seen_seq=1_000)
    assert not (desk.root / "old.py").exists()
    assert reported(desk) == ""
    assert news(desk) == []
    await desk.edit("new.py", ("two", "2"))
    assert desk.hunks[-1].flags == ()
    (desk.root / "new.py").write_text("other\n")
    assert "new.py" in reported(desk)
    assert news(desk) == [("new.py", "changed")]


async def test_a_deleted_file_is_no_news(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await read(desk, "a.py")
    await desk.sets.proposals.propose_delete("a.py", call(desk))
    assert reported(desk) == ""
    assert desk.hunks[-1].flags == ()
    await desk.decide(rest="accept", seen_seq=1_000)
    assert not (desk.root / "a.py").exists()
    assert reported(desk) == ""
    assert news(desk) == []
    (file,) = desk.sets.files.report(10).files
    assert (file.lost, file.changed) == ("deleted", False)
    desk.file("a.py", TEXT.replace("two", "2"))  # somebody puts another one there
    assert "+2" in reported(desk)


async def test_deleting_what_was_not_read_is_flagged(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    desk.file("b.py", TEXT)
    await desk.sets.proposals.propose_delete("a.py", call(desk))
    assert desk.hunks[-1].flags == ("unread",)
    await read(desk, "b.py", 1, 2)
    desk.file("b.py", TEXT.replace("one", "1"))
    await desk.sets.proposals.propose_delete("b.py", call(desk))
    assert desk.hunks[-1].flags == ("unread", "staleRead")


async def test_names_that_hide_something_are_flagged(desk: Desk) -> None:  # W13
    desk.editor.answer = "allow-once"
    await desk.sets.proposals.propose_create("a\u202eyp.exe", "x\n", call(desk))
    assert desk.hunks[-1].flags == ("sensitive", "invisibleCharacters")
    assert desk.hunks[-1].code_points == ("U+202E",)
    desk.file("b.py", "x\n")
    await read(desk, "b.py")
    await desk.sets.proposals.propose_move("b.py", "c\u200b.py", call(desk))
    assert desk.hunks[-1].code_points == ("U+200B",)


async def test_a_yes_for_one_operation_is_none_for_another(desk: Desk) -> None:  # W11 W15
    desk.editor.answer = "allow-session"
    for name in ("package.json", "setup.py"):
        desk.file(name, TEXT)
        await read(desk, name)
    await desk.sets.proposals.propose_delete("package.json", call(desk))
    await desk.sets.proposals.propose_create(".exrc", "x\n", call(desk))
    await desk.sets.proposals.propose_move("setup.py", "b.py", call(desk))
    asked = [event for event in desk.events if isinstance(event, PermissionRequested)]
    assert [event.subject for event in asked] == ["package.json", ".exrc", "setup.py to b.py"]
    rules = [rule for rule in desk.sets.permissions.rules() if rule.source == "answer"]
    assert [rule.tool for rule in rules] == [
        "propose_file:delete",
        "propose_file:create",
        "propose_file:move",
    ]
    questions = len(desk.editor.questions)
    await desk.sets.proposals.propose_delete(".exrc", call(desk))
    assert len(desk.editor.questions) == questions + 1
    assert all("sensitive" in hunk.flags for hunk in desk.hunks)


async def test_a_denied_folder_is_denied_to_a_move_from_either_side(desk: Desk) -> None:
    desk.file("gen/a.py", TEXT)
    desk.file("b.py", TEXT)
    desk.sets.permissions.set_rule("propose_file", "gen/**", "deny")
    for source, target in (("gen/a.py", "a.py"), ("b.py", "gen/b.py")):
        with pytest.raises(KodeError, match="does not allow"):
            await desk.sets.proposals.propose_move(source, target, call(desk))
    assert desk.hunks == []
    assert desk.editor.questions == []
