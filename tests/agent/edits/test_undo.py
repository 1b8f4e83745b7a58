"""What was applied goes back, the user's later words stay, and undo of undo is the identity."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.protocol.change_set import HunkDecision, UndoParams, UndoResult, undo_scope
from kode_sidecar.errors import KodeError
from tests.support.edit_buffer import Buffer
from tests.support.edit_editor import HANG, Desk

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
DONE = TEXT.replace("two", "TWO").replace("six", "SIX")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def undo(desk: Desk, **scope: Any) -> UndoResult:
    params = UndoParams(**(scope or {"change_set_id": desk.change_set_id}))
    return await asyncio.wait_for(desk.sets.undo(undo_scope(params), params), HANG)


async def applied(desk: Desk, text: str = TEXT) -> tuple[Buffer, str, str]:
    """A buffer in which two hunks were accepted, and their ids."""
    buffer = desk.editor.open(desk.file("a.txt", "on disk\n"), text)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    first, second = (hunk.hunk_id for hunk in desk.hunks)
    await desk.accept(first, second)
    assert buffer.text.replace("\r\n", "\n") == DONE
    return buffer, first, second


async def test_a_change_set_is_taken_back_in_one_edit_and_put_back_again(desk: Desk) -> None:
    buffer, first, second = await applied(desk)
    undone = await undo(desk)
    assert (undone.undone, undone.restored, undone.verified) == ((first, second), (), True)
    assert "-TWO\n+two" in undone.diff
    assert buffer.text == TEXT
    assert desk.states == {first: "undone", second: "undone"}
    assert len(desk.editor.edits) == 2
    again = await undo(desk)
    assert (again.undone, again.restored) == ((), (first, second))
    assert buffer.text == DONE
    assert desk.states == {first: "applied", second: "applied"}
    assert (await undo(desk, turn_id="t-1")).undone == (first, second)
    assert buffer.text == TEXT


async def test_one_hunk_is_taken_back_and_the_users_later_words_stay(desk: Desk) -> None:
    buffer, first, second = await applied(desk)
    desk.editor.type(buffer, 0, "零\n")
    desk.editor.type(buffer, buffer.text.index("four"), "4", delete=4)
    assert (await undo(desk, hunk_id=first)).undone == (first,)
    assert buffer.text == "零\n" + TEXT.replace("four", "4").replace("six", "SIX")
    assert desk.states[second] == "applied"
    assert "undone by the user" in str(desk.sets.take_reminders())


async def test_what_the_user_typed_into_is_refused_with_a_diff_and_nothing_is_sent(
    desk: Desk,
) -> None:
    buffer, first, second = await applied(desk)
    desk.editor.type(buffer, buffer.text.index("TWO"), "my ")
    typed = buffer.text
    refused = await undo(desk)
    assert refused.undone == ()
    (conflict,) = refused.conflicts
    assert conflict.hunk_id == first
    assert "-my TWO\n+two" in conflict.diff
    assert buffer.text == typed
    assert len(desk.editor.edits) == 1
    assert desk.states == {first: "applied", second: "applied"}
    rest = await undo(desk, change_set_id=desk.change_set_id, skip_conflicts=True)
    assert rest.undone == (second,)
    assert buffer.text == typed.replace("SIX", "six")


async def test_typing_that_was_taken_back_is_no_conflict(desk: Desk) -> None:
    buffer, first, _ = await applied(desk)
    at = buffer.text.index("TWO")
    desk.editor.type(buffer, at, "x")
    desk.editor.type(buffer, at, "", delete=1)
    assert (await undo(desk, hunk_id=first)).undone == (first,)


async def test_a_dry_run_says_what_would_go_and_sends_nothing(desk: Desk) -> None:
    buffer, first, second = await applied(desk)
    reported = len(desk.events)
    dry = await undo(desk, change_set_id=desk.change_set_id, dry_run=True)
    assert (dry.undone, dry.verified) == ((first, second), None)
    assert "-SIX\n+six" in dry.diff
    assert buffer.text == DONE
    assert len(desk.events) == reported
    assert len(desk.editor.edits) == 1


async def test_the_newest_undo_is_what_is_put_back(desk: Desk) -> None:
    buffer, first, second = await applied(desk)
    await undo(desk, hunk_id=first)
    await undo(desk, hunk_id=second)
    assert (await undo(desk)).restored == (second,)
    assert buffer.text == TEXT.replace("six", "SIX")


async def test_a_later_accepted_edit_lies_on_top(desk: Desk) -> None:
    buffer, first, _ = await applied(desk)
    await desk.edit("a.txt", ("TWO", "TWO!"))
    later = desk.hunks[-1].hunk_id
    await desk.accept(later)
    assert (await undo(desk, hunk_id=first)).conflicts[0].hunk_id == first
    assert (await undo(desk, hunk_id=later)).undone == (later,)
    assert (await undo(desk, hunk_id=first)).undone == (first,)
    assert buffer.text == TEXT.replace("six", "SIX")


async def test_insertions_and_deletions_come_back_byte_for_byte(desk: Desk) -> None:
    text = "first\r\nsecond\nthird\r\n\r\nlast"
    buffer = desk.editor.open(desk.file("a.txt", ""), text)
    await desk.edit("a.txt", ("second\n", ""), ("last", "last\n末 😀"))
    await desk.accept(*(hunk.hunk_id for hunk in desk.hunks))
    assert buffer.text == "first\r\nthird\r\n\r\nlast\r\n末 😀"
    await undo(desk)
    assert buffer.text == text
    await undo(desk)
    assert buffer.text == "first\r\nthird\r\n\r\nlast\r\n末 😀"


async def test_an_undo_that_the_editor_drops_leaves_the_hunk_applied(desk: Desk) -> None:
    buffer, first, _ = await applied(desk)

    async def drop(edit: DocumentEdit) -> ApplyAnswer:
        return ApplyAnswer(True)

    desk.editor.on_apply = drop
    lost = await undo(desk, hunk_id=first)
    assert (lost.undone, lost.conflicts[0].hunk_id) == ((), first)
    assert buffer.text == DONE
    desk.editor.on_apply = desk.editor.obey
    assert (await undo(desk, hunk_id=first)).undone == (first,)


async def test_a_closed_file_is_undone_over_what_was_sent_or_saved(desk: Desk) -> None:
    path = desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    path.write_text("zero\n" + TEXT.replace("two", "TWO"), newline="")
    result = await undo(desk, hunk_id=hunk)
    assert (result.undone, result.verified) == ((hunk,), None)
    assert desk.editor.edits[1].edits[0].range.start.line == 2


async def test_the_users_own_replacement_is_taken_back_too(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="2\n2\n"))
    await undo(desk)
    assert buffer.text == TEXT
    await undo(desk)
    assert (buffer.text, desk.states[hunk]) == (TEXT.replace("two", "2\n2"), "replaced")


async def test_the_list_counts_states_without_texts(desk: Desk) -> None:
    _, first, _ = await applied(desk)
    await undo(desk, hunk_id=first)
    desk.enter("t-2")
    await desk.edit("a.txt", ("four", "FOUR"))
    old, new = desk.sets.list().change_sets
    assert (old.turn_id, old.on_head, old.state) == ("t-1", False, "decided")
    assert [(one.state, one.count) for one in old.files[0].hunks] == [("undone", 1), ("applied", 1)]
    assert (new.turn_id, new.on_head, new.state) == ("t-2", True, "proposed")


@pytest.mark.parametrize("scope", [{}, {"hunk_id": "h", "turn_id": "t"}])
def test_one_scope_and_no_more(scope: dict[str, Any]) -> None:
    with pytest.raises(KodeError) as wrong:
        undo_scope(UndoParams(**scope))
    assert wrong.value.code == "InvalidParams"


async def test_nothing_to_undo_is_an_empty_answer(desk: Desk) -> None:
    desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two", "TWO"))
    nothing = await undo(desk)
    assert (nothing.undone, nothing.restored, nothing.conflicts) == ((), (), ())
    assert desk.editor.edits == []


async def test_insertions_in_one_place_come_back_in_their_order(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.txt", ""), "one\ntwo\n")
    await desk.edit("a.txt", ("one\n", "one\nlower\n"))
    await desk.accept(desk.hunks[-1].hunk_id)
    await desk.edit("a.txt", ("one\n", "one\nupper\n"))
    await desk.accept(desk.hunks[-1].hunk_id)
    assert buffer.text == "one\nupper\nlower\ntwo\n"
    assert len((await undo(desk)).undone) == 2
    assert buffer.text == "one\ntwo\n"
    assert len((await undo(desk)).restored) == 2
    assert buffer.text == "one\nupper\nlower\ntwo\n"
