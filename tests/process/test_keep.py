"""Mode `keep` over real stdio: applied and saved at once, then kept or undone. F16"""

from pathlib import Path
from typing import Any

import pytest

from tests.process.test_commands import results, said
from tests.process.test_modes import reminders
from tests.process.test_saved_files import DONE, NEW, SAVES, SHOW, edit, on_disk, world
from tests.support.model_script import answer, tool_call
from tests.support.session_fold import FoldedHunk, SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

TWO = "n = 1\n#\nm = 1\n"
BOTH = "n = 2\n#\nm = 2\n"
EDITS = [{"old": "n = 1", "new": "n = 2"}, {"old": "m = 1", "new": "m = 2"}]
TWICE = answer(tool_call("propose_edit", {"path": "a.py", "edits": EDITS}))


def marks(session: SessionFold) -> list[tuple[str, bool | None]]:
    hunks = only_change_set(session).hunks()
    return [(hunk.state, hunk.info.get("kept")) for hunk in hunks]


async def kept(tmp_path: Path, started: World) -> tuple[SessionFold, list[FoldedHunk]]:
    """Play a turn in the mode `keep` that changes two places of one file."""
    (tmp_path / "项目" / "a.py").write_text(TWO)
    started.editor.open(tmp_path / "项目" / "a.py")
    session = await started.session(mode="keep")
    await started.turn(session, "go")
    return session, only_change_set(session).hunks()


async def test_edits_are_saved_at_once_and_marked_even_where_accepted_ones_are_not(
    tmp_path: Path,
) -> None:
    off: dict[str, Any] = {**SAVES, "settings": {"saveAccepted": False}}
    async with world(tmp_path, edit(), SHOW, DONE, handshake=off) as started:
        buffer = started.editor.open(tmp_path / "项目" / "a.py")
        session = await started.session(mode="keep")
        await started.turn(session, "go")
        assert (buffer.text, on_disk(tmp_path)) == (NEW, NEW)
        assert (marks(session), only_change_set(session).state) == (
            [("applied", False)],
            "proposed",
        )
        proposed, shown = results(started)
        assert said(shown).endswith(NEW.strip())
        assert "applied; the user has yet to keep or undo it." in said(proposed)
        assert started.editor.asked == []


async def test_hunks_are_kept_or_undone_one_by_one(tmp_path: Path) -> None:
    async with world(tmp_path, TWICE, DONE, DONE) as started:
        session, (first, second) = await kept(tmp_path, started)
        keep = {"hunkId": first.id, "action": "accept"}
        undo = {"hunkId": second.id, "action": "reject", "comment": "m 留着"}
        forecast = await started.decide(
            only_change_set(session), decisions=[keep, undo], dryRun=True
        )
        assert (forecast["applied"], forecast["rejected"]) == ([first.id], [second.id])
        assert marks(session) == [("applied", False), ("applied", False)]
        result = await started.decide(only_change_set(session), decisions=[keep])
        assert (result["state"], result["applied"]) == ("partly_decided", [first.id])
        for _ in range(2):  # a decision that is repeated is answered
            result = await started.decide(only_change_set(session), decisions=[keep, undo])
            assert (result["applied"], result["rejected"]) == ([first.id], [second.id])
            assert result["state"] == "decided"
        assert marks(session)[0] == ("applied", True)
        assert [hunk.state for hunk in (first, second)] == ["applied", "undone"]
        assert on_disk(tmp_path) == "n = 2\n#\nm = 1\n"
        await started.turn(session, "and?")
        (reminder,) = reminders(started)
        assert reminder.count("\n- ") == 1, "to keep what is applied is no news"
        assert "undone by the user: what was there before is there again." in reminder
        assert "The user says: m 留着" in reminder


@pytest.mark.parametrize(("rest", "text"), [("accept", BOTH), ("reject", TWO)])
async def test_a_turn_is_kept_or_undone_as_a_whole(tmp_path: Path, rest: str, text: str) -> None:
    async with world(tmp_path, TWICE, DONE) as started:
        session, _ = await kept(tmp_path, started)
        decided = await started.decide(only_change_set(session), rest=rest, seenSeq=session.seq)
        assert decided["state"] == "decided"
        assert on_disk(tmp_path) == text


async def test_what_is_undone_and_put_back_is_kept(tmp_path: Path) -> None:
    async with world(tmp_path, TWICE, DONE) as started:
        session, (first, _) = await kept(tmp_path, started)
        for text in ("n = 1\n#\nm = 2\n", BOTH):
            await started.client.request("kode/changeSet/undo", {"hunkId": first.id}, HANG_SECONDS)
            assert on_disk(tmp_path) == text
        assert marks(session) == [("applied", True), ("applied", False)]


async def test_a_hunk_that_the_user_has_edited_waits_on(tmp_path: Path) -> None:
    async with world(tmp_path, TWICE, DONE) as started:
        session, (first, _) = await kept(tmp_path, started)
        buffer = started.editor.open(tmp_path / "项目" / "a.py")
        started.editor.type(buffer, len("n = 2"), "0")
        undo = {"hunkId": first.id, "action": "reject"}
        result = await started.decide(only_change_set(session), decisions=[undo])
        assert (result["conflicts"], result["rejected"]) == ([first.id], [])
        assert marks(session)[0] == ("applied", False)
        assert buffer.text == "n = 20\n#\nm = 2\n"


async def test_the_mark_is_there_after_a_crash(tmp_path: Path) -> None:
    async with world(tmp_path, TWICE, DONE) as started:
        session, (first, _) = await kept(tmp_path, started)
        keep = {"hunkId": first.id, "action": "accept"}
        await started.decide(only_change_set(session), decisions=[keep])
        await started.kill()
    async with sidecar([DONE], roots=[tmp_path / "项目"]) as again:
        again.editor.open(tmp_path / "项目" / "a.py")
        params = {"sessionId": session.session_id}
        reported = await again.client.request("kode/session/attach", params, HANG_SECONDS)
        (changes,) = reported["changeSets"]
        (file,) = changes["files"]
        assert [hunk["kept"] for hunk in file["hunks"]] == [True, False]
