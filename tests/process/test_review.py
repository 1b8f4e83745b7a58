"""A code review over the real process: what models say is taken apart before the user sees it."""

from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.reviews import read_review
from kode_sidecar.core.domain.finding import ReviewFinding
from tests.support.model_script import answer, text, tool_call
from tests.support.review_model import (
    AFTER,
    FAULT,
    changed_project,
    review,
    reviewing_model,
    reviews,
)
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return changed_project(tmp_path / "project")


def recorded(world: World, session: SessionFold) -> list[ReviewFinding]:
    record = read_review(world.folder(session))
    assert record is not None
    return list(record.findings)


async def test_what_is_true_is_found_and_what_is_invented_is_not(project: Path) -> None:
    listed = [
        {**FAULT, "startLine": 1, "endLine": 1},  # counted badly
        {**FAULT, "severity": "warning", "title": "Last item is not counted"},
        {**FAULT, "quote": "for j in range(9):", "title": "Invented line"},
        {**FAULT, "path": "nowhere.py", "title": "Wrong file"},
        {**FAULT, "path": "../../etc/passwd", "title": "Outside"},
        {**FAULT, "severity": "nit", "title": "Name is short"},
        {**FAULT, "quote": "result = 0", "startLine": 2, "endLine": 2, "title": "Refutable"},
    ]
    model = reviewing_model(reviews(), lambda _: listed, refuted=("Refutable",))
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session(agent="reviewer")
        said = await review(world, session)
        (found,) = recorded(world, session)
        assert (found.id, found.title, found.severity) == ("f1", FAULT["title"], "error")
        assert (found.start_line, found.end_line, found.unconfirmed) == (3, 3, False)
        assert said.startswith("1 finding (1 error)")
        for line in ("3 not in the text", "1 reported twice", "1 a matter of taste", "1 refuted"):
            assert f"[dropped: {line}]" in said
        assert not any(
            title in said for title in ("Invented", "Wrong file", "Outside", "Refutable")
        )
        assert session.anomalies == []


async def test_five_hundred_findings_are_cut_and_counted(project: Path) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(500)]
    (project / "app.py").write_text("".join(lines))
    listed = [
        {**FAULT, "quote": line.strip(), "startLine": n, "endLine": n, "title": f"Fault{n} here"}
        for n, line in enumerate(lines, 1)
    ]
    model = reviewing_model(reviews(), lambda _: listed)
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session(agent="reviewer")
        said = await review(world, session)
        assert len(recorded(world, session)) == 50
        assert "[dropped: 450 beyond the limit of 50]" in said


@pytest.mark.parametrize("reply", ["It all looks fine to me.", None])
async def test_what_no_reader_reported_on_is_named(project: Path, reply: str | None) -> None:
    model = reviewing_model(reviews(), lambda _: reply)
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session(agent="reviewer")
        said = await review(world, session)
        assert recorded(world, session) == []
        assert said.startswith("0 findings; 1 files not looked at")
        assert "[not looked at: app.py: The scout ended without a report" in said


async def test_dismissed_fixed_and_new_at_the_next_review(project: Path) -> None:
    other = {**FAULT, "quote": "return result", "startLine": 5, "endLine": 5}
    other |= {"title": "Never rounds", "category": "precision"}
    prompts: list[str] = []

    def reports(asked: str) -> list[dict[str, Any]]:
        prompts.append(asked)
        return [FAULT, other] if len(prompts) == 1 else [other]

    dismiss = {"id": "f2", "state": "dismissed", "reason": "we round later"}
    main = [
        *reviews(),
        answer(tool_call("decide_finding", dismiss)),
        answer(text("Noted.")),
        *reviews(of="working_tree"),
    ]
    async with sidecar(model=reviewing_model(main, reports), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        await review(world, session)
        assert [one.title for one in recorded(world, session)] == [FAULT["title"], "Never rounds"]
        assert await review(world, session) == "f2 is dismissed."
        text_now = "# more\n\n" + AFTER.replace("len(items) - 1", "len(items)")
        (project / "app.py").write_bytes(text_now.encode())
        said = await review(world, session)
        fixed, dismissed = recorded(world, session)
        assert (fixed.state, fixed.news) == ("fixed", "fixed")
        assert (dismissed.state, dismissed.reason) == ("dismissed", "we round later")
        assert dismissed.start_line == 7
        assert "app.py:7 Never rounds (we round later)" in prompts[1]
        assert said.startswith("0 findings; 1 fixed")
        assert "Never rounds" not in said


async def test_notes_for_reviews_reach_readers_of_trusted_folders_only(project: Path) -> None:
    (project / "REVIEW.md").write_text("Mind the teapots.", encoding="utf-8")
    for trusted in (True, False):
        model = reviewing_model(reviews(), lambda _: [])
        async with sidecar(model=model, roots=[project], handshake={"trusted": trusted}) as world:
            await review(world, await world.session(agent="reviewer"))
        seen = [str(chat.body["messages"][0]["content"]) for chat in model.chats]
        said = [("Mind the teapots." in system) for system in seen]
        assert said == [trusted] * len(seen)
        assert len(seen) == 4


async def test_many_files_are_read_in_parts_side_by_side(project: Path) -> None:
    for number in range(40):
        (project / f"n{number:02}.py").write_bytes(b"x = 1\n")
    titles: list[str] = []

    def reports(asked: str) -> list[dict[str, Any]]:
        titles.append(asked.splitlines()[0])
        return []

    async with sidecar(model=reviewing_model(reviews(), reports), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        said = await review(world, session)
        assert len(titles) == 6
        assert said.startswith("0 findings")
        assert "not looked at" not in said
        assert {scout.state for scout in session.scouts.values()} == {"done"}


async def test_a_stopped_review_ends_at_once(project: Path) -> None:
    model = reviewing_model(reviews(), lambda _: [])
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session(agent="reviewer")
        turn_id = await world.start(session, "Review.")
        await world.client.request(
            "kode/turn/cancel", {"sessionId": session.session_id}, HANG_SECONDS
        )
        end = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert end.stop_reason == "cancelled"


async def test_a_reader_sees_the_diff_of_its_part_only(project: Path) -> None:
    for number in range(9):
        (project / f"n{number:02}.py").write_bytes(b"x = 1\n")
    async with sidecar(model=reviewing_model(reviews(), lambda _: []), roots=[project]) as world:
        session = await world.session(agent="reviewer")
        await review(world, session)
        shown = [
            one["content"]
            for chat in world.model.chats
            for one in chat.body["messages"]
            if one["role"] == "tool" and "files, +" in one["content"]
        ]
        heads = [[line for line in text.splitlines() if line[:3] == "## "] for text in shown]
        assert sorted(len(lines) for lines in heads) == [2, 8]
        assert sum("app.py" in line for lines in heads for line in lines) == 1
