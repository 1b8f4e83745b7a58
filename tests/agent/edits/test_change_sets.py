"""From a proposal to the editor's buffer: decisions, verification, what the model is told."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kode_sidecar.agent.edits.services import EditLocks
from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from kode_sidecar.agent.permissions import UserQuestions
from kode_sidecar.core.domain.agent_event import (
    ChangeSetUpdated,
    DecisionRequested,
    DecisionResolved,
)
from kode_sidecar.core.protocol.change_set import DecideParams, HunkDecision, UndoParams
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.errors import KodeError
from tests.support.edit_buffer import Buffer, ChangeStyle
from tests.support.edit_editor import HANG, Desk

DECISIONS = DecisionRequested | DecisionResolved
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def open_text(desk: Desk, text: str = TEXT) -> Buffer:
    return desk.editor.open(desk.file("a.txt", "on disk\n"), text)


async def test_a_proposal_is_announced_and_nothing_is_sent(desk: Desk) -> None:
    buffer = open_text(desk)
    outcome = await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    assert buffer.text == TEXT
    assert desk.editor.edits == []
    assert outcome.ok
    assert "not yet applied" in outcome.content
    assert "-two\n+TWO" in outcome.content
    (event,) = desk.updates
    assert event.state == "proposed"
    assert event.turn_id == "t-1"
    (file,) = event.files
    assert (file.path, file.version) == ("a.txt", 1)
    assert [(h.old_text, h.new_text, h.kind) for h in file.hunks] == [
        ("two\n", "TWO\n", "modify"),
        ("six\n", "SIX\n", "modify"),
    ]
    first = file.hunks[0].range
    assert first is not None
    assert (first.start.line, first.end.line) == (1, 2)
    assert desk.text("a.txt") == TEXT.replace("two", "TWO").replace("six", "SIX")


async def test_accept_one_and_reject_the_other(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    yes, no = desk.hunks
    result = await desk.decide(
        HunkDecision(hunk_id=yes.hunk_id, action="accept"),
        HunkDecision(hunk_id=no.hunk_id, action="reject", comment="six is fine"),
    )
    assert (result.applied, result.rejected) == ((yes.hunk_id,), (no.hunk_id,))
    assert (result.state, result.verified) == ("decided", True)
    assert buffer.text == TEXT.replace("two", "TWO")
    assert desk.states == {yes.hunk_id: "applied", no.hunk_id: "rejected"}
    assert desk.saves == 1
    reminder = desk.sets.take_reminders()
    assert reminder is not None
    assert "`two`: accepted and applied." in reminder
    assert "`six`: rejected by the user: six is fine" in reminder
    assert desk.sets.take_reminders() is None
    assert desk.text("a.txt") == buffer.text


@pytest.mark.parametrize("style", ["minimal", "descending", "whole", "one_span"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_wide_characters_before_the_edit_in_a_crlf_buffer(
    tmp_path: Path, encoding: PositionEncoding, style: ChangeStyle
) -> None:
    desk = Desk(tmp_path, encoding, style)
    text = "第一行 😀\r\n𝒳 = 'é' + a\r\n最后 b\r\n"
    buffer = open_text(desk, text)
    await desk.edit("a.txt", ("𝒳 = 'é' + a", "𝒳 = 'é' + 中"), ("最后 b\n", "最后 b\n新 😀\n"))
    result = await desk.accept(*(h.hunk_id for h in desk.hunks))
    assert buffer.text == "第一行 😀\r\n𝒳 = 'é' + 中\r\n最后 b\r\n新 😀\r\n"
    assert result.verified is True
    assert set(desk.states.values()) == {"applied"}
    (sent,) = desk.editor.edits
    assert sent.version == 1


async def test_hunks_move_with_the_users_typing(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    desk.editor.type(buffer, 0, "zero\n")
    desk.editor.type(buffer, buffer.text.index("four"), "4", delete=4)
    view = desk.sets.get(desk.change_set_id)
    lines = [h.range.start.line for h in view.files[0].hunks if h.range]
    assert lines == [2, 6]
    assert "+TWO" in str(view.diff)
    await desk.accept(*(h.hunk_id for h in desk.hunks))
    assert buffer.text == "zero\none\nTWO\nthree\n4\nfive\nSIX\nseven\n"
    assert [edit.version for edit in desk.editor.edits] == [3]  # O7


async def test_a_hunk_the_user_typed_into_is_a_conflict_and_nothing_is_sent(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.type(buffer, 5, "x")
    typed = buffer.text
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == (desk.hunks[0].hunk_id,)
    assert desk.editor.edits == []
    assert buffer.text == typed
    assert "changed meanwhile" in str(desk.sets.take_reminders())


async def test_typing_that_was_taken_back_is_no_conflict(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.type(buffer, 5, "x")
    desk.editor.type(buffer, 5, "", delete=1)
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.applied == (desk.hunks[0].hunk_id,)


async def test_the_users_own_text_replaces_a_hunk(desk: Desk) -> None:
    buffer = open_text(desk, TEXT.replace("\n", "\r\n"))
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    result = await desk.decide(HunkDecision(hunk_id=hunk, action="replace", new_text="2\n2\n"))
    assert result.applied == (hunk,)
    assert desk.states == {hunk: "replaced"}
    assert buffer.text == TEXT.replace("two\n", "2\n2\n").replace("\n", "\r\n")
    assert "The text is now:\n```\n2\n2\n```" in str(desk.sets.take_reminders())


# ---- the editor's answer is not proof ----------------------------------------------------------


async def test_an_edit_that_was_dropped_is_sent_once_more(desk: Desk) -> None:
    buffer = open_text(desk)

    async def drop_first(edit: DocumentEdit) -> ApplyAnswer:
        if len(desk.editor.edits) == 1:
            return ApplyAnswer(True)
        return await desk.editor.obey(edit)

    desk.editor.on_apply = drop_first
    await desk.edit("a.txt", ("two", "TWO"))
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.verified is True
    assert buffer.text == TEXT.replace("two", "TWO")
    assert len(desk.editor.edits) == 2


async def test_an_edit_that_never_arrives_is_a_conflict(desk: Desk) -> None:
    buffer = open_text(desk)

    async def drop(edit: DocumentEdit) -> ApplyAnswer:
        return ApplyAnswer(True)

    desk.editor.on_apply = drop
    await desk.edit("a.txt", ("two", "TWO"))
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == (desk.hunks[0].hunk_id,)
    assert len(desk.editor.edits) == 2
    assert buffer.text == TEXT
    (warning,) = desk.editor.warnings
    assert "a.txt" in warning
    assert "no didChange shows it" in warning


async def test_the_reason_of_a_refused_edit_is_told(desk: Desk) -> None:
    open_text(desk)

    async def refuse(edit: DocumentEdit) -> ApplyAnswer:
        return ApplyAnswer(False, "the buffer is read-only")

    desk.editor.on_apply = refuse
    await desk.edit("a.txt", ("two", "TWO"))
    await desk.accept(desk.hunks[0].hunk_id)
    assert desk.states == {desk.hunks[0].hunk_id: "conflict"}
    (warning,) = desk.editor.warnings
    assert warning.endswith("the editor did not apply it: the buffer is read-only")


async def test_a_refusal_does_not_cost_the_wait_of_a_yes(tmp_path: Path) -> None:
    wait_of_a_yes = 6.0
    desk = Desk(tmp_path, settle_seconds=wait_of_a_yes)
    open_text(desk)

    async def refuse(edit: DocumentEdit) -> ApplyAnswer:
        return ApplyAnswer(False, "stale")

    desk.editor.on_apply = refuse
    await desk.edit("a.txt", ("two", "TWO"))
    async with asyncio.timeout(wait_of_a_yes):
        result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == (desk.hunks[0].hunk_id,)
    assert len(desk.editor.edits) == 2


async def test_an_edit_without_an_answer_does_not_keep_others_waiting_for_ever(
    tmp_path: Path,
) -> None:
    locks = EditLocks(answer_seconds=0.05)
    desk = Desk(tmp_path, locks=locks)
    other = Desk(tmp_path, locks=locks)
    open_text(desk)
    buffer = open_text(other)
    never = asyncio.Event()

    async def hang(edit: DocumentEdit) -> ApplyAnswer:
        await never.wait()
        return ApplyAnswer(True)

    desk.editor.on_apply = hang
    await desk.edit("a.txt", ("two", "TWO"))
    await other.edit("a.txt", ("six", "SIX"))
    stuck = asyncio.create_task(desk.accept(desk.hunks[0].hunk_id))
    await desk.until(lambda: desk.editor.edits)
    assert (await other.accept(other.hunks[0].hunk_id)).verified is True
    assert (await stuck).conflicts == (desk.hunks[0].hunk_id,)
    assert len(desk.editor.edits) == 1  # what may still be applied is not sent twice
    assert buffer.text == TEXT.replace("six", "SIX")
    desk.sets.close()


async def test_an_answer_of_no_counts_as_little_as_a_yes(desk: Desk) -> None:
    open_text(desk)

    async def deny_and_do(edit: DocumentEdit) -> ApplyAnswer:
        await desk.editor.obey(edit)
        return ApplyAnswer(False, "no")

    desk.editor.on_apply = deny_and_do
    await desk.edit("a.txt", ("two", "TWO"))
    assert (await desk.accept(desk.hunks[0].hunk_id)).applied == (desk.hunks[0].hunk_id,)


async def test_the_text_proves_an_edit_before_any_answer(desk: Desk) -> None:
    open_text(desk)
    never = asyncio.Event()

    async def do_in_silence(edit: DocumentEdit) -> ApplyAnswer:
        await desk.editor.obey(edit)
        await never.wait()
        return ApplyAnswer(True)

    desk.editor.on_apply = do_in_silence
    await desk.edit("a.txt", ("two", "TWO"))
    assert (await desk.accept(desk.hunks[0].hunk_id)).verified is True
    assert desk.states == {desk.hunks[0].hunk_id: "applied"}
    desk.sets.close()


async def test_a_stale_version_is_rebased_and_sent_again(desk: Desk) -> None:
    buffer = open_text(desk)

    async def type_first(edit: DocumentEdit) -> ApplyAnswer:
        if len(desk.editor.edits) == 1:
            buffer.type(0, "zero\n")
        return await desk.editor.obey(edit)

    desk.editor.on_apply = type_first
    await desk.edit("a.txt", ("two", "TWO"))
    assert (await desk.accept(desk.hunks[0].hunk_id)).verified is True
    assert desk.states == {desk.hunks[0].hunk_id: "applied"}
    assert buffer.text == "zero\n" + TEXT.replace("two", "TWO")
    assert [edit.version for edit in desk.editor.edits] == [1, 2]
    assert desk.editor.warnings == []


@pytest.mark.parametrize("style", ["minimal", "descending", "whole", "one_span"])
async def test_a_change_may_hold_our_edit_and_the_users_keys(
    tmp_path: Path, style: ChangeStyle
) -> None:
    desk = Desk(tmp_path, style=style)
    buffer = open_text(desk)

    async def do_and_type(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.do(edit)
        buffer.type(0, "zero\n")
        buffer.type(buffer.text.index("four"), "4", delete=4)
        desk.editor.report(buffer)
        return ApplyAnswer(True)

    desk.editor.on_apply = do_and_type
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    result = await desk.accept(*(h.hunk_id for h in desk.hunks))
    assert (set(desk.states.values()), result.verified) == ({"applied"}, True)
    assert buffer.text == "zero\none\nTWO\nthree\n4\nfive\nSIX\nseven\n"
    assert desk.text("a.txt") == buffer.text


async def test_another_text_in_the_place_is_diverged_and_told(desk: Desk) -> None:
    buffer = open_text(desk)

    async def do_otherwise(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.type(buffer, 4, "Two", delete=3)
        return ApplyAnswer(True)

    desk.editor.on_apply = do_otherwise
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    result = await desk.accept(hunk)
    assert (result.conflicts, result.verified) == ((hunk,), False)
    assert desk.states[hunk] == "diverged"
    assert "```\nTwo\n```" in str(desk.sets.take_reminders())
    assert len(desk.editor.edits) == 1
    assert "is not what the edit makes" in desk.editor.warnings[0]


async def test_an_inserted_line_told_from_inside_its_neighbour_is_recognised(desk: Desk) -> None:
    buffer = open_text(desk, "a\n\nfoo(1)\n\nfoo(3)\n")

    async def slide(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.do(edit)
        new = buffer.text
        entry = {
            "range": {"start": {"line": 4, "character": 4}, "end": {"line": 4, "character": 4}},
            "text": "2)\n\nfoo(",
        }
        desk.editor.documents.change(buffer.uri, buffer.version, [entry])
        document = desk.workspace.document("a.txt", purpose="read")
        assert document.text == new
        return ApplyAnswer(True)

    desk.editor.on_apply = slide
    await desk.edit("a.txt", ("\nfoo(3)", "\nfoo(2)\n\nfoo(3)"))
    result = await desk.accept(*(h.hunk_id for h in desk.hunks))
    assert (set(desk.states.values()), result.verified) == ({"applied"}, True)


async def test_a_neighbouring_hunk_stays_when_one_is_accepted(desk: Desk) -> None:
    open_text(desk, "x\nx\nb\n")
    await desk.edit("a.txt", ("x\nx\nb\n", "x\nx\nx\nB\n"))
    await desk.edit("a.txt", ("B", "C"))
    assert desk.text("a.txt") == "x\nx\nx\nC\n"


async def test_a_document_lost_on_the_way_is_stale(desk: Desk) -> None:
    buffer = open_text(desk)

    async def lose(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.documents.mark_unsynced(buffer.uri, "a test")
        return ApplyAnswer(False)

    desk.editor.on_apply = lose
    await desk.edit("a.txt", ("two", "TWO"))
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.stale == (desk.hunks[0].hunk_id,)


async def test_a_document_lost_before_the_decision_is_stale(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.documents.mark_unsynced(buffer.uri, "a test")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.stale == (desk.hunks[0].hunk_id,)
    assert desk.editor.edits == []
    assert "out of step" in str(desk.sets.take_reminders())


# ---- files that are not open -------------------------------------------------------------------


async def test_a_closed_file_gets_an_edit_without_version_and_stays_unconfirmed(
    desk: Desk,
) -> None:
    desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO"))
    assert desk.updates[0].files[0].version is None
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.applied == (desk.hunks[0].hunk_id,)
    assert result.verified is None
    assert desk.editor.edits[0].version is None
    assert "unconfirmed" in str(desk.sets.take_reminders())


async def test_what_was_sent_for_a_closed_file_counts_until_it_is_saved_or_opened(
    desk: Desk,
) -> None:
    path = desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO\ndos"))
    await desk.accept(desk.hunks[0].hunk_id)
    after = TEXT.replace("two", "TWO\ndos")
    assert desk.text("b.txt") == after
    await desk.edit("b.txt", ("one", "ONE"))
    await desk.accept(desk.hunks[1].hunk_id)  # above: right whether the editor has the first or not
    assert len(desk.editor.edits) == 2
    desk.file("b.txt", "saved\n")
    assert desk.text("b.txt") == "saved\n"
    desk.editor.open(path, "open\n")
    assert desk.text("b.txt") == "open\n"


async def test_a_closed_file_that_the_editor_opens_for_the_edit_is_verified(desk: Desk) -> None:
    path = desk.file("b.txt", TEXT)

    async def open_and_do(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.open(path, TEXT)
        return await desk.editor.obey(edit)

    desk.editor.on_apply = open_and_do
    await desk.edit("b.txt", ("two", "TWO"))
    assert (await desk.accept(desk.hunks[0].hunk_id)).verified is True
    assert desk.states == {desk.hunks[0].hunk_id: "applied"}


async def test_a_closed_file_changed_on_disk_is_rebased_by_lines(desk: Desk) -> None:
    desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO"), ("six", "SIX"))
    desk.file("b.txt", "zero\n" + TEXT.replace("six", "6"))
    first, second = (h.hunk_id for h in desk.hunks)
    result = await desk.accept(first, second)
    assert (result.applied, result.conflicts) == ((first,), (second,))
    assert desk.editor.edits[0].edits[0].range.start.line == 2


async def test_a_deleted_file_is_stale(desk: Desk) -> None:
    path = desk.file("b.txt", TEXT)
    await desk.edit("b.txt", ("two", "TWO"))
    path.unlink()
    assert (await desk.accept(desk.hunks[0].hunk_id)).stale == (desk.hunks[0].hunk_id,)


async def test_a_refused_edit_of_a_closed_file_is_a_conflict(desk: Desk) -> None:
    async def refuse(edit: DocumentEdit) -> ApplyAnswer:
        return ApplyAnswer(False, "no")

    desk.file("b.txt", TEXT)
    desk.editor.on_apply = refuse
    await desk.edit("b.txt", ("two", "TWO"))
    assert (await desk.accept(desk.hunks[0].hunk_id)).conflicts == (desk.hunks[0].hunk_id,)


# ---- what a decision means ---------------------------------------------------------------------


async def test_rest_covers_only_what_was_seen(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    seen = len(desk.events)
    await desk.edit("a.txt", ("six", "SIX"))
    first, second = (h.hunk_id for h in desk.hunks)
    result = await desk.decide(rest="accept", seen_seq=seen)
    assert (result.applied, result.state) == ((first,), "partly_decided")
    assert buffer.text == TEXT.replace("two", "TWO")
    assert (await desk.decide(rest="reject", seen_seq=99)).rejected == (second,)


async def test_rest_accept_leaves_sensitive_hunks(desk: Desk) -> None:  # W11
    desk.editor.answer = "allow-session"
    desk.editor.open(desk.file("package.json", ""), '{\n  "a": 0\n}\n')
    await desk.edit("package.json", ('"a": 0', '"a": 1'))
    await desk.edit("package.json", ('"a": 1', '"a": 2'))
    first, hunk = desk.hunks
    assert (first.flags, hunk.flags) == (("unread", "sensitive"), ("sensitive",))
    assert (await desk.decide(rest="accept", seen_seq=99)).applied == ()
    assert (await desk.accept(hunk.hunk_id)).applied == (hunk.hunk_id,)


async def test_a_sensitive_target_that_is_refused_is_never_announced(desk: Desk) -> None:  # W11
    desk.editor.answer = "reject"
    desk.editor.open(desk.file("package.json", ""), "{}\n")
    with pytest.raises(KodeError) as refused:
        await desk.edit("package.json", ("{}", "[]"))
    assert refused.value.code == "Denied"
    assert "Do not try again" in refused.value.message
    assert desk.updates == []
    assert desk.text("package.json") == "{}\n"


async def test_a_dry_run_acts_on_nothing(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    desk.editor.type(buffer, 5, "x")
    before = len(desk.events)
    first, second = (h.hunk_id for h in desk.hunks)
    result = await desk.decide(rest="accept", seen_seq=99, dry_run=True)
    assert (result.applied, result.conflicts) == ((second,), (first,))
    assert (result.state, result.verified) == ("proposed", None)
    assert len(desk.events) == before
    assert desk.editor.edits == []


async def test_wrong_decisions_name_their_place(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    for decision, place in [
        (HunkDecision(hunk_id="nope", action="accept"), "$.decisions[0].hunkId"),
        (HunkDecision(hunk_id=hunk, action="replace"), "$.decisions[0].newText"),
    ]:
        with pytest.raises(KodeError) as wrong:
            await desk.decide(decision)
        assert wrong.value.code == "InvalidParams"
        assert place in wrong.value.message
    for rest in ("accept", "reject"):
        with pytest.raises(KodeError) as unseen:
            await desk.decide(rest=rest)
        assert unseen.value.code == "InvalidParams"
        assert unseen.value.message.startswith("$.seenSeq: ")
    with pytest.raises(KodeError) as unknown:
        await desk.sets.decide(DecideParams(change_set_id="nope"))
    assert unknown.value.code == "ChangeSetNotFound"
    first = await desk.accept(hunk)
    assert await desk.accept(hunk) == first  # decided that way already
    assert await desk.decide(rest="accept", seen_seq=99) == first
    with pytest.raises(KodeError) as closed:
        await desk.decide(HunkDecision(hunk_id=hunk, action="reject"))
    assert (closed.value.code, closed.value.details) == ("ChangeSetClosed", {"hunkIds": [hunk]})
    with pytest.raises(KodeError) as closed:
        await desk.decide(rest="reject", seen_seq=99)
    assert closed.value.code == "ChangeSetClosed"


async def test_verified_is_about_what_was_asked(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    rejected = await desk.decide(HunkDecision(hunk_id=hunk, action="reject"))
    assert (rejected.rejected, rejected.verified) == ((hunk,), None)


async def test_an_applied_hunk_has_a_range_and_a_direction_is_not_guessed(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    (view,) = desk.sets.get(desk.change_set_id).files[0].hunks
    assert view.range is not None
    line = view.range.start.line
    assert buffer.text.splitlines()[line] == "TWO"
    params = UndoParams(hunk_id=hunk, direction="redo")
    assert (await desk.sets.undo(hunk, params)).restored == ()
    assert buffer.text.splitlines()[line] == "TWO"
    undo = UndoParams(hunk_id=hunk, direction="undo")
    assert (await desk.sets.undo(hunk, undo)).undone == (hunk,)
    assert (await desk.sets.undo(hunk, undo)).undone == ()  # not put back
    assert (await desk.sets.undo(hunk, params)).restored == (hunk,)


def failing_save(failures: list[KodeError]) -> Callable[[], Awaitable[None]]:
    """Return what saves, and fails with each of these first."""

    async def save() -> None:
        if failures:
            raise failures.pop()

    return save


async def test_a_decision_that_could_not_be_saved_is_saved_when_it_is_repeated(
    tmp_path: Path,
) -> None:
    failures = [KodeError("Storage", "The disk is full.")]
    desk = Desk(tmp_path, save=failing_save(failures))
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    params = DecideParams(change_set_id=desk.change_set_id, rest="accept", seen_seq=99)
    with pytest.raises(KodeError) as wrong:
        await desk.sets.decide(params)
    assert wrong.value.code == "Storage"
    result = await desk.sets.decide(params)
    assert (result.applied, result.state) == ((desk.hunks[0].hunk_id,), "decided")
    assert (buffer.text, len(desk.editor.edits)) == (TEXT.replace("two", "TWO"), 1)
    assert await desk.sets.decide(params) == result


async def test_an_undo_that_could_not_be_saved_changes_nothing(tmp_path: Path) -> None:
    failures: list[KodeError] = []
    desk = Desk(tmp_path, save=failing_save(failures))
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    failures.append(KodeError("Storage", "The disk is full."))
    with pytest.raises(KodeError, match="disk is full"):
        await desk.sets.undo(hunk, UndoParams(hunk_id=hunk))
    assert (buffer.text, desk.states[hunk]) == (TEXT.replace("two", "TWO"), "applied")
    assert (await desk.sets.undo(hunk, UndoParams(hunk_id=hunk))).undone == (hunk,)
    assert buffer.text == TEXT


async def test_a_failure_after_a_cancelled_decision_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def save() -> None:
        begun.set()
        await release.wait()
        raise KodeError("Storage", "The disk is full.")

    desk = Desk(tmp_path, save=save)
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    deciding = asyncio.create_task(desk.accept(desk.hunks[0].hunk_id))
    await begun.wait()
    deciding.cancel()
    await asyncio.wait([deciding])
    release.set()
    await desk.until(lambda: "after its caller was cancelled" in caplog.text)
    assert "The disk is full." in caplog.text


async def test_two_decisions_about_one_hunk_send_one_edit(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    hunk = desk.hunks[0].hunk_id
    go = asyncio.Event()

    async def slow(edit: DocumentEdit) -> ApplyAnswer:
        await go.wait()
        return await desk.editor.obey(edit)

    desk.editor.on_apply = slow
    first = asyncio.create_task(desk.accept(hunk))
    second = asyncio.create_task(desk.decide(HunkDecision(hunk_id=hunk, action="reject")))
    await desk.until(lambda: desk.editor.edits)
    go.set()
    assert (await first).applied == (hunk,)
    assert (await second).applied == (hunk,)
    assert buffer.text == TEXT.replace("two", "TWO")
    assert len(desk.editor.edits) == 1


async def test_at_most_one_unverified_edit_per_document(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    go = asyncio.Event()

    async def slow(edit: DocumentEdit) -> ApplyAnswer:
        await go.wait()
        return await desk.editor.obey(edit)

    desk.editor.on_apply = slow
    tasks = [asyncio.create_task(desk.accept(h.hunk_id)) for h in desk.hunks]
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(desk.editor.edits) == 1
    go.set()
    await asyncio.wait_for(asyncio.gather(*tasks), HANG)
    assert [edit.version for edit in desk.editor.edits] == [1, 2]
    assert buffer.text == TEXT.replace("two", "TWO").replace("six", "SIX")


async def test_sessions_of_one_editor_take_turns_at_a_document(tmp_path: Path) -> None:
    locks = EditLocks()
    desk, other = Desk(tmp_path, locks=locks), Desk(tmp_path, locks=locks)
    open_text(desk)
    open_text(other)
    go = asyncio.Event()

    async def slow(edit: DocumentEdit) -> ApplyAnswer:
        await go.wait()
        return await desk.editor.obey(edit)

    desk.editor.on_apply = slow
    await desk.edit("a.txt", ("two", "TWO"))
    await other.edit("a.txt", ("six", "SIX"))
    first = asyncio.create_task(desk.accept(desk.hunks[0].hunk_id))
    await desk.until(lambda: desk.editor.edits)
    second = asyncio.create_task(other.accept(other.hunks[0].hunk_id))
    for _ in range(50):
        await asyncio.sleep(0)
    assert other.editor.edits == []
    go.set()
    assert (await first).verified is True
    assert (await second).verified is True


async def test_auto_waits_until_its_announcement_is_out(tmp_path: Path) -> None:  # O6
    out = asyncio.Event()
    desk = Desk(tmp_path, published=out.wait)
    open_text(desk)
    desk.enter("t-1", "auto")
    call = asyncio.create_task(desk.edit("a.txt", ("two", "TWO")))
    await desk.until(lambda: desk.hunks)
    for _ in range(50):
        await asyncio.sleep(0)
    assert desk.editor.edits == []
    out.set()
    assert (await call).summary == "Applied 1 of 1 hunk in a.txt"


async def test_a_rejection_does_not_wait_for_an_edit_on_its_way(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    yes, no = (h.hunk_id for h in desk.hunks)
    never = asyncio.Event()

    async def hang(edit: DocumentEdit) -> ApplyAnswer:
        await never.wait()
        return ApplyAnswer(True)

    desk.editor.on_apply = hang
    stuck = asyncio.create_task(desk.accept(yes))
    await desk.until(lambda: desk.editor.edits)
    result = await desk.decide(HunkDecision(hunk_id=no, action="reject"))
    assert result.rejected == (no,)
    stuck.cancel()
    desk.sets.close()


# ---- later edits, branches, modes --------------------------------------------------------------


async def test_a_later_edit_supersedes_the_hunk_it_touches(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    first, other = desk.hunks
    old_set = desk.change_set_id
    desk.sets.take_reminders()
    desk.enter("t-2", path=("t-1",))
    await desk.edit("a.txt", ("TWO", "TWO!"))
    heir = desk.hunks[-1]
    assert (heir.old_text, heir.new_text) == ("two\n", "TWO!\n")
    assert desk.states[first.hunk_id] == "superseded"
    reported = [h for e in desk.updates for f in e.files for h in f.hunks if h.superseded_by]
    assert [h.superseded_by for h in reported] == [heir.hunk_id]
    assert desk.updates[-1].change_set_id == old_set
    assert desk.sets.take_reminders() is None
    desk.events.append(desk.updates[-2])
    await desk.accept(heir.hunk_id)
    assert buffer.text == TEXT.replace("two", "TWO!")
    assert desk.states[other.hunk_id] == "proposed"


async def test_taking_an_edit_back_leaves_nothing_to_decide(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    outcome = await desk.edit("a.txt", ("TWO", "two"))
    assert "taken back" in outcome.content
    assert desk.updates[-1].state == "decided"
    assert desk.text("a.txt") == TEXT


async def test_a_new_edit_takes_over_a_hunk_that_the_user_typed_into(desk: Desk) -> None:
    buffer = open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.editor.type(buffer, 7, "!")
    assert "two!" in desk.text("a.txt")
    await desk.edit("a.txt", ("two!", "TWO!"))
    assert desk.states[desk.hunks[0].hunk_id] == "superseded"
    await desk.accept(desk.hunks[1].hunk_id)
    assert buffer.text == TEXT.replace("two", "TWO!")


async def test_a_branch_sees_the_hunks_of_its_own_turns(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    desk.enter("t-2")
    assert desk.text("a.txt") == TEXT
    await desk.edit("a.txt", ("two", "zwei"))
    assert desk.text("a.txt") == TEXT.replace("two", "zwei")
    desk.enter("t-3", path=("t-1",))
    assert desk.text("a.txt") == TEXT.replace("two", "TWO")


async def test_reminders_keep_to_their_branch(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    await desk.accept(desk.hunks[0].hunk_id)
    desk.enter("t-2")
    assert desk.sets.take_reminders() is None
    desk.enter("t-3", path=("t-1",))
    assert desk.sets.take_reminders() is not None


async def test_auto_applies_at_once_and_says_what_was_verified(desk: Desk) -> None:
    buffer = open_text(desk)
    desk.enter("t-1", "auto")
    before: list[int] = []
    obey = desk.editor.obey

    async def note(edit: DocumentEdit) -> ApplyAnswer:
        before.append(len(desk.updates))
        return await obey(edit)

    desk.editor.on_apply = note
    outcome = await desk.edit("a.txt", ("two", "TWO"), ("six", "SIX"))
    assert buffer.text == TEXT.replace("two", "TWO").replace("six", "SIX")
    assert before == [1]  # O6
    assert outcome.summary == "Applied 2 of 2 hunks in a.txt"
    assert "accepted and applied" in outcome.content
    assert desk.sets.take_reminders() is None


async def test_ask_waits_for_every_hunk_and_tells_the_verdicts(tmp_path: Path) -> None:
    desk = Desk(tmp_path, questions=UserQuestions(HANG))
    open_text(desk)
    desk.enter("t-1", "ask")
    call = asyncio.create_task(desk.edit("a.txt", ("two", "TWO"), ("six", "SIX")))
    await desk.until(lambda: desk.hunks)
    yes, no = (h.hunk_id for h in desk.hunks)
    await desk.accept(yes)
    assert not call.done()
    await desk.decide(HunkDecision(hunk_id=no, action="reject", comment="no"))
    outcome = await call
    assert "accepted and applied" in outcome.content
    assert "rejected by the user: no" in outcome.content
    assert desk.sets.take_reminders() is None
    asked, resolved = (one for one in desk.events if isinstance(one, DECISIONS))
    assert isinstance(asked, DecisionRequested)
    assert (asked.turn_id, asked.hunk_ids) == ("t-1", (yes, no))
    assert desk.sets.get(asked.change_set_id).turn_id == "t-1"
    assert isinstance(resolved, DecisionResolved)
    assert (resolved.request_id, resolved.by) == (asked.request_id, "user")


async def test_ask_waits_no_longer_than_for_any_answer(tmp_path: Path) -> None:
    """Then what is undecided waits on, as in `review`, and the model hears of it later."""
    desk = Desk(tmp_path, questions=UserQuestions(0.01))
    buffer = open_text(desk)
    desk.enter("t-1", "ask")
    outcome = await desk.edit("a.txt", ("two", "TWO"))
    assert "not decided" in outcome.content
    assert [e.by for e in desk.events if isinstance(e, DecisionResolved)] == ["timeout"]
    (hunk,) = desk.hunks
    assert (hunk.state, buffer.text) == ("proposed", TEXT)
    await desk.accept(hunk.hunk_id)
    assert buffer.text == TEXT.replace("two", "TWO")
    assert "accepted and applied" in (desk.sets.take_reminders() or "")


async def test_an_edit_on_its_way_survives_the_cancelled_turn(desk: Desk) -> None:
    buffer = open_text(desk)
    desk.enter("t-1", "auto")
    go = asyncio.Event()

    async def slow(edit: DocumentEdit) -> ApplyAnswer:
        await go.wait()
        return await desk.editor.obey(edit)

    desk.editor.on_apply = slow
    call = asyncio.create_task(desk.edit("a.txt", ("two", "TWO")))
    await desk.until(lambda: desk.editor.edits)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    go.set()
    await desk.until(lambda: desk.states[desk.hunks[0].hunk_id] != "proposed")
    assert buffer.text == TEXT.replace("two", "TWO")
    assert "accepted and applied" in str(desk.sets.take_reminders())


async def test_a_hunk_travels_whole_once(desk: Desk) -> None:
    open_text(desk)
    await desk.edit("a.txt", ("two", "TWO"))
    await desk.accept(desk.hunks[0].hunk_id)
    views = [h for e in desk.updates for f in e.files for h in f.hunks]
    assert [view.new_text for view in views] == ["TWO\n", None]
    assert all(isinstance(event, ChangeSetUpdated) for event in desk.events)


async def test_hidden_characters_are_flagged_with_their_code_points(desk: Desk) -> None:  # W13
    open_text(desk)
    await desk.edit("a.txt", ("two", "t\u202ewo\u200b"), ("six", "👩\u200d💻"))
    hidden, emoji = desk.hunks
    assert hidden.flags == ("unread", "invisibleCharacters")
    assert hidden.code_points == ("U+202E", "U+200B")
    assert emoji.flags == ("unread",)
