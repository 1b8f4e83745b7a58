"""A session that another process writes to, read as it goes on (issue 17)."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_sessions import ask, refused
from tests.support.folds import final_state
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]

SENSITIVE = {"path": ".vscode/tasks.json", "edits": [{"old": "{}", "new": '{"a": 1}'}]}

any_storage = pytest.mark.usefixtures("a_storage")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "tasks.json").write_text("{}")
    return folder


def reported(world: World, session_id: str) -> list[Json]:
    """The events of a session that a client was sent, in order."""
    frames = [frame.message() for frame in world.client.frames if frame.direction == "in"]
    params = [frame["params"] for frame in frames if frame.get("method") == "kode/event"]
    return [event for one in params if one["sessionId"] == session_id for event in one["events"]]


async def seen(world: World, condition: Callable[[], Any]) -> None:
    await world.watch.until(condition, HANG_SECONDS)


async def caught_up(reader: World, fold: SessionFold, writer: World) -> None:
    """The reader has folded all that the writer's journal holds."""
    last = writer.journal(fold)[-1]["seq"]
    await seen(reader, lambda: fold.seq == last)


@any_storage
async def test_who_reads_sees_it_live_and_may_not_write(project: Path) -> None:
    responses = [
        answer(text("I will "), hold("words"), text("edit"), tool_call("propose_edit", SENSITIVE)),
        answer(text("done")),
        answer(text("two")),
    ]
    answered = asyncio.Event()

    async def permission(_params: Json) -> Json:
        await answered.wait()
        return {"optionId": "allow-once"}

    async with (
        sidecar(responses, roots=[project]) as writer,
        sidecar(roots=[project]) as reader,
    ):
        writer.client.handle("kode/permission/request", permission)
        session = await writer.session(title="Tea")
        session_id = session.session_id
        fold = await reader.watch.attach(session_id, access="read")
        assert fold.seq == session.seq
        turn_id = await writer.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await writer.model.reached("words")
        # While the turn runs: its prompt, the answer that has begun; the model still speaks.
        await seen(reader, lambda: any(m.role == "assistant" for m in fold.messages.values()))
        assert fold.turns[turn_id].stop_reason is None
        for method, params in {
            "turn/start": {"input": [{"type": "text", "text": "x"}]},
            "turn/steer": {"turnId": turn_id, "input": []},
            "turn/cancel": {},
            "session/update": {"title": "mine"},
            "session/delete": {},
            "tree/setHead": {"messageId": None},
            "context/compact": {},
        }.items():
            error = await refused(reader, method, sessionId=session_id, **params)
            assert error.code == -33019, method
        # One who may not write it either goes on reading.
        assert (await refused(reader, "session/attach", sessionId=session_id)).code == -33019
        writer.model.release("words")
        await seen(reader, lambda: fold.questions)  # shown, and not asked
        answered.set()
        await seen(reader, lambda: fold.turns[turn_id].stop_reason == "end_turn")
        assert reader.editor.asked == []
        (change_set,) = session.change_sets.values()
        # The yes to the question was one to the edit.
        assert [hunk.state for hunk in change_set.hunks()] == ["applied"]
        await ask(writer, "changeSet/undo", changeSetId=change_set.id)
        await writer.turn(session, "on")
        await caught_up(reader, fold, writer)
        assert final_state(fold) == final_state(await writer.watch.attach(session_id))
        assert fold.anomalies == []
        stored = [event for event in reported(writer, session_id) if "seq" in event]
        assert reported(reader, session_id) == stored
        assert not [frame for frame in reader.client.frames if b"$/progress" in frame.body]


async def test_a_replay_leads_into_the_stream_and_detach_ends_it(project: Path) -> None:
    responses = [answer(text(str(number))) for number in range(4)]
    async with (
        sidecar(responses, roots=[project]) as writer,
        sidecar(roots=[project]) as reader,
    ):
        session = await writer.session()
        await writer.turn(session, "one")
        fold = await reader.watch.attach(session.session_id, access="read")
        await writer.turn(session, "two")
        await caught_up(reader, fold, writer)
        assert await ask(reader, "session/detach", sessionId=session.session_id) == {}
        left = fold.seq
        await writer.turn(session, "three")
        again = await reader.watch.attach(session.session_id, fold, access="read")
        replayed = again.seq
        assert replayed == writer.journal(session)[-1]["seq"]
        await writer.turn(session, "four")
        await caught_up(reader, again, writer)
        assert final_state(again) == final_state(await writer.watch.attach(session.session_id))
        numbers = [event["seq"] for event in reported(reader, session.session_id)]
        assert [one for one in numbers if left < one <= replayed] == []


@any_storage
async def test_who_read_takes_over_when_the_writer_has_died(project: Path) -> None:
    responses = [answer(text("I say "), hold("here"), text("so"))]
    async with (
        sidecar(responses, roots=[project]) as writer,
        sidecar([answer(text("mine"))], roots=[project]) as reader,
    ):
        session = await writer.session()
        fold = await reader.watch.attach(session.session_id, access="read")
        turn_id = await writer.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await writer.model.reached("here")
        await writer.kill()
        await caught_up(reader, fold, writer)
        own = await reader.watch.attach(session.session_id, fold)
        assert own.turns[turn_id].stop_reason == "interrupted"
        await reader.turn(own, "go on")
        assert final_state(own) == final_state(await reader.watch.attach(session.session_id))
        numbers = [event["seq"] for event in reported(reader, session.session_id)]
        assert numbers == sorted(set(numbers))  # nobody follows it any more


async def test_a_deleted_session_is_followed_no_longer(project: Path) -> None:
    async with (
        sidecar([answer(text("one"))], roots=[project]) as writer,
        sidecar(roots=[project]) as reader,
    ):
        session, other = await writer.session(), await writer.session()
        fold = await reader.watch.attach(other.session_id, access="read")
        await reader.watch.attach(session.session_id, access="read")
        await ask(writer, "session/delete", sessionId=session.session_id)
        await writer.turn(other, "one")
        await caught_up(reader, fold, writer)
        error = await refused(reader, "session/attach", sessionId=session.session_id, access="read")
        assert error.code == -33001


async def test_a_torn_line_and_a_journal_replaced_are_read_on(project: Path) -> None:
    async with (
        sidecar([answer(text("one")), answer(text("two"))], roots=[project]) as writer,
        sidecar(roots=[project]) as reader,
    ):
        session = await writer.session()
        await writer.turn(session, "one")
        fold = await reader.watch.attach(session.session_id, access="read")
        await ask(writer, "session/detach", sessionId=session.session_id)
        path = writer.folder(session) / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")
        lines[0] = b"\0\0\0"  # found when it is opened again: the file is written anew
        path.write_bytes(b"\n".join(lines) + b'{"type":"torn')
        own = await writer.watch.attach(session.session_id)
        await writer.turn(own, "two")
        await caught_up(reader, fold, writer)
        assert fold.anomalies == []
        assert [m.text for m in fold.messages.values()] == ["one", "one", "two", "two"]


async def test_reading_a_session_of_ones_own_asks_nothing_again(project: Path) -> None:
    asked: asyncio.Queue[Json] = asyncio.Queue()
    answered = asyncio.Event()

    async def question(params: Json) -> Json:
        asked.put_nowait(params)
        await answered.wait()
        return {"optionId": "allow-once"}

    responses = [answer(tool_call("propose_edit", SENSITIVE)), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        world.client.handle("kode/permission/request", question)
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await asked.get()
        fold = await world.watch.attach(session.session_id, access="read")
        assert len(fold.questions) == 1
        answered.set()
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert final_state(fold) == final_state(await world.watch.attach(session.session_id))
        assert asked.empty()
