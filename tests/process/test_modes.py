"""The four modes over real stdio: what becomes of a proposal, and what the model is told of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.mannered_editor import Manners
from tests.support.model_script import answer, text, tool_call
from tests.support.processes import gone
from tests.support.session_fold import FoldedHunk, SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar

LF = "一 = 1\n#\nb = 2\n#\nc = 3\n#\nd = 4\n"
CRLF = LF.replace("\n", "\r\n")
EDITS = {"一 = 1": "一 = 10", "b = 2": "b = 20", "c = 3": "c = 30", "d = 4": "d = 40"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    folder.mkdir()
    (folder / "文.py").write_bytes(CRLF.encode())
    (folder / "closed.py").write_bytes(CRLF.encode())
    return folder


def propose(path: str = "文.py", **edits: str) -> Any:
    wanted = edits or EDITS
    return answer(
        tool_call(
            "propose_edit",
            {"path": path, "edits": [{"old": o, "new": n} for o, n in wanted.items()]},
        )
    )


def last_result(world: World, index: int = -1) -> str:
    return next(
        m["content"] for m in reversed(world.asked(index)["messages"]) if m["role"] == "tool"
    )


def reminders(world: World, index: int = -1) -> list[str]:
    return [
        str(m.get("content"))
        for m in world.asked(index)["messages"]
        if str(m.get("content")).startswith("What became of edits")
    ]


async def waiting(world: World, session: SessionFold, count: int) -> list[FoldedHunk]:
    """The hunks that a call waits for."""

    def announced() -> list[FoldedHunk] | None:
        hunks = [h for c in session.change_sets.values() for h in c.hunks("proposed")]
        return hunks if len(hunks) == count else None

    return await world.watch.until(announced, HANG_SECONDS)


async def test_ask_waits_for_the_verdict_on_every_hunk(project: Path) -> None:
    async with sidecar(
        [propose(), answer(text("I see")), answer(text("ok"))], roots=[project]
    ) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session(mode="ask")
        turn_id = await world.start(session, "edit")
        first, second, third, fourth = await waiting(world, session, 4)
        decisions = [
            {"hunkId": first.id, "action": "accept"},
            {"hunkId": second.id, "action": "reject", "comment": "留着 b"},
            {"hunkId": third.id, "action": "replace", "newText": "c = 33\n"},
        ]
        await world.decide(only_change_set(session), decisions=decisions)
        assert len(world.model.chats) == 1  # it still waits
        assert session.active_turn is not None
        world.editor.type(buffer, buffer.text.index("d = 4"), "我的 ")
        await world.decide(
            only_change_set(session), decisions=[{"hunkId": fourth.id, "action": "accept"}]
        )
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        reported = last_result(world)
        assert "What became of 4 hunks:" in reported
        assert "the change at `一 = 1`: accepted and applied." in reported
        assert "the change at `b = 2`: rejected by the user: 留着 b" in reported
        assert (
            "the change at `c = 3`: the user replaced it. The text is now:\n```\nc = 33" in reported
        )
        assert "the change at `d = 4`: not applied: the text there changed meanwhile" in reported
        wanted = CRLF.replace("一 = 1", "一 = 10").replace("c = 3", "c = 33")
        assert buffer.text == wanted.replace("d = 4", "我的 d = 4")
        await world.turn(session, "and?")
        assert reminders(world) == []  # it was told already


async def test_a_file_that_was_closed_is_not_gone(project: Path) -> None:
    async with sidecar(
        [propose(**{"b = 2": "b = 20"}), answer(text("ok"))], roots=[project]
    ) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session(mode="ask")
        turn_id = await world.start(session, "edit")
        await waiting(world, session, 1)
        world.editor.close(buffer)
        result = await world.decide(only_change_set(session))
        assert len(result["applied"]) == 1
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert "b = 20" in (world.editor.text(buffer.uri) or "")


async def test_cancel_while_ask_waits_leaves_the_hunks_to_be_decided(project: Path) -> None:  # O8
    responses = [propose(**{"b = 2": "b = 20"}), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session(mode="ask")
        turn_id = await world.start(session, "edit")
        (hunk,) = await waiting(world, session, 1)
        params = {"sessionId": session.session_id}
        answered = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        assert answered == {"cancelled": True}
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert hunk.state == "proposed"
        result = await world.decide(only_change_set(session))
        assert result["verified"] is True
        assert "b = 20" in buffer.text
        await world.turn(session, "go on")
        (reported,) = reminders(world)
        assert "accepted and applied" in reported
        assert session.anomalies == []


async def test_ask_waits_no_longer_than_for_any_answer(project: Path) -> None:
    responses = [propose(**{"b = 2": "b = 20"}), answer(text("go on")), answer(text("ok"))]
    environment = {"KODE_PERMISSION_TIMEOUT": "0.2"}
    async with sidecar(responses, roots=[project], environment=environment) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session(mode="ask")
        assert (await world.turn(session, "edit")).stop_reason == "end_turn"
        reported = [e for e in world.events() if e["type"].startswith("decision.")]
        assert [(e["type"], e.get("by")) for e in reported] == [
            ("decision.requested", None),
            ("decision.resolved", "timeout"),
        ]
        assert "the change at `b = 2`: not decided yet" in last_result(world)
        (hunk,) = only_change_set(session).hunks("proposed")
        await world.decide(only_change_set(session))
        assert (hunk.state, "b = 20" in buffer.text) == ("applied", True)
        await world.turn(session, "and?")
        (reminder,) = reminders(world)
        assert "accepted and applied" in reminder
        assert session.anomalies == []


async def test_a_client_that_goes_away_while_ask_waits_ends_the_process(
    project: Path,
) -> None:  # W4
    async with sidecar([propose(), answer(text("never"))], roots=[project]) as world:
        world.editor.open(project / "文.py")
        session = await world.session(mode="ask")
        await world.start(session, "edit")
        await waiting(world, session, 4)
        pid = world.pid
        world.client.process.close_stdin()
        assert await asyncio.to_thread(gone, pid)
        ends = [e for e in world.journal(session) if e["type"] == "turn.completed"]
        assert [end["stopReason"] for end in ends] == ["cancelled"]
        assert len(world.model.chats) == 1


async def test_auto_applies_and_verifies_before_the_call_returns(project: Path) -> None:
    responses = [
        propose(**{"b = 2": "b = 20"}),
        propose(**{"b = 20": "b = 200"}),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session(mode="auto")
        await world.turn(session, "edit")
        assert buffer.text == CRLF.replace("b = 2", "b = 200")
        assert [hunk.state for hunk in only_change_set(session).hunks()] == ["applied", "applied"]
        journal = world.journal(session)
        applied = [e["seq"] for e in journal if '"applied"' in str(e).replace("'", '"')]
        results = [
            e["seq"]
            for e in journal
            if e["type"] == "block.completed" and e["block"]["type"] == "tool_result"
        ]
        assert [one < other for one, other in zip(applied, results, strict=True)] == [True, True]
        assert "accepted and applied" in last_result(world)


async def test_auto_says_when_the_editor_did_not_do_it(project: Path) -> None:
    responses = [
        propose(**{"b = 2": "b = 20"}),
        propose("closed.py", **{"b = 2": "b = 20"}),
        answer(text("ok")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.manners = Manners(refuse="read-only buffer")
        world.editor.open(project / "文.py")
        session = await world.session(mode="auto")
        await world.turn(session, "edit")
        first, second = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "not applied: the editor did not apply it: read-only buffer." in first
        assert "not applied" in second


async def test_auto_on_a_file_that_is_not_open_is_unconfirmed(project: Path) -> None:
    responses = [propose("closed.py", **{"b = 2": "b = 20"}), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(mode="auto")
        await world.turn(session, "edit")
        assert "sent to the editor, unconfirmed: the file is not open there" in last_result(world)


async def test_review_tells_each_verdict_with_the_next_prompt_once(project: Path) -> None:
    responses = [propose(), answer(text("ok")), answer(text("ok")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "文.py")
        session = await world.session()
        turn = await world.turn(session, "edit")
        assert turn.stop_reason == "end_turn"
        assert "Proposed, not yet applied: 4 hunks" in last_result(world)
        first, second, third, _ = only_change_set(session).hunks("proposed")
        decisions = [
            {"hunkId": first.id, "action": "accept"},
            {"hunkId": second.id, "action": "reject"},
            {"hunkId": third.id, "action": "replace", "newText": ""},
        ]
        await world.decide(only_change_set(session), decisions=decisions)
        await world.turn(session, "go on")
        (reported,) = reminders(world)
        assert "`一 = 1`: accepted and applied." in reported
        assert "`b = 2`: rejected by the user." in reported
        assert "`c = 3`: the user replaced it. The text is now: (nothing)" in reported
        assert "d = 4" not in reported
        await world.turn(session, "and on")
        assert reminders(world) == [reported]


async def test_plan_runs_no_edit_tool_and_tells_clients_of_none(project: Path) -> None:
    responses = [propose(), answer(text("a plan"))]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.open(project / "文.py")
        session = await world.session(mode="plan")
        await world.turn(session, "plan")
        params = {"sessionId": session.session_id, "mode": "plan"}
        listed = await world.client.request("kode/tools/list", params, HANG_SECONDS)
        assert [tool["name"] for tool in listed["tools"]] == [
            "read_file",
            "list_files",
            "search_code",
            "explore",
            "ask_user",
            "write_memory",
            "web_fetch",
        ]
        assert "propose_edit was not run. In plan mode you only read" in last_result(world)
        assert session.change_sets == {}


async def test_the_mode_is_switched_for_the_session_and_for_one_turn(project: Path) -> None:
    responses = [
        *(propose(**{"b = 2": "b = 20"}), answer(text("ok"))),
        *(propose(**{"c = 3": "c = 30"}), answer(text("ok"))),
        *(propose(**{"d = 4": "d = 40"}), answer(text("a plan"))),
        *(propose(**{"d = 4": "d = 40"}), answer(text("ok"))),
    ]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(project / "文.py")
        session = await world.session()
        await world.turn(session, "review")
        assert buffer.text == CRLF
        params = {"sessionId": session.session_id, "mode": "auto"}
        await world.client.request("kode/session/update", params, HANG_SECONDS)
        await world.turn(session, "auto")
        assert "c = 30" in buffer.text
        await world.turn(session, "plan", mode="plan")
        assert "In plan mode you only read" in last_result(world)
        assert "d = 4\r\n" in buffer.text
        await world.turn(session, "auto again")
        assert "d = 40" in buffer.text
        assert "b = 20" not in buffer.text  # what waited in review still does
        started = [e["mode"] for e in world.journal(session) if e["type"] == "turn.started"]
        assert started == ["review", "auto", "plan", "auto"]
