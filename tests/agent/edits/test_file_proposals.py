"""Files that are created, moved and deleted go the way of every edit: proposed, decided, undone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, FileEdit
from kode_sidecar.agent.tools.proposals import Proposed
from kode_sidecar.core.kernel.contracts import ToolCall, ToolOutcome
from kode_sidecar.core.protocol.change_set import HunkDecision, UndoParams, UndoResult
from kode_sidecar.errors import KodeError
from tests.support.edit_editor import HANG, Desk

TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def call(desk: Desk) -> ToolCall:
    return ToolCall("tool-1", "propose_file", "s-1", desk.turn_id, "m-1")


async def create(desk: Desk, path: str, text: str) -> Proposed:
    return await desk.sets.proposals.propose_create(path, text, call(desk))


async def move(desk: Desk, source: str, target: str) -> Proposed:
    return await desk.sets.proposals.propose_move(source, target, call(desk))


async def delete(desk: Desk, path: str) -> Proposed:
    return await desk.sets.proposals.propose_delete(path, call(desk))


async def undo(desk: Desk) -> UndoResult:
    change_set = desk.change_set_id
    params = UndoParams(change_set_id=change_set)
    return await asyncio.wait_for(desk.sets.undo(change_set, params), HANG)


async def read(desk: Desk, path: str) -> ToolOutcome:
    return await desk.use("read_file", path=path)


async def listed(desk: Desk) -> list[str]:
    return (await desk.use("list_files")).content.split("\n")[1:]


async def found(desk: Desk, text: str) -> list[str]:
    content = (await desk.use("search_code", query=text)).content
    return [line for line in content.split("\n")[1:] if not line.startswith("[")]


async def fails(work: Any) -> KodeError:
    with pytest.raises(KodeError) as failed:
        await work
    return failed.value


# ---- creating ----------------------------------------------------------------------------------


async def test_a_new_file_is_proposed_read_listed_searched_and_not_on_disk(desk: Desk) -> None:
    proposed = await create(desk, "src/new.py", "import os\nprint('茶')\n")
    assert (proposed.before, proposed.after) == ("", "import os\nprint('茶')\n")
    assert list(desk.root.iterdir()) == []
    (hunk,) = desk.hunks
    assert (hunk.kind, hunk.new_text, hunk.range) == ("create", proposed.after, None)
    assert desk.updates[0].files[0].path == "src/new.py"
    assert "茶" in (await read(desk, "src/new.py")).content
    assert "not yet created" in (await read(desk, "src/new.py")).content
    assert await listed(desk) == ["src/new.py (proposed by you, not on disk)"]
    assert await found(desk, "import os") == ["src/new.py:1: import os"]
    assert "+import os" in str(desk.sets.get(desk.change_set_id).diff)


async def test_an_accepted_new_file_is_created_by_the_editor_and_verified(desk: Desk) -> None:
    await create(desk, "new.py", "a\nb\n")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert (result.applied, result.verified) == ((desk.hunks[0].hunk_id,), True)
    (edit,) = desk.editor.file_edits
    assert (edit.kind, edit.text, edit.ask) == ("create", "a\nb\n", False)
    assert desk.text("new.py") == "a\nb\n"
    assert "the new file: accepted" in str(desk.sets.take_reminders())


async def test_editing_a_new_file_before_it_exists_changes_what_is_created(desk: Desk) -> None:
    await create(desk, "new.py", "a\nb\n")
    outcome = await desk.edit("new.py", ("b", "c"))
    first, second = desk.hunks
    assert desk.states == {first.hunk_id: "superseded", second.hunk_id: "proposed"}
    assert (second.kind, second.new_text) == ("create", "a\nc\n")
    assert "-b\n+c" in outcome.content
    await desk.accept(second.hunk_id)
    assert desk.text("new.py") == "a\nc\n"


async def test_the_user_may_write_the_new_file_himself(desk: Desk) -> None:
    await create(desk, "new.py", "a\n")
    hunk = desk.hunks[0].hunk_id
    await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="mine\n"))
    assert desk.states == {hunk: "replaced"}
    assert desk.text("new.py") == "mine\n"


async def test_a_file_that_came_up_meanwhile_is_a_conflict_and_nothing_is_sent(desk: Desk) -> None:
    await create(desk, "new.py", "a\n")
    desk.file("new.py", "the user's\n")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == (desk.hunks[0].hunk_id,)
    assert desk.editor.file_edits == []
    assert (desk.root / "new.py").read_text() == "the user's\n"


async def test_a_new_file_that_the_editor_does_not_sync_is_unconfirmed_but_read(desk: Desk) -> None:
    desk.editor.syncs_new_files = False

    async def keep_in_a_buffer(edit: FileEdit) -> ApplyAnswer:
        return ApplyAnswer(True)

    desk.editor.on_file_edit = keep_in_a_buffer
    await create(desk, "new.py", "a\nb\n")
    assert (await desk.accept(desk.hunks[0].hunk_id)).verified is None
    assert desk.text("new.py") == "a\nb\n"
    await desk.edit("new.py", ("b", "c"))
    await desk.accept(desk.hunks[1].hunk_id)
    assert desk.text("new.py") == "a\nc\n"
    assert desk.editor.edits[0].edits[0].range.start.line == 1


async def test_another_text_in_the_new_file_is_diverged(desk: Desk) -> None:
    async def spoil(edit: FileEdit) -> ApplyAnswer:
        desk.editor.open(desk.file("new.py", ""), "x\n")
        return ApplyAnswer(True)

    desk.editor.on_file_edit = spoil
    await create(desk, "new.py", "a\n")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert (result.verified, set(desk.states.values())) == (False, {"diverged"})
    view = desk.updates[-1].files[0].hunks[0]
    assert "-a\n+x" in str(view.diff)


async def test_undo_of_a_new_file_deletes_it_unless_it_was_changed(desk: Desk) -> None:
    await create(desk, "new.py", "a\n")
    await desk.accept(desk.hunks[0].hunk_id)
    buffer = next(iter(desk.editor.buffers.values()))
    desk.editor.type(buffer, 0, "user\n")
    refused = await undo(desk)
    assert refused.undone == ()
    assert "-user" in refused.conflicts[0].diff
    desk.editor.type(buffer, 0, "", delete=5)
    assert len((await undo(desk)).undone) == 1
    assert list(desk.root.iterdir()) == []
    assert len((await undo(desk)).restored) == 1
    assert desk.text("new.py") == "a\n"


# ---- moving ------------------------------------------------------------------------------------


async def test_a_moved_file_is_at_its_new_place_for_the_model_alone(desk: Desk) -> None:
    desk.file("old.py", TEXT)
    await desk.edit("old.py", ("two", "TWO"))
    proposed = await move(desk, "old.py", "lib/new.py")
    assert proposed.path == "lib/new.py"
    hunk = desk.hunks[-1]
    assert (hunk.kind, hunk.new_path) == ("rename", "lib/new.py")
    assert str(hunk.new_uri).endswith("/lib/new.py")
    assert "rename from old.py\nrename to lib/new.py\n" in desk.sets.get(desk.change_set_id).diff
    assert "TWO" in (await read(desk, "lib/new.py")).content
    assert (await fails(read(desk, "old.py"))).code == "NotFound"
    assert await listed(desk) == ["lib/new.py (proposed by you, not on disk)"]
    assert await found(desk, "TWO") == ["lib/new.py:2: TWO"]
    assert await found(desk, "three") == ["lib/new.py:3: three"]
    assert [path.name for path in desk.root.iterdir()] == ["old.py"]


async def test_edits_of_a_moved_file_survive_the_move(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("old.py", TEXT), TEXT)
    await move(desk, "old.py", "new.py")
    outcome = await desk.edit("new.py", ("two", "TWO"))
    assert "new.py" in outcome.content
    rename, change = desk.hunks
    await desk.accept(rename.hunk_id)
    assert not (desk.root / "old.py").exists()
    assert desk.states[change.hunk_id] == "proposed"
    assert "TWO" in desk.text("new.py")
    result = await desk.accept(change.hunk_id)
    assert (result.applied, result.verified) == ((change.hunk_id,), True)
    assert desk.text("new.py") == TEXT.replace("two", "TWO")
    assert buffer.text == TEXT
    assert len((await undo(desk)).undone) == 2
    assert desk.text("old.py") == TEXT
    assert not (desk.root / "new.py").exists()


async def test_text_and_rename_travel_in_two_requests_text_first(desk: Desk) -> None:  # R7
    desk.editor.open(desk.file("old.py", TEXT), TEXT)
    await desk.edit("old.py", ("two", "TWO"))
    await move(desk, "old.py", "new.py")
    order: list[str] = []
    obey, do = desk.editor.obey, desk.editor.do_file_edit

    async def text(edit: Any) -> ApplyAnswer:
        order.append("text")
        return await obey(edit)

    async def file(edit: FileEdit) -> ApplyAnswer:
        order.append(edit.kind)
        return await do(edit)

    desk.editor.on_apply, desk.editor.on_file_edit = text, file
    await desk.accept(*(hunk.hunk_id for hunk in desk.hunks))
    assert order == ["text", "rename"]


async def test_moves_stack_and_going_back_takes_them_back(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await move(desk, "a.py", "b.py")
    await move(desk, "b.py", "c.py")
    first, second = desk.hunks
    assert desk.states == {first.hunk_id: "superseded", second.hunk_id: "proposed"}
    assert (desk.updates[-1].files[0].path, second.new_path) == ("a.py", "c.py")
    assert "taken back" in (await move(desk, "c.py", "a.py")).message
    assert desk.text("a.py") == TEXT
    assert desk.updates[-1].state == "decided"


async def test_a_new_file_moves_before_it_exists(desk: Desk) -> None:
    await create(desk, "a.py", "x\n")
    await move(desk, "a.py", "b.py")
    hunk = desk.hunks[-1]
    assert (hunk.kind, hunk.new_text) == ("create", "x\n")
    assert await listed(desk) == ["b.py (proposed by you, not on disk)"]


async def test_a_taken_target_is_a_conflict(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await move(desk, "a.py", "b.py")
    desk.file("b.py", "the user's\n")
    assert (await desk.accept(desk.hunks[0].hunk_id)).conflicts == (desk.hunks[0].hunk_id,)
    assert desk.editor.file_edits == []


# ---- deleting ----------------------------------------------------------------------------------


async def test_a_deleted_file_is_gone_for_the_model_alone(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await desk.edit("a.py", ("two", "TWO"))
    proposed = await delete(desk, "a.py")
    assert (proposed.before, proposed.after) == (TEXT.replace("two", "TWO"), "")
    change, gone = desk.hunks
    assert (gone.kind, gone.old_text) == ("delete", TEXT)
    assert desk.states[change.hunk_id] == "superseded"
    assert "proposed to delete" in (await fails(read(desk, "a.py"))).message
    assert await listed(desk) == []
    assert await found(desk, "two") == []
    assert (desk.root / "a.py").read_text() == TEXT


async def test_an_accepted_deletion_is_done_and_undone(desk: Desk) -> None:
    desk.editor.open(desk.file("a.py", TEXT), TEXT)
    await delete(desk, "a.py")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.verified is True
    assert list(desk.root.iterdir()) == []
    assert len((await undo(desk)).undone) == 1
    assert desk.text("a.py") == TEXT


async def test_a_file_changed_since_is_not_deleted(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.py", TEXT), TEXT)
    await delete(desk, "a.py")
    desk.editor.type(buffer, 0, "important\n")
    assert (await desk.accept(desk.hunks[0].hunk_id)).conflicts == (desk.hunks[0].hunk_id,)
    assert (desk.root / "a.py").exists()
    assert desk.editor.file_edits == []


async def test_a_new_file_that_is_deleted_is_merely_taken_back(desk: Desk) -> None:
    await create(desk, "a.py", "x\n")
    assert "taken back" in (await delete(desk, "a.py")).message
    assert await listed(desk) == []
    assert len(desk.hunks) == 1


async def test_a_file_open_where_one_is_proposed_is_seen_as_it_is(desk: Desk) -> None:
    await create(desk, "a.py", "x\n")
    buffer = desk.editor.open(desk.root / "a.py", "mine\n")  # new there, and not saved yet
    document = desk.workspace.documents.get(buffer.uri)
    assert document is not None
    assert desk.sets.session_files.view(document).text_lf == "mine\n"
    assert (await desk.accept(desk.hunks[0].hunk_id)).conflicts == (desk.hunks[0].hunk_id,)
    assert buffer.text == "mine\n"


async def test_writing_a_file_that_was_to_be_deleted_edits_it(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await delete(desk, "a.py")
    await create(desk, "a.py", TEXT.replace("two", "TWO"))
    gone, change = desk.hunks
    assert desk.states[gone.hunk_id] == "superseded"
    assert (change.kind, change.old_text, change.new_text) == ("modify", "two\n", "TWO\n")


async def test_the_editor_is_asked_again_only_where_nobody_accepted(desk: Desk) -> None:  # R8
    desk.file("a.py", TEXT)
    desk.enter("t-1", "auto")
    await delete(desk, "a.py")
    assert [edit.ask for edit in desk.editor.file_edits] == [True]


# ---- what is refused ---------------------------------------------------------------------------


async def test_what_exists_is_not_created_nor_moved_to(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    desk.file("b.py", TEXT)
    assert "exists already" in (await fails(create(desk, "a.py", "x\n"))).message
    assert "exists already" in (await fails(move(desk, "a.py", "b.py"))).message
    await create(desk, "c.py", "x\n")
    assert "exists already" in (await fails(create(desk, "c.py", "x\n"))).message
    await move(desk, "a.py", "d.py")
    assert "until the user accepts" in (await fails(move(desk, "b.py", "a.py"))).message
    await create(desk, "a.py", "x\n")
    assert "exists already" in (await fails(create(desk, "a.py", "x\n"))).message


@pytest.mark.parametrize(
    ("path", "code"),
    [("../x", "PathOutsideRoots"), (".git/hooks/x", "Denied"), (".env", "Denied")],
)
async def test_guarded_places(desk: Desk, path: str, code: str) -> None:  # W11
    desk.file("a.py", TEXT)
    assert (await fails(create(desk, path, "x\n"))).code == code
    assert (await fails(move(desk, "a.py", path))).code == code
    assert desk.updates == []


async def test_sensitive_places_ask_first(desk: Desk) -> None:  # W11
    desk.editor.answer = "reject"
    error = await fails(create(desk, "package.json", "{}\n"))
    assert (error.code, desk.updates) == ("Denied", [])
    assert "create package.json" in error.message
    desk.editor.answer = "allow-once"
    await create(desk, "package.json", "{}\n")
    assert desk.hunks[0].flags == ("sensitive",)
    assert desk.updates[-1].files[0].hunks[0].state == "applied"  # the question has shown it all


async def test_an_editor_that_cannot_is_not_asked(desk: Desk) -> None:  # R10
    desk.editor.file_operations = {"create"}
    desk.file("a.py", TEXT)
    for work in (move(desk, "a.py", "b.py"), delete(desk, "a.py")):
        error = await fails(work)
        assert error.code == "CapabilityMissing"
        assert "The user's editor cannot" in error.message
    assert desk.updates == []
    await create(desk, "b.py", "x\n")
    assert "taken back" in (await delete(desk, "b.py")).message  # nobody has made it yet


async def test_a_move_has_no_text_to_replace(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await move(desk, "a.py", "b.py")
    decision = HunkDecision(hunk_id=desk.hunks[0].hunk_id, action="replace", new_text="x")
    assert (await fails(desk.decide(decision))).code == "InvalidParams"


async def test_a_rejected_deletion_leaves_the_file_for_the_model_too(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await delete(desk, "a.py")
    await desk.decide(HunkDecision(hunk_id=desk.hunks[0].hunk_id, action="reject"))
    assert desk.text("a.py") == TEXT


async def test_a_branch_sees_only_its_own_files(desk: Desk) -> None:
    desk.file("a.py", TEXT)
    await create(desk, "new.py", "x\n")
    await delete(desk, "a.py")
    desk.enter("t-2")
    assert await listed(desk) == ["a.py"]
    assert desk.text("a.py") == TEXT
    await create(desk, "new.py", "other\n")
    desk.enter("t-3", path=("t-1",))
    assert desk.text("new.py") == "x\n"


async def test_a_new_file_keeps_the_line_ends_it_was_given(desk: Desk) -> None:
    text = "a\r\nb\r\nc\n"
    await desk.use("propose_file", action="create", path="new.bat", content=text)
    assert desk.hunks[-1].new_text == "a\r\nb\r\nc\r\n"  # one for all lines
    assert desk.text("new.bat") == "a\nb\nc\n"
    await desk.edit("new.bat", ("b", "B\nbb"))
    assert desk.hunks[-1].new_text == "a\r\nB\r\nbb\r\nc\r\n"
    await desk.accept(desk.hunks[-1].hunk_id)
    assert desk.editor.file_edits[-1].text == "a\r\nB\r\nbb\r\nc\r\n"
    assert desk.states[desk.hunks[-1].hunk_id] == "applied"
    assert (await undo(desk)).undone
    patch = "*** Begin Patch\n*** Add File: two.bat\n+x\n+y\n*** End Patch\n"
    await desk.use("propose_edit", patch=patch.replace("\n", "\r\n"))
    assert desk.hunks[-1].new_text == "x\r\ny\r\n"


async def test_the_users_own_text_for_a_new_file_ends_its_lines_alike(desk: Desk) -> None:
    await create(desk, "new.bat", "a\r\nb\r\n")
    own = HunkDecision(hunk_id=desk.hunks[0].hunk_id, action="replace", new_text="x\ny\n")
    await desk.decide(own)
    assert desk.editor.file_edits[0].text == "x\r\ny\r\n"
