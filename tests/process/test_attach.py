"""Sessions of earlier processes opened again: snapshot, replay, locks, forks, exports."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from kode_sidecar.infrastructure.records.growth import GROWTH_FILE
from kode_sidecar.terminal.client.connection import RpcError
from tests.process.test_sessions import ask, refused
from tests.support.folds import final_state
from tests.support.fsync_gate import with_faults
from tests.support.kept_messages import read_records, write_records
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.program import BUILT
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, read_jsonl, sidecar

Json = dict[str, Any]

EDIT = {"path": "app.py", "edits": [{"old": "print('ho')", "new": "print('hey')"}]}


any_storage = pytest.mark.usefixtures("a_storage")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(b"print('hi')\r\nprint('ho')\r\n")
    return folder


def said(world: World, role: str = "user") -> list[str]:
    """What the model was sent last, of one role."""
    return [m["content"] for m in world.asked()["messages"] if m["role"] == role]


# A6: whoever comes later sees what was there, and the conversation goes on
@any_storage
async def test_a_session_goes_on_in_a_later_process(project: Path) -> None:
    responses = [answer(thinking("hm"), text("one")), answer(text("two")), answer(text("three"))]
    async with sidecar(responses[:1], roots=[project]) as world:
        session = await world.session(agent="coder", mode="plan", model="kimi-k2.6")
        await world.turn(session, "first", clientTurnKey="k1")
        live = await ask(world, "session/attach", sessionId=session.session_id)
        error = await refused(world, "session/attach", sessionId="nobody")
        assert error.code == -33001
    async with sidecar(responses[1:], roots=[project]) as world:
        # kode/turn/start does not open it by itself, and says what does
        error = await refused(world, "turn/start", sessionId=session.session_id, input=[])
        assert (error.code, "kode/session/attach" in error.message) == (-33001, True)
        again = await ask(world, "session/attach", sessionId=session.session_id)
        assert again == live
        assert (again["session"]["mode"], again["session"]["agent"]) == ("plan", "coder")
        fold = await world.watch.attach(session.session_id)
        assert final_state(fold) == final_state(session)
        turn = await world.turn(fold, "second")
        assert (turn.stop_reason, said(world)) == ("end_turn", ["first", "second"])
        # an earlier prompt edited, over the restart (A4); and sent twice with one key
        first = world.messages(session)[0]
        await world.turn(fold, "first, better", parentId=first["parent_id"])
        versions = [(m["version"], m["depth"]) for m in world.messages(session)]
        assert versions == [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (1, 1)]
        known = await ask(
            world,
            "turn/start",
            sessionId=session.session_id,
            input=[{"type": "text", "text": "first"}],
            clientTurnKey="k1",
        )
        assert known["deduplicated"]
        assert known["messageId"] == first["id"]
        numbers = [event["seq"] for event in world.journal(session)]
        assert numbers == list(range(1, len(numbers) + 1))  # O3, over both processes


@any_storage
async def test_a_client_that_was_there_gets_what_it_missed(project: Path) -> None:
    responses = [answer(text(str(number))) for number in range(3)]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "one")
        seen = session.seq
        await world.turn(session, "two")
        params = {"sessionId": session.session_id, "afterSeq": seen}
        replay = await ask(world, "session/attach", **params)
        assert (replay["mode"], replay["seq"]) == ("replay", session.seq)
        assert replay["events"] == world.journal(session)[seen:]
    async with sidecar(responses[2:], roots=[project]) as world:
        again = await ask(world, "session/attach", **params)
        assert again == replay
        await world.watch.attach(session.session_id, session)
        await world.turn(session, "three")
        assert final_state(session) == final_state(await world.watch.attach(session.session_id))
        for after in (session.seq + 1, 10_000):
            params["afterSeq"] = after
            error = await refused(world, "session/attach", **params)
            assert (error.code, "afterSeq" in error.message) == (-33018, True)
        params["afterSeq"] = -1
        assert (await refused(world, "session/attach", **params)).code == -32602


# a client that forgot everything, in the middle of a turn
@any_storage
async def test_a_snapshot_in_a_running_turn_leads_into_the_stream(project: Path) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    edit = {"path": ".vscode/tasks.json", "edits": [{"old": "{}", "new": '{"a": 1}'}]}
    responses = [
        answer(
            thinking("let me"),
            text("I will "),
            hold("words"),
            text("edit"),
            tool_call("propose_edit", edit),
        ),
        answer(text("done")),
    ]
    asked, answered = asyncio.Event(), asyncio.Event()

    async def permission(_params: Json) -> Json:
        asked.set()
        await answered.wait()
        return {"optionId": "allow-once"}

    async with sidecar(responses, roots=[project]) as world:
        world.client.handle("kode/permission/request", permission)
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("words")
        await world.watch.until(
            lambda: any(m.text == "I will " for m in session.messages.values()), HANG_SECONDS
        )
        snapshot = await ask(world, "session/attach", sessionId=session.session_id)
        assert snapshot["activeTurnId"] == turn_id
        assert [block["text"] for block in snapshot["openBlocks"]] == ["let me", "I will "]
        (opened,) = snapshot["openMessages"]
        assert [block["type"] for block in opened["content"]] == ["thinking", "text"]
        fold = await world.watch.attach(session.session_id)
        world.model.release("words")
        async with asyncio.timeout(HANG_SECONDS):
            await asked.wait()
        fold = await world.watch.attach(session.session_id)
        (question,) = fold.questions.values()
        assert question["subject"] == ".vscode/tasks.json"
        answered.set()
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert final_state(fold) == final_state(await world.watch.attach(session.session_id))
        assert [change_set.state for change_set in fold.change_sets.values()] == ["decided"]


SENSITIVE = {"path": ".vscode/tasks.json", "edits": [{"old": "{}", "new": '{"a": 1}'}]}
CHOICE = {"question": "Which one?", "choices": ["this", "that"]}


@pytest.mark.parametrize(
    ("method", "call", "yes", "reported"),
    [
        (
            "kode/permission/request",
            tool_call("propose_edit", SENSITIVE),
            {"optionId": "allow-once"},
            "accepted and",
        ),
        ("kode/ask", tool_call("ask_user", CHOICE), {"choices": ["that"]}, "- that"),
    ],
    ids=["permission", "ask"],
)
async def test_a_question_that_waits_is_asked_again_of_whoever_attaches(
    project: Path, method: str, call: Any, yes: Json, reported: str
) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    asked: asyncio.Queue[Json] = asyncio.Queue()
    answered = asyncio.Event()

    async def question(params: Json) -> Json:
        asked.put_nowait(params)
        await answered.wait()
        return yes

    responses = [answer(call), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        world.client.handle(method, question)
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            first = await asked.get()
            for after in ({}, {"afterSeq": session.seq}):
                await ask(world, "session/attach", sessionId=session.session_id, **after)
                assert await asked.get() == first
        frames = [frame.message() for frame in world.client.frames if frame.direction == "in"]
        kinds = [
            frame.get("method", "attached" if "mode" in (frame.get("result") or {}) else "")
            for frame in frames
        ]
        again = ["attached", "$/cancelRequest", method]
        assert [k for k in kinds if k in again] == [method, *again, *again]
        ids = [frame["id"] for frame in frames if frame.get("method") == method]
        taken_back = [f["params"]["id"] for f in frames if f.get("method") == "$/cancelRequest"]
        assert taken_back == ids[:-1]
        assert len(set(ids)) == 3
        no = {"jsonrpc": "2.0", "id": ids[0], "result": {"optionId": "reject", "choices": ["this"]}}
        world.client.send_raw(encode_frame(json.dumps(no).encode()))  # W15: too late
        answered.set()
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        (said_to_model,) = said(world, "tool")
        assert reported in said_to_model
        ends = [e for e in world.journal(session) if e["type"] == "permission.resolved"]
        by_user = method == "kode/permission/request"
        assert [(end["by"], end["optionId"]) for end in ends] == [("user", "allow-once")] * by_user
        await ask(world, "session/attach", sessionId=session.session_id)
        assert asked.empty()


async def test_a_question_is_seen_by_who_reads_and_ends_with_its_process(project: Path) -> None:
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    asked: asyncio.Queue[Json] = asyncio.Queue()

    async def question(params: Json) -> Json:
        asked.put_nowait(params)
        return await asyncio.Future[Json]()

    responses = [answer(tool_call("propose_edit", SENSITIVE))]
    async with (
        sidecar(responses, roots=[project]) as first,
        sidecar([answer(text("ok"))], roots=[project]) as second,
    ):
        first.client.handle("kode/permission/request", question)
        session = await first.session()
        turn_id = await first.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            request_id = (await asked.get())["requestId"]
        params = {"sessionId": session.session_id}
        read = await ask(second, "session/attach", **params, access="read")
        assert [one["requestId"] for one in read["pending"]] == [request_id]
        assert read["activeTurnId"] == turn_id
        await first.kill()
        taken = await ask(second, "session/attach", **params)
        assert taken["pending"] == []
        assert taken["lastTurn"]["stopReason"] == "interrupted"
        ends = [e for e in second.journal(session) if e["type"] == "permission.resolved"]
        assert [(end["requestId"], end["by"]) for end in ends] == [(request_id, "cancel")]
        assert second.editor.asked == []


SLOW = """import time
print("three passed", flush=True)
time.sleep(600)
"""


async def on_disk(path: Path) -> None:
    """Wait until a process has written a file."""
    async with asyncio.timeout(HANG_SECONDS):
        while not path.exists():  # noqa: ASYNC110  (a file)
            await asyncio.sleep(0.01)


# A6 W6: a turn cut off by a crash
@any_storage
async def test_a_turn_whose_process_died_is_closed_as_interrupted(project: Path) -> None:
    responses = [
        answer(text("Reading."), tool_call("read_file", {"path": "app.py"})),
        answer(text("It says "), hold("here"), text("hi")),
    ]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("here")
        await world.watch.until(lambda: len(session.blocks) == 5, HANG_SECONDS)
        await ask(
            world,
            "turn/steer",
            sessionId=session.session_id,
            turnId=turn_id,
            input=[{"type": "text", "text": "and then?"}],
        )
        await on_disk(world.folder(session) / GROWTH_FILE)
        await world.kill()
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        # who only reads sees it as it is
        read = await ask(world, "session/attach", sessionId=session.session_id, access="read")
        assert read["seq"] == len(world.journal(session))
        fold = await world.watch.attach(session.session_id, session)
        turn = fold.turns[turn_id]
        assert (turn.stop_reason, turn.result["usage"]["totalTokens"]) == ("interrupted", 120)
        assert final_state(fold) == final_state(await world.watch.attach(session.session_id))
        assert [(m["role"], len(m["content"])) for m in world.messages(session)] == [
            ("user", 1),
            ("assistant", 2),
            ("tool", 1),
            ("assistant", 1),
            ("user", 1),
        ]
        cut = world.messages(session)[3]
        assert (cut["content"][0]["text"], cut["meta"]["cutOff"]) == ("It says ", True)
        assert not (world.folder(session) / GROWTH_FILE).exists()
        await world.turn(world.watch.session(session.session_id), "go on")
        assert "It says " in str(world.asked()["messages"])
        assert said(world) == ["go", "and then?", "go on"]  # what was accepted is heard


@any_storage
async def test_a_long_answer_is_on_disk_before_it_is_shown(project: Path) -> None:
    words = "茶" * 2_000
    script = [answer(thinking("Hm."), text(words, size=2_000), hold("here"), text("!"))]
    async with sidecar(script, roots=[project]) as world:
        session = await world.session()
        await world.start(session, "go")
        await world.watch.until(
            lambda: any(block.text == words for block in session.blocks.values()), HANG_SECONDS
        )
        await world.kill()
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        fold = await world.watch.attach(session.session_id)
        assert [block.text for block in fold.blocks.values()][1:] == ["Hm.", words]
        await world.turn(fold, "go on")
        assert words in json.dumps(world.asked()["messages"], ensure_ascii=False)


async def test_the_output_of_a_command_that_died_with_the_process_is_kept(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("commands: {run: list, allow: [python]}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"KODE_CONFIG": str(tmp_path / "config.yaml"), "PATH": path}
    (project / "slow.py").write_text(SLOW)
    use = tool_call("run_command", {"argv": ["python", "slow.py"]})
    async with sidecar([answer(use)], roots=[project], environment=environment) as world:
        session = await world.session(agent="coder")
        await world.start(session, "test it")
        await on_disk(world.folder(session) / GROWTH_FILE)
        await world.kill()
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        fold = await world.watch.attach(session.session_id)
        (result,) = [block for block in fold.blocks.values() if block.type == "tool_result"]
        assert "Its output until then:\nthree passed" in result.block["content"][0]["text"]


@any_storage
async def test_a_damaged_message_is_rebuilt_from_the_journal(project: Path) -> None:  # W6
    use = tool_call("read_file", {"path": "app.py"})
    async with sidecar([answer(use), answer(text("one"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "first")
        before = await ask(world, "message/list", sessionId=session.session_id)
        await world.client.close()
        folder = world.folder(session)
        records = read_records(folder)
        write_records(folder, [records[0], *(b'{"id":"' for _ in records[1:])])
    async with sidecar([answer(text("two"))], roots=[project]) as world:
        where = {"sessionId": session.session_id}
        assert (await ask(world, "message/list", **where)) == before  # before anybody opens it
        await world.watch.attach(session.session_id)
        assert (await ask(world, "message/list", **where)) == before
        await world.turn(world.watch.session(session.session_id), "second")
        roles = [one["role"] for one in world.asked()["messages"]]
        assert roles[-5:] == ["user", "assistant", "tool", "assistant", "user"]
        assert all(one.get("code") != "MessagesLost" for one in world.events())
        await world.client.close()


@any_storage
async def test_damaged_messages_are_told_of_once(project: Path) -> None:  # W6
    # The journal cannot help either.
    async with sidecar([answer(text("one")), answer(text("two"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "first")
        await world.turn(session, "second")
        await world.client.close()
        folder = world.folder(session)
        records = read_records(folder)
        damaged = records[1].replace(b"one", b"0ne")
        assert damaged != records[1]
        write_records(folder, [records[0], damaged, *records[2:]])
        journal = folder / "journal.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"one", b"0ne"))
    for reported in (True, False):
        async with sidecar([answer(text("three"))], roots=[project]) as world:
            result = await ask(world, "session/attach", sessionId=session.session_id)
            assert [one["role"] for one in result["messages"][:3]] == ["user", "assistant", "user"]
            fold = await world.watch.attach(session.session_id)
            await world.turn(fold, "third")
            found = [
                event
                for event in world.events()
                if event["type"] == "notice" and event["code"] == "MessagesLost"
            ]
            assert [one["code"] for one in found] == ["MessagesLost"] * reported
            assert all("1 message" in one["message"] for one in found)
            await world.client.close()


@any_storage
async def test_tool_calls_nobody_answered_get_results(project: Path) -> None:  # W10
    call = tool_call("read_file", {"path": "app.py"})
    async with sidecar([answer(call, call)], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "go")
    folder = world.folder(session)
    write_records(folder, read_records(folder)[:2])
    journal = folder / "journal.jsonl"
    kept = journal.read_bytes().split(b"\n")
    asked = next(i for i, line in enumerate(kept) if b'"role":"tool"' in line)
    journal.write_bytes(b"\n".join(kept[:asked]) + b"\n")
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        fold = await world.watch.attach(session.session_id)
        assert [m.role for m in fold.messages.values()] == ["user", "assistant", "tool"]
        results = world.messages(session)[2]["content"]
        assert [(r["status"], r["is_error"]) for r in results] == [("cancelled", True)] * 2
        await world.turn(fold, "go on")
        assert len(said(world, "tool")) == 2


async def propose(world: World) -> Any:
    session = await world.session()
    await world.turn(session, "edit")
    return session


async def test_pending_hunks_outlive_the_process(project: Path) -> None:
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await propose(world)
        await world.kill()
    now = "# new\r\nprint('hi')\r\nprint('ho')\r\n"
    (project / "app.py").write_bytes(now.encode())
    async with sidecar([answer(text("seen"))], roots=[project]) as world:
        buffer = world.editor.open(
            project / "app.py", text="# new\r\nprint('hi')\r\nprint('ho')\r\n"
        )
        fold = await world.watch.attach(session.session_id)
        change_set = only_change_set(fold)
        (hunk,) = change_set.hunks()
        assert (hunk.state, hunk.info["range"]["start"]["line"]) == ("proposed", 2)
        result = await world.decide(change_set, rest="accept", seenSeq=fold.seq)
        assert (result["applied"], result["verified"]) == ([hunk.id], True)
        assert buffer.text == "# new\r\nprint('hi')\r\nprint('hey')\r\n"
        await world.kill()
    async with sidecar([answer(text("seen"))], roots=[project]) as world:
        fold = await world.watch.attach(session.session_id)
        assert only_change_set(fold).state == "decided"
        await world.turn(fold, "go on")
        assert "accepted and applied" in said(world)[1]


async def test_what_an_earlier_process_applied_is_undone(project: Path) -> None:
    path = project / "app.py"
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("done"))]
    async with sidecar(responses, roots=[project]) as world:
        buffer = world.editor.open(path)
        session = await propose(world)
        await world.decide(only_change_set(session), rest="accept", seenSeq=session.seq)
        path.write_bytes(buffer.text.encode())
        await world.kill()
    async with sidecar(roots=[project]) as world:
        buffer = world.editor.open(path)
        fold = await world.watch.attach(session.session_id)
        (hunk,) = only_change_set(fold).hunks()
        assert hunk.state == "applied"
        result = await ask(world, "changeSet/undo", hunkId=hunk.id)
        assert result["undone"] == [hunk.id]
        assert buffer.text == "print('hi')\r\nprint('ho')\r\n"


async def test_hunks_whose_base_is_gone_are_stale_with_a_reason(project: Path) -> None:
    responses = [answer(tool_call("propose_edit", EDIT)), answer(text("done"))]
    async with sidecar(responses * 2, roots=[project]) as world:
        changed, deleted = await propose(world), await propose(world)
    async with sidecar(roots=[project]) as world:
        (project / "app.py").write_bytes(b"print('other')\r\n")
        (hunk,) = only_change_set(await world.watch.attach(changed.session_id)).hunks()
        assert (hunk.state, "changed" in hunk.info["reason"]) == ("stale", True)
        (project / "app.py").unlink()
        (hunk,) = only_change_set(await world.watch.attach(deleted.session_id)).hunks()
        assert (hunk.state, "not there" in hunk.info["reason"]) == ("stale", True)
        event = world.journal(deleted)[-1]
        assert (event["type"], event["state"]) == ("changeSet.updated", "decided")
    # in a window with other folders it waits
    (project / "app.py").write_bytes(b"print('hi')\r\nprint('ho')\r\n")
    async with sidecar(responses, roots=[project]) as world:
        kept = await propose(world)
    async with sidecar() as world:
        (hunk,) = only_change_set(await world.watch.attach(kept.session_id)).hunks()
        assert hunk.state == "proposed"


# W8: one writer
@any_storage
async def test_a_second_sidecar_reads_or_forks_and_gets_the_lock_after_a_kill(
    project: Path,
) -> None:
    async with (
        sidecar([answer(text("one"))], roots=[project]) as first,
        sidecar([answer(text("two")), answer(text("three"))], roots=[project]) as second,
    ):
        session = await first.session()
        await first.turn(session, "hello")
        session_id = session.session_id
        error = await refused(second, "session/attach", sessionId=session_id)
        assert (error.code, "kode/session/fork" in error.message) == (-33019, True)
        for method in ("update", "delete"):
            assert (await refused(second, f"session/{method}", sessionId=session_id)).code in (
                -33019,
            )
        read = await second.watch.attach(session_id, access="read")
        assert final_state(read) == final_state(await first.watch.attach(session_id))
        refusals = {
            "turn/start": {"input": [{"type": "text", "text": "x"}]},
            "turn/cancel": {},
            "turn/steer": {"turnId": "t", "input": []},
            "session/update": {"title": "x"},
            "session/delete": {},
        }
        for method, params in refusals.items():
            error = await refused(second, method, sessionId=session_id, **params)
            assert error.code == -33019, method
        forked = (await ask(second, "session/fork", sessionId=session_id))["sessionId"]
        fork = await second.watch.attach(forked)
        await second.turn(fork, "on")
        assert said(second) == ["hello", "on"]
        await first.kill()
        async with asyncio.timeout(HANG_SECONDS):  # never refused: the system let go with it
            taken = await second.watch.attach(session_id)
        await second.turn(taken, "mine now")


@any_storage
async def test_detach_gives_a_session_to_others(project: Path) -> None:
    async with (
        sidecar([answer(text("a"), hold("gate"), text("b"))], roots=[project]) as first,
        sidecar([answer(text("two"))], roots=[project]) as second,
    ):
        session = await first.session()
        turn_id = await first.start(session, "hello")
        async with asyncio.timeout(HANG_SECONDS):
            await first.model.reached("gate")
        assert await ask(first, "session/detach", sessionId=session.session_id) == {}
        assert session.turns[turn_id].stop_reason == "cancelled"
        assert await ask(first, "session/detach", sessionId=session.session_id) == {}
        assert (await refused(first, "session/detach", sessionId="nobody")).code == -33001
        error = await refused(first, "turn/start", sessionId=session.session_id, input=[])
        assert error.code == -33001
        fold = await second.watch.attach(session.session_id)
        await second.turn(fold, "on")
        assert (await refused(first, "session/attach", sessionId=session.session_id)).code == -33019


async def test_requests_right_behind_an_attach_wait_for_it(project: Path) -> None:  # O10
    async with sidecar([answer(text("one"))], roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "hello")
    async with sidecar([answer(text("two"))], roots=[project]) as world:
        attach = {"sessionId": session.session_id}
        start = {**attach, "input": [{"type": "text", "text": "on"}]}
        calls = [
            world.client.start("kode/session/attach", attach),
            world.client.start("kode/turn/start", start),
            world.client.start("kode/session/attach", attach),
        ]
        async with asyncio.timeout(HANG_SECONDS):
            results = [await call.answer for call in calls]
        assert results[2]["activeTurnId"] == results[1]["turnId"]


# A4: fork like git
@any_storage
async def test_a_fork_has_the_path_to_a_message_and_goes_its_own_way(project: Path) -> None:
    call = tool_call("read_file", {"path": "app.py"})
    responses = [answer(call), answer(text("one")), answer(text("two")), answer(text("own"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session(title="Tea", mode="plan")
        await world.turn(session, "first")
        await world.turn(session, "second")
        messages = world.messages(session)
        params = {"sessionId": session.session_id, "messageId": messages[3]["id"]}
        fork = (await ask(world, "session/fork", **params))["sessionId"]
        fold = await world.watch.attach(fork)
        assert [m.role for m in fold.messages.values()] == [m["role"] for m in messages[:4]]
        assert not {m["id"] for m in messages} & set(fold.messages)
        blocks = [one.block for one in fold.blocks.values()]
        call, result = (block for block in blocks if block["type"].startswith("tool"))
        assert result["callBlockId"] == call["id"]
        shown = (await ask(world, "session/get", sessionId=fork))["session"]
        assert (shown["title"], shown["mode"]) == ("Tea (2)", "plan")
        assert shown["meta"]["forkedFrom"] == params
        again = (await ask(world, "session/fork", sessionId=fork))["sessionId"]
        shown = (await ask(world, "session/get", sessionId=again))["session"]
        assert shown["title"] == "Tea (3)"
        await world.turn(fold, "other")
        assert said(world) == ["first", "other"]
        assert len(world.messages(session)) == 6
        # at a call without its result: the fork is valid all the same (W10)
        params["messageId"] = messages[1]["id"]
        cut = await world.watch.attach((await ask(world, "session/fork", **params))["sessionId"])
        assert [m.role for m in cut.messages.values()] == ["user", "assistant", "tool"]
        params["messageId"] = "gone"
        assert (await refused(world, "session/fork", **params)).code == -33002
        assert (await refused(world, "session/fork", sessionId="nobody")).code == -33001


@any_storage
async def test_a_session_is_written_out(project: Path) -> None:
    call = tool_call("read_file", {"path": "app.py"})
    async with sidecar([answer(call), answer(text("It prints 嗨."))], roots=[project]) as world:
        session = await world.session(title="Tea")
        await world.turn(session, "what does it do?")
        params = {"sessionId": session.session_id}
        written = await ask(world, "session/export", **params, format="md")
        assert written["fileName"] == f"{session.session_id}.md"
        assert written["text"].startswith("# Tea\n\n## User\n\nwhat does it do?\n")
        assert "- `read_file` `{" in written["text"]
        assert written["text"].endswith("## Assistant\n\nIt prints 嗨.\n")
        written = await ask(world, "session/export", **params, format="jsonl")
        records = read_records(world.folder(session))
        assert written["text"].encode() == b"".join(record + b"\n" for record in records)
        assert (await refused(world, "session/export", **params, format="tape")).code == -33015
        for kind in ("md", "tape"):
            error = await refused(world, "session/export", sessionId="nobody", format=kind)
            assert error.code == -33001


@any_storage
async def test_sessions_are_found_by_what_was_said(project: Path) -> None:
    responses = [answer(text('Use "quotes" and\nÄpfel')), answer(text("nothing"))]
    async with sidecar(responses, roots=[project]) as world:
        first, second = await world.session(title="A"), await world.session(title="B text")
        await world.turn(first, "how do I 引用 this?")
        await world.turn(second, "other")

        async def found(query: str) -> list[str]:
            listed = await ask(world, "session/list", query=query)
            return sorted(session["title"] for session in listed["sessions"])

        assert await found("引用") == ["A"]
        assert await found('"QUOTES" and\näpfel') == ["A"]
        assert await found("text") == ["B text"]  # not what the files are made of
        assert await found("conversation_id") == []
        assert await found("o") == ["A", "B text"]


async def test_a_foreign_conversation_goes_on(project: Path) -> None:  # A7
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        folder = world.home / "conversations" / "older-1"
        folder.mkdir(parents=True)
        lines = [
            {"id": "m1", "conversation_id": "older-1", "role": "user", "content": "hi"},
            {"id": "m2", "role": "assistant", "content": "ho", "parent_id": "m1", "depth": 1},
        ]
        lines[1]["conversation_id"] = "older-1"
        data = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "messages.jsonl").write_text(data, encoding="utf-8")
        fold = await world.watch.attach("older-1")
        assert [m.text for m in fold.messages.values()] == ["hi", "ho"]
        assert (await world.turn(fold, "on")).stop_reason == "end_turn"
        assert said(world) == ["hi", "on"]
        replay = await world.watch.attach("older-1", type(fold)("older-1"))
        assert [m.text for m in replay.messages.values()] == ["hi", "ho", "on", "ok"]
        assert read_jsonl(folder / "messages.jsonl")[2]["parent_id"] == "m2"


async def test_an_unreadable_session_is_an_error_and_hides_nobody(project: Path) -> None:
    async with sidecar([answer(text("ok"))], roots=[project]) as world:
        session = await world.session(title="good")
        bad = world.home / "conversations" / "bad-1"
        bad.mkdir()
        (bad / "meta.json").write_text('{"id": "bad-1"}')
        (bad / "messages.jsonl").mkdir()
        with pytest.raises(RpcError) as caught:
            await world.watch.attach("bad-1")
        assert caught.value.code == -33023
        listed = await ask(world, "session/list", all=True)
        assert session.session_id in [one["sessionId"] for one in listed["sessions"]]


async def test_what_was_found_at_the_opening_comes_with_the_snapshot(tmp_path: Path) -> None:
    """An edit that no longer fits is told once: not by events before the answer as well."""
    file = tmp_path / "a.txt"
    file.write_text("one\n", encoding="utf-8")
    change = {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}
    script = [answer(tool_call("propose_edit", change)), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "change it")
    file.write_text("three\n", encoding="utf-8")
    async with sidecar(roots=[tmp_path]) as world:
        result = await ask(world, "session/attach", sessionId=session.session_id)
        (view,) = result["changeSets"]
        assert view["files"][0]["hunks"][0]["state"] == "stale"
        await ask(world, "ping")
        methods = [frame.message().get("method") for frame in world.client.frames]
        assert "kode/event" not in methods


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")
async def test_what_a_full_disk_refused_is_in_the_answer(tmp_path: Path) -> None:
    """A client that goes on by numbers misses no event that got none."""
    file, disk_is_full = tmp_path / "a.txt", tmp_path / "full"
    file.write_text("one\n", encoding="utf-8")
    change = {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}
    script = [answer(tool_call("propose_edit", change)), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "change it")
    file.write_text("three\n", encoding="utf-8")
    environment = with_faults(KODE_TEST_FULL_DISK=str(disk_is_full))
    seen, attach = session.seq, {"sessionId": session.session_id}
    async with sidecar(roots=[tmp_path], environment=environment) as world:
        disk_is_full.touch()
        error = await refused(world, "session/attach", afterSeq=seen, **attach)
        assert (error.code, "the disk refused" in error.message) == (-33018, True)
        snapshot = await ask(world, "session/attach", **attach)
        (hunk,) = snapshot["changeSets"][0]["files"][0]["hunks"]
        assert (hunk["state"], snapshot["seq"]) == ("stale", seen)
        disk_is_full.unlink()
        replay = await ask(world, "session/attach", afterSeq=seen, **attach)
        (event,) = replay["events"]
        (hunk,) = event["files"][0]["hunks"]
        assert (hunk["state"], event["seq"], replay["seq"]) == ("stale", seen + 1, seen + 1)
        await ask(world, "ping")
        reported = [event.get("code", event.get("seq")) for event in world.events()]
        assert reported == ["NotSaved", seen + 1]
