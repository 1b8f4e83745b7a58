# pyright: reportPrivateUsage=false
"""A verdict follows the text whenever it is seen again, and what failed may be tried again."""

import asyncio
from pathlib import Path

import pytest

from kode_sidecar.agent.edits import hunk_status
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision, UndoParams
from tests.support.edit_buffer import Buffer, ChangeStyle
from tests.support.edit_editor import Desk, again

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(hunk_status, "QUIET_SECONDS", 0.0)
    return Desk(tmp_path)


def open_text(desk: Desk) -> Buffer:
    return desk.editor.open(desk.file("a.txt", TEXT), TEXT)


async def drop(_edit: DocumentEdit) -> ApplyAnswer:
    return ApplyAnswer(True)


async def refuse(_edit: DocumentEdit) -> ApplyAnswer:
    return ApplyAnswer(False, "read-only")


def mangle(desk: Desk, buffer: Buffer) -> None:
    """From now on the editor does something else than it is asked."""

    async def otherwise(_edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.type(buffer, buffer.text.index("two"), "mangled ")
        return ApplyAnswer(True)

    desk.editor.on_apply = otherwise


# ---- nothing is built on what nobody can see -----------------------------------------------------


async def test_a_discarded_buffer_moves_no_later_edit(desk: Desk) -> None:
    """The editor loads the file for the edit, never tells its text, and the user discards it."""
    desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("one", "ONE\nun\neins\nuno"))
    await desk.accept(desk.hunks[0].hunk_id)
    await desk.edit("b.txt", ("six", "SIX"))
    second = desk.hunks[1].hunk_id
    result = await desk.accept(second)
    assert (result.conflicts, result.applied) == ((second,), ())
    assert len(desk.editor.edits) == 1
    assert "does not say whether the file still has it" in str(desk.sets.take_reminders())
    desk.file("b.txt", TEXT.replace("one", "ONE\nun\neins\nuno"))  # saved: now it is seen
    assert (await desk.accept(second)).applied == (second,)
    assert desk.editor.edits[1].edits[0].range.start.line == 8


async def test_an_editor_that_opens_documents_is_asked_for_the_text(desk: Desk) -> None:
    desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("one", "ONE\nun\neins\nuno"))
    first = desk.hunks[0].hunk_id
    await desk.accept(first)
    desk.sets.take_reminders()
    await desk.edit("b.txt", ("six", "SIX"))
    desk.editor.reads_as = "utf-8"  # as it is on disk: the first edit was discarded
    result = await desk.accept(desk.hunks[1].hunk_id)
    assert result.applied == (desk.hunks[1].hunk_id,)
    (buffer,) = desk.editor.buffers.values()
    assert buffer.text == TEXT.replace("six", "SIX")
    await desk.until(lambda: desk.states[first] == "conflict")
    assert "discarded" in str(desk.sets.take_reminders())
    assert (await desk.accept(first)).applied == (first,)
    assert buffer.text == TEXT.replace("six", "SIX").replace("one", "ONE\nun\neins\nuno")


async def test_a_file_closed_before_the_answer_is_edited_again_once_it_is_seen(desk: Desk) -> None:
    buffer = open_text(desk)
    answer = asyncio.Event()

    async def save_and_close(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.do(edit)
        desk.file("a.txt", buffer.text)
        desk.editor.close(buffer)
        await answer.wait()
        return ApplyAnswer(True)

    desk.editor.on_apply = save_and_close
    await desk.edit("a.txt", ("two", "TWO"))
    await desk.accept(desk.hunks[0].hunk_id)
    answer.set()
    desk.editor.on_apply = desk.editor.obey
    await desk.edit("a.txt", ("three", "THREE"))
    second = desk.hunks[1].hunk_id
    assert (await desk.accept(second)).conflicts == (second,)
    assert "Somebody must open the file" in str(desk.sets.take_reminders())
    desk.editor.reads_as = "utf-8"  # an editor that opens it when it is asked
    assert (await desk.accept(second)).applied == (second,)
    (seen,) = desk.editor.buffers.values()
    assert seen.text == TEXT.replace("two", "TWO").replace("three", "THREE")


@pytest.mark.parametrize("reported", ["", "one\n"])
async def test_an_undo_that_is_saved_as_the_file_closes_is_done(desk: Desk, reported: str) -> None:
    """The editor tells a reload on the way, and nothing of the undo itself."""
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)

    async def undo(_edit: DocumentEdit) -> ApplyAnswer:
        buffer.set_text(reported)
        desk.editor.report(buffer)
        desk.file("a.txt", TEXT)
        desk.editor.close(buffer)
        return ApplyAnswer(True)

    desk.editor.on_apply = undo
    assert (await desk.sets.undo(hunk, UndoParams(hunk_id=hunk))).undone == (hunk,)
    assert desk.states[hunk] == "undone"


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("style", ["whole", "one_span"])
async def test_a_brace_of_the_users_is_not_taken_for_a_refused_edit(
    tmp_path: Path, style: ChangeStyle, eol: str
) -> None:
    before = f"if (a){eol}  b{eol}c{eol}"
    desk = Desk(tmp_path, style=style)
    buffer = desk.editor.open(desk.file("a.txt", before), before)

    async def type_and_refuse(_edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.on_apply = desk.editor.obey
        buffer.set_text(before.replace(")", ") {}").replace("c", "C"))
        desk.editor.report(buffer)
        return ApplyAnswer(False, "the document has changed")

    await desk.edit("a.txt", ("  b\n", "}\n  b\n"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.on_apply = type_and_refuse
    assert (await desk.accept(hunk)).applied == (hunk,)
    assert buffer.text == f"if (a) {{}}{eol}}}{eol}  b{eol}C{eol}"
    await desk.sets.undo(hunk, UndoParams(hunk_id=hunk))
    assert buffer.text == f"if (a) {{}}{eol}  b{eol}C{eol}"


async def test_what_diverged_is_found_where_the_user_has_put_its_line(desk: Desk) -> None:
    buffer = open_text(desk)
    mangle(desk, buffer)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    assert desk.states[hunk] == "diverged"
    at = buffer.text.index("mangled")
    desk.editor.type(buffer, at, "", delete=len("mangled two\n"))
    desk.editor.type(buffer, len(buffer.text), "two\n")
    desk.editor.on_apply = desk.editor.obey
    assert (await desk.accept(hunk)).applied == (hunk,)
    assert buffer.text == TEXT.replace("two\n", "") + "TWO\n"


async def test_an_unconfirmed_edit_that_is_saved_is_confirmed(desk: Desk) -> None:
    desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("one", "ONE"))
    await desk.accept(desk.hunks[0].hunk_id)
    assert "unconfirmed" in str(desk.sets.take_reminders())
    desk.file("b.txt", TEXT.replace("one", "ONE") + "seven\n")
    assert "accepted and applied" in str(desk.sets.take_reminders())


async def test_a_decision_behind_one_that_failed_does_not_try_again(desk: Desk) -> None:
    """Nobody has decided on the edit since it was refused."""
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.on_apply = refuse
    first, second = await asyncio.gather(desk.accept(hunk), desk.accept(hunk))
    sent = len(desk.editor.edits)
    assert first.conflicts == second.conflicts == (hunk,)
    await desk.accept(hunk)
    assert len(desk.editor.edits) == 2 * sent, "one more decision, as many attempts as the first"


async def test_what_was_applied_in_a_file_that_is_gone_cannot_be_taken_back(desk: Desk) -> None:
    path = desk.file("a.txt", TEXT)
    desk.editor.open(path, TEXT)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    desk.file("a.txt", TEXT.replace("two", "TWO"))
    fresh = again(desk)
    (desk.root / "a.txt").unlink()
    result = await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))
    assert [one.hunk_id for one in result.conflicts] == [hunk]
    assert result.undone == ()


# ---- the user's own text -------------------------------------------------------------------------


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("old", ["two", "one\ntwo", "six"])
async def test_a_replacement_without_its_line_end_leaves_the_next_line_alone(
    desk: Desk, eol: str, old: str
) -> None:
    text = TEXT.replace("\n", eol)
    buffer = desk.editor.open(desk.file("a.txt", ""), text)
    await desk.edit("a.txt", (old, "NEW"))
    hunk = desk.hunks[0].hunk_id
    await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="my own"))
    assert buffer.text == text.replace(old.replace("\n", eol), "my own")
    assert desk.states[hunk] == "replaced"


async def test_a_replacement_of_an_insertion_stays_a_line(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two\n", "two\nNEW\n"))
    hunk = desk.hunks[0].hunk_id
    await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="own"))
    assert buffer.text == TEXT.replace("two\n", "two\nown\n")


async def test_a_replacement_of_a_last_line_without_end_gets_none(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.txt", ""), "one\nlast")
    await desk.edit("a.txt", ("last", "LAST"))
    hunk = desk.hunks[0].hunk_id
    await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="own"))
    assert buffer.text == "one\nown"


# ---- what failed may be tried again --------------------------------------------------------------


async def test_after_the_users_undo_a_conflict_can_be_accepted(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.type(buffer, 5, "x")
    assert (await desk.accept(hunk)).conflicts == (hunk,)
    desk.editor.type(buffer, 5, "", delete=1)
    result = await desk.accept(hunk)
    assert (result.applied, result.state) == ((hunk,), "decided")
    assert buffer.text == TEXT.replace("two", "TWO")
    assert "accepted and applied" in str(desk.sets.take_reminders())


async def test_after_a_file_was_unlocked_its_hunk_can_be_accepted(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.on_apply = refuse
    assert (await desk.accept(hunk)).conflicts == (hunk,)
    desk.editor.on_apply = desk.editor.obey
    assert (await desk.accept(hunk)).applied == (hunk,)
    assert buffer.text == TEXT.replace("two", "TWO")


async def test_a_closed_tab_is_not_a_file_that_is_gone(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.close(buffer)
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert (result.applied, result.verified) == ((desk.hunks[0].hunk_id,), None)
    assert desk.editor.edits[0].version is None


async def test_a_tab_closed_with_the_edit_on_its_way_gets_it_once_more(desk: Desk) -> None:
    buffer = open_text(desk)

    async def close_first(edit: DocumentEdit) -> ApplyAnswer:
        if edit.version is None:
            return ApplyAnswer(True)
        desk.editor.close(buffer)
        return ApplyAnswer(False)

    desk.editor.on_apply = close_first
    await desk.edit("a.txt", ("two", "TWO"))
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.applied == (desk.hunks[0].hunk_id,)
    assert [edit.version for edit in desk.editor.edits] == [1, None]


async def test_unsaved_words_discarded_with_their_tab_are_no_base(desk: Desk) -> None:
    buffer = open_text(desk)
    desk.editor.type(buffer, 0, "zero\n")
    await desk.edit("a.txt", ("six", "SIX"))
    desk.editor.close(buffer)
    assert (await desk.accept(desk.hunks[0].hunk_id)).applied
    assert desk.editor.edits[0].edits[0].range.start.line == 5


async def test_what_the_text_shows_already_is_applied_when_it_is_accepted(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.type(buffer, 4, "TWO", delete=3)
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert (result.applied, desk.editor.edits) == ((desk.hunks[0].hunk_id,), [])


async def test_the_diff_of_a_conflict_is_true_of_the_text(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("five", "FIVE"))
    desk.editor.type(buffer, buffer.text.index("five"), "my ")
    await desk.accept(desk.hunks[0].hunk_id)
    (view,) = desk.sets.get(desk.change_set_id).files[0].hunks
    assert view.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -5 +5 @@\n-my five\n+FIVE\n"


# ---- what is left of a conflict ------------------------------------------------------------------


async def test_a_merge_is_offered_and_never_applied_unasked(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two\nthree", "TWO\nTHREE"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.type(buffer, buffer.text.index("three"), "mine\n")
    mine = buffer.text
    assert (await desk.accept(hunk)).conflicts == (hunk,)
    offer = desk.hunks[1]
    assert (offer.merge_of, offer.state) == (hunk, "proposed")
    assert (offer.old_text, offer.new_text) == ("two\nmine\nthree\n", "TWO\nmine\nTHREE\n")
    assert buffer.text == mine
    rest = await desk.decide(rest="accept", seen_seq=len(desk.events))
    assert (rest.applied, buffer.text) == ((), mine)  # it must be named
    assert (await desk.accept(offer.hunk_id)).applied == (offer.hunk_id,)
    assert buffer.text == mine.replace("two", "TWO").replace("three", "THREE")


async def test_what_meets_the_users_change_is_left_out_of_the_merge(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two\nthree", "TWO\nTHREE"))
    desk.editor.type(buffer, buffer.text.index("three"), "my ")
    await desk.accept(desk.hunks[0].hunk_id)
    offer = desk.hunks[1]
    assert offer.new_text == "TWO\nmy three\n"
    assert "1 of its changes meet yours" in str(offer.reason)


async def test_nothing_is_offered_where_nothing_is_left(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.type(buffer, buffer.text.index("two"), "my ")
    await desk.accept(desk.hunks[0].hunk_id)
    assert len(desk.hunks) == 1


# ---- before the decision -------------------------------------------------------------------------


async def test_a_hunk_that_fits_no_more_is_told_before_the_decision(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("five", "FIVE"))
    first, second = (hunk.hunk_id for hunk in desk.hunks)
    desk.editor.type(buffer, buffer.text.index("two"), "x")
    await desk.until(lambda: len(desk.updates) > 1)
    (reported,) = desk.updates[-1].files[0].hunks
    assert (reported.hunk_id, reported.state, reported.fits) == (first, "proposed", False)
    fits = {h.hunk_id: h.fits for h in desk.sets.get(desk.change_set_id).files[0].hunks}
    assert fits == {first: False, second: None}
    desk.editor.type(buffer, buffer.text.index("xtwo"), "", delete=1)
    await desk.until(lambda: len(desk.updates) > 2)
    (reported,) = desk.updates[-1].files[0].hunks
    assert (reported.hunk_id, reported.fits) == (first, True)


# ---- after a restart -----------------------------------------------------------------------------


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "only in the buffer"])
@pytest.mark.parametrize(
    "edits",
    [
        [("two", "TWO")],
        [("two\n", "two\n}\n")],
        [("two\n", ""), ("five", "FIVE\nV")],
        [("one\n", "one\none\n")],
    ],
)
async def test_an_edit_on_its_way_when_the_sidecar_died_is_found(
    desk: Desk, edits: list[tuple[str, str]], saved: bool
) -> None:
    open_text(desk)
    await desk.edit("a.txt", *edits)
    after = desk.text("a.txt")
    hunks = [hunk.hunk_id for hunk in desk.hunks]
    if saved:
        desk.file("a.txt", after)
    fresh = again(desk)
    if not saved:
        assert fresh.updates == []  # on disk nothing has happened
        fresh.editor.open(fresh.root / "a.txt", after)
    await fresh.until(lambda: len(fresh.states) == len(hunks))
    assert fresh.states == dict.fromkeys(hunks, "applied")
    fresh.enter("t-2", path=("t-1",))
    assert "accepted and applied" in str(fresh.sets.take_reminders())
    if saved:
        fresh.editor.open(fresh.root / "a.txt", after)
    undone = await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))
    assert undone.conflicts == ()
    (buffer,) = fresh.editor.buffers.values()
    assert buffer.text == TEXT


async def test_what_the_killed_sidecar_never_sent_still_waits(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    fresh = again(desk)
    buffer = fresh.editor.open(fresh.root / "a.txt", TEXT)
    fresh.editor.type(buffer, 0, "zero\n")
    await asyncio.sleep(0)
    assert fresh.updates == []
    change_set = fresh.sets.list().change_sets[0].change_set_id
    hunk = fresh.sets.get(change_set).files[0].hunks[0]
    assert (hunk.state, hunk.fits) == ("proposed", None)


async def test_the_users_own_line_elsewhere_is_not_taken_for_an_edit_that_waits(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "two\nfrom menu import price"))
    fresh = again(desk)
    buffer = fresh.editor.open(fresh.root / "a.txt", TEXT)
    fresh.editor.type(buffer, 0, "from menu import price\n")
    params = DecideParams(change_set_id=desk.change_set_id, rest="accept", seen_seq=99)
    assert (await fresh.sets.decide(params)).applied == (desk.hunks[0].hunk_id,)
    both = TEXT.replace("two", "two\nfrom menu import price")
    assert buffer.text == f"from menu import price\n{both}"


async def test_a_first_line_that_waits_is_found_though_the_file_has_grown(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("one", "ONE"))
    desk.file("a.txt", TEXT + "seven\n")
    fresh = again(desk)
    buffer = fresh.editor.open(fresh.root / "a.txt", TEXT + "seven\n")
    params = DecideParams(change_set_id=desk.change_set_id, rest="accept", seen_seq=99)
    assert (await fresh.sets.decide(params)).applied == (desk.hunks[0].hunk_id,)
    assert buffer.text == TEXT.replace("one", "ONE") + "seven\n"


async def test_what_was_applied_is_taken_back_after_a_restart(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("five\n", ""))
    await desk.accept(*(hunk.hunk_id for hunk in desk.hunks))
    desk.file("a.txt", buffer.text)
    fresh = again(desk)
    fresh.editor.open(fresh.root / "a.txt", buffer.text)
    result = await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))
    assert len(result.undone) == 2
    assert [one.text for one in fresh.editor.buffers.values()] == [TEXT]


async def test_the_users_own_text_is_known_after_a_restart(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six\n", "six\nseven\n"))
    for hunk, own in zip(desk.hunks, ("my own", "mine"), strict=True):
        await desk.decide(HunkDecision(hunk_id=hunk.hunk_id, action="replace", new_text=own))
    assert buffer.text == TEXT.replace("two", "my own") + "mine\n"
    desk.file("a.txt", buffer.text)
    fresh = again(desk)
    fresh.enter("t-2", path=("t-1",))
    reported = str(fresh.sets.take_reminders())
    assert "The text is now:\n```\nmy own\n```" in reported
    assert "The text is now:\n```\nmine\n```" in reported
    fresh.editor.open(fresh.root / "a.txt", buffer.text)
    result = await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))
    assert len(result.undone) == 2
    assert [one.text for one in fresh.editor.buffers.values()] == [TEXT]
    assert len((await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))).restored) == 2
    assert [one.text for one in fresh.editor.buffers.values()] == [buffer.text]
    assert set(fresh.states.values()) == {"replaced"}


async def test_what_diverged_is_told_after_a_restart(desk: Desk) -> None:
    buffer = open_text(desk)
    mangle(desk, buffer)
    await desk.edit("a.txt", ("two", "TWO"))
    await desk.accept(desk.hunks[0].hunk_id)
    assert list(desk.states.values()) == ["diverged"]
    fresh = again(desk)
    fresh.enter("t-2", path=("t-1",))
    assert "-TWO\n+mangled two\n" in str(fresh.sets.take_reminders())


async def test_a_rejected_edit_that_stands_in_a_closed_file_is_applied(desk: Desk) -> None:
    """An earlier process had sent it, and the file was saved after this one began."""
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    fresh = again(desk)
    desk.file("a.txt", buffer.text.replace("two", "TWO"))
    change_set = fresh.sets.list().change_sets[0].change_set_id
    decision = HunkDecision(hunk_id=hunk, action="reject")
    result = await fresh.sets.decide(DecideParams(change_set_id=change_set, decisions=(decision,)))
    assert (result.applied, result.rejected) == ((hunk,), ())


async def test_a_conflict_of_an_earlier_process_can_be_accepted(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.on_apply = refuse
    await desk.accept(hunk)
    fresh = again(desk)
    buffer = fresh.editor.open(fresh.root / "a.txt", TEXT)
    change_set = fresh.sets.list().change_sets[0].change_set_id
    decision = HunkDecision(hunk_id=hunk, action="accept")
    result = await fresh.sets.decide(DecideParams(change_set_id=change_set, decisions=(decision,)))
    assert result.applied == (hunk,)
    assert buffer.text == TEXT.replace("two", "TWO")


async def test_a_created_file_is_taken_back_after_a_restart(desk: Desk) -> None:
    await desk.use("propose_file", action="create", path="n.txt", content="new\n")
    await desk.accept(desk.hunks[0].hunk_id)
    desk.file("n.txt", "new\n")
    fresh = again(desk)
    result = await fresh.sets.undo("t-1", UndoParams(turn_id="t-1"))
    assert len(result.undone) == 1
    assert not (fresh.root / "n.txt").exists()


# ---- late ----------------------------------------------------------------------------------------


async def test_a_stale_hunk_that_the_editor_saved_later_is_applied(desk: Desk) -> None:
    """It was closed on the way; the buffer lived on unseen, and was saved a minute later."""
    buffer = open_text(desk)

    async def close(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.close(buffer)
        return ApplyAnswer(True)

    desk.editor.on_apply = close
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    assert (await desk.accept(hunk)).stale == (hunk,)
    assert "not applied" in str(desk.sets.take_reminders())
    desk.editor.open(desk.root / "a.txt", TEXT.replace("two", "TWO"))
    await desk.until(lambda: desk.states[hunk] == "applied")
    assert "accepted and applied" in str(desk.sets.take_reminders())


async def test_a_change_that_is_told_between_two_attempts_is_not_made_twice(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, settle_seconds=0.01)
    buffer = desk.editor.open(desk.file("a.txt", ""), "one\ntwo\n")
    telling: list[asyncio.Task[None]] = []

    async def tell_once_nobody_waits() -> None:
        while desk.sets._services.in_flight:  # noqa: ASYNC110
            await asyncio.sleep(0)
        desk.editor.report(buffer)

    async def answer_first(edit: DocumentEdit) -> ApplyAnswer:
        done = desk.editor.do(edit)
        if not telling:
            telling.append(asyncio.create_task(tell_once_nobody_waits()))
        else:
            desk.editor.report(buffer)
        return ApplyAnswer(done)

    desk.editor.on_apply = answer_first
    await desk.edit("a.txt", ("two\n", "two\nthree\n"))
    hunk = desk.hunks[0].hunk_id
    assert (await desk.accept(hunk)).applied == (hunk,)
    assert buffer.text == "one\ntwo\nthree\n"
    desk.editor.on_apply = desk.editor.obey
    assert (await desk.sets.undo(hunk, UndoParams(hunk_id=hunk))).undone == (hunk,)
    assert buffer.text == "one\ntwo\n"


async def test_an_undo_that_shows_late_is_an_undo(tmp_path: Path) -> None:
    desk = Desk(tmp_path, settle_seconds=0.01)
    buffer = desk.editor.open(desk.file("a.txt", ""), "one\ntwo\n")
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    ask = UndoParams(hunk_id=hunk)
    for text, now in (("two", "undone"), ("TWO", "applied")):

        async def keep_silent(edit: DocumentEdit) -> ApplyAnswer:
            return ApplyAnswer(desk.editor.do(edit))

        desk.editor.on_apply = keep_silent
        reported = await desk.sets.undo(hunk, ask)
        assert (reported.undone, reported.restored) == ((), ())
        desk.editor.report(buffer)
        assert (buffer.text, desk.states[hunk]) == (f"one\n{text}\n", now)
    desk.editor.on_apply = desk.editor.obey
    assert (await desk.sets.undo(hunk, ask)).undone == (hunk,)
    assert buffer.text == "one\ntwo\n"


async def test_what_was_discarded_among_equal_lines_is_a_conflict(desk: Desk) -> None:
    """Nothing of it is taken for the user's own lines, though lines like them stand around."""
    lines = "end\n\n\nend\n}\n}\nend\nend\n"
    path = desk.file("b.txt", lines)
    await desk.edit("b.txt", ("end\n\n\nend", "X\nX\n\nend"))
    hunk = desk.hunks[0].hunk_id
    assert (await desk.accept(hunk)).verified is None
    buffer = desk.editor.open(path, lines)
    desk.editor.type(buffer, buffer.text.index("}"), "user\n")
    await desk.until(lambda: desk.states[hunk] == "conflict")
    assert (await desk.accept(hunk)).verified is True
    assert buffer.text == "X\nX\n\nend\nuser\n}\n}\nend\nend\n"


async def test_an_undo_that_was_discarded_is_none(desk: Desk) -> None:
    path = desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    path.write_text(TEXT.replace("two", "TWO"), newline="")  # saved, and closed again
    undo = UndoParams(hunk_id=hunk)
    assert (await desk.sets.undo(hunk, undo)).undone == (hunk,)
    buffer = desk.editor.open(path, path.read_text())
    await desk.until(lambda: desk.states[hunk] == "applied")
    assert (await desk.sets.undo(hunk, undo)).undone == (hunk,)
    assert buffer.text == TEXT
