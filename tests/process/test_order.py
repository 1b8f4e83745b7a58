"""Every ordering rule of the stream (protocol, section 4), over the real process."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import Call, RpcError
from tests.support.answering_model import AnsweringModel
from tests.support.fsync_gate import FsyncGate
from tests.support.model_script import answer, failure, hold, text, thinking, tool_call
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.stream_rules import breaches

pytestmark = pytest.mark.program

LINES = [f"line_{number} = {number}" for number in range(40)]

FULL_TURN = [
    answer(
        thinking("Both at once."),
        text("先看 😀。"),
        tool_call("read_file", {"path": "app.py"}),
        tool_call("search_code", {"query": "line_3"}),
    ),
    answer(
        tool_call(
            "propose_edit", {"path": "app.py", "edits": [{"old": "line_5 = 5", "new": "five = 5"}]}
        )
    ),
    answer(text("Proposed.")),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    (folder / "app.py").write_text("\n".join(LINES) + "\n", newline="\n")
    return folder


def in_order(world: World) -> None:
    """No rule was broken, as two readers of the stream see it."""
    assert breaches(world.client.frames) == []
    for session in world.watch.sessions.values():
        assert session.anomalies == []


def refuse_or_allow(world: World, *kinds: str) -> None:
    """Answer the permission questions to come with these kinds of option, one by one."""
    answers = iter(kinds)

    async def answer_permission(params: dict[str, Any]) -> str:
        kind = next(answers)
        return next(o["optionId"] for o in params["options"] if o["kind"] == kind)

    world.editor.answer_permission = answer_permission


def edit_tasks(number: int) -> Any:
    edits = [{"old": '"tasks": [', "new": f'"v{number}": 1, "tasks": ['}]
    return answer(tool_call("propose_edit", {"path": ".vscode/tasks.json", "edits": edits}))


async def test_the_answer_that_creates_an_id_precedes_what_names_it(project: Path) -> None:  # O1
    def respond(body: dict[str, Any]) -> Any:
        return answer(text("ok"))

    async with sidecar(model=AnsweringModel(respond), roots=[project]) as world:
        calls = [world.client.start("kode/session/new", {}) for _ in range(20)]
        sessions = [(await call.answer)["sessionId"] for call in calls]
        starts: list[Call] = []
        for session_id in sessions:
            params = {"sessionId": session_id, "input": [{"type": "text", "text": "hi"}]}
            starts.append(world.client.start("kode/turn/start", params))
        for session_id, start in zip(sessions, starts, strict=True):
            turn_id = (await start.answer)["turnId"]
            await world.watch.turn_end(session_id, turn_id, HANG_SECONDS)
        assert breaches(world.client.frames) == []


async def test_everything_of_a_turn_precedes_its_one_end(project: Path) -> None:  # O2
    responses = [*FULL_TURN, failure(401, "invalid_authentication_error", "no")]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        assert (await world.turn(session, "edit")).stop_reason == "end_turn"
        assert (await world.turn(session, "again")).stop_reason == "error"
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        journal = world.journal(session)
        ends = [event["turnId"] for event in journal if event["type"] == "turn.completed"]
        assert ends == list(session.turns)
        for turn_id in session.turns:
            kinds = [event["type"] for event in journal if event.get("turnId") == turn_id]
            assert (kinds[0], kinds[-1]) == ("turn.started", "turn.completed")
        in_order(world)


async def test_an_event_is_on_disk_before_it_is_on_the_wire(project: Path) -> None:  # O3
    async with sidecar(FULL_TURN, roots=[project]) as world:
        session = await world.session()
        late: list[dict[str, Any]] = []

        def compare(method: str, params: Any) -> None:
            if method == "kode/event":
                stored = world.journal(session)
                late.extend(
                    event
                    for event in params["events"]
                    if "seq" in event and stored[event["seq"] - 1 : event["seq"]] != [event]
                )

        world.client.subscribe(compare)
        await world.turn(session, "edit")
        assert late == []
        assert session.seq == len(world.journal(session)) > 20
        in_order(world)


async def _waits(world: World, gate: FsyncGate, call: Call) -> Any:
    """The answer of `call`, which must not come before the disk has answered."""
    await gate.held()
    await world.client.request("kode/ping", {}, HANG_SECONDS)
    assert not call.answer.done()
    gate.open()
    async with asyncio.timeout(HANG_SECONDS):
        return await call.answer


@pytest.mark.skipif(BUILT is not None, reason="a frozen program takes no faults")
async def test_what_is_acknowledged_is_saved(project: Path) -> None:  # O3
    # The model does not wait for the disk; the answer and all later events of the session do.
    responses = [
        FULL_TURN[1],
        answer(text("a"), hold("gate"), text("b")),
        answer(text("c"), hold("end")),
    ]
    async with (
        FsyncGate() as gate,
        sidecar(responses, roots=[project], environment=gate.environment) as world,
    ):
        gate.shut()
        new = world.client.start("kode/session/new", {})
        result = await _waits(world, gate, new)
        session = world.watch.session(result["sessionId"], result["seq"])
        gate.shut()
        prompt = [{"type": "text", "text": "edit"}]
        where = {"sessionId": session.session_id}
        start = world.client.start("kode/turn/start", {**where, "input": prompt})
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")  # two answers of the model meanwhile
        turn = await _waits(world, gate, start)
        await world.watch.until(lambda: session.change_sets, HANG_SECONDS)
        for method, params in (
            ("kode/turn/steer", {**where, "turnId": turn["turnId"], "input": prompt}),
            (
                "kode/changeSet/decide",
                {
                    "changeSetId": only_change_set(session).id,
                    "rest": "reject",
                    "seenSeq": session.seq,
                },
            ),
        ):
            gate.shut()
            await _waits(world, gate, world.client.start(method, params))
        world.model.release("gate")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("end")
        gate.shut()
        world.model.release("end")
        await gate.held()
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        assert session.active_turn is not None
        gate.open()
        await world.watch.turn_end(session.session_id, turn["turnId"], HANG_SECONDS)
        in_order(world)


async def test_a_block_starts_grows_and_ends_once(project: Path) -> None:  # O4
    broken = answer(text("half a sen"), finish=None, usage=None, done=False)
    responses = [FULL_TURN[0], broken, FULL_TURN[1], FULL_TURN[2]]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        assert (await world.turn(session, "edit")).stop_reason == "end_turn"
        kinds = [event["type"] for event in world.journal(session)]
        ended = kinds.count("block.completed") + kinds.count("block.dropped")
        assert kinds.count("block.started") == ended
        assert kinds.count("block.dropped") == 1
        assert {block.state for block in session.blocks.values()} == {"completed"}
        in_order(world)


async def test_each_permission_question_is_resolved_once(project: Path) -> None:  # O5
    responses = [*(edit_tasks(n) for n in range(4)), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        refuse_or_allow(world, "reject", "allow_once", "allow_session")
        session = await world.session()
        await world.turn(session, "edit")
        journal = world.journal(session)
        asked = [e["requestId"] for e in journal if e["type"] == "permission.requested"]
        resolved = [e for e in journal if e["type"] == "permission.resolved"]
        assert [e["requestId"] for e in resolved] == asked
        assert [e["by"] for e in resolved] == ["user", "user", "user", "policy"]
        assert len(world.editor.asked) == 3
        assert session.questions == {}
        in_order(world)


async def test_a_question_nobody_answers_is_resolved_by_time(project: Path) -> None:  # O5
    environment = {"KODE_PERMISSION_TIMEOUT": "0.1"}
    responses = [edit_tasks(1), answer(text("ok"))]
    async with sidecar(responses, roots=[project], environment=environment) as world:
        late = asyncio.Event()

        async def too_late(params: dict[str, Any]) -> str:
            await late.wait()
            return next(o["optionId"] for o in params["options"] if o["kind"] == "allow_once")

        world.editor.answer_permission = too_late
        session = await world.session()
        assert (await world.turn(session, "edit")).stop_reason == "end_turn"
        late.set()
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        resolved = [e for e in world.journal(session) if e["type"] == "permission.resolved"]
        assert [e["by"] for e in resolved] == ["timeout"]
        assert session.change_sets == {}
        in_order(world)


@pytest.mark.parametrize("mode", ["auto", "review"])
async def test_an_edit_is_proposed_before_it_is_sent(project: Path, mode: str) -> None:  # O6
    async with sidecar(FULL_TURN, roots=[project]) as world:
        buffer = world.editor.open(project / "app.py")
        session = await world.session(mode=mode)
        await world.turn(session, "edit")
        if mode == "review":
            await world.decide(only_change_set(session))
        assert "five = 5" in buffer.text
        assert len(world.editor.edits) == 1
        in_order(world)


async def test_no_edit_is_computed_on_an_older_text(project: Path, rng: Random) -> None:  # O7
    # Keys keep coming while hunks are accepted one by one.
    wanted = range(1, 40, 4)
    edits = [{"old": f"line_{n} = {n}\n", "new": f"accepted_{n} = 😀\n"} for n in wanted]
    proposal = tool_call("propose_edit", {"path": "app.py", "edits": edits})
    async with sidecar([answer(proposal), answer(text("ok"))], roots=[project]) as world:
        buffer = world.editor.open(project / "app.py")
        session = await world.session()
        await world.turn(session, "edit")
        change_set = only_change_set(session)
        calls: list[Call] = []

        def press_a_key() -> None:
            place = buffer.text.index(f"= {rng.choice(wanted) + 2}\n")
            world.editor.type(buffer, place, rng.choice(["x😀", "\r\n", "# 字\n"]))

        for hunk in change_set.hunks("proposed"):
            for _ in range(rng.randrange(4)):
                press_a_key()
            decisions = [{"hunkId": hunk.id, "action": "accept"}]
            params = {"changeSetId": change_set.id, "decisions": decisions}
            calls.append(world.client.start("kode/changeSet/decide", params))
        async with asyncio.timeout(HANG_SECONDS):
            await asyncio.gather(*(call.answer for call in calls))
        assert len(change_set.hunks("applied")) == len(wanted)
        assert all(buffer.text.count(f"accepted_{n} = 😀\n") == 1 for n in wanted)
        assert _edits_on_old_texts(world) == []
        in_order(world)


def _edits_on_old_texts(world: World) -> list[int]:
    """Versions of edits below one that was told before a request answered before the edit."""
    reported, known, old = 0, 0, list[int]()
    at_request: dict[int, int] = {}
    for frame in world.client.frames:
        message = frame.message()
        method = message.get("method")
        if method == "textDocument/didChange":
            reported = message["params"]["textDocument"]["version"]
        elif frame.direction == "out" and method is not None:
            at_request[message.get("id", 0)] = reported
        elif method is None and frame.direction == "in":
            known = max(known, at_request[message["id"]])
        elif method == "workspace/applyEdit":
            (change,) = message["params"]["edit"]["documentChanges"]
            version = change["textDocument"]["version"]
            old += [version] if version < known else []
    return old


async def test_after_a_cancel_nothing_new_starts(project: Path) -> None:  # O8
    # The user has just said more, so that another step of the model would be due.
    call = tool_call("list_files", {"directory": "."})
    responses = [answer(text("one"), hold("gate"), call), answer(text("two"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        await _reached(world, "gate")
        params = {"sessionId": session.session_id, "turnId": turn_id}
        more = {**params, "input": [{"type": "text", "text": "and more"}]}
        await world.client.request("kode/turn/steer", more, HANG_SECONDS)
        answered = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        assert answered == {"cancelled": True}
        world.model.release("gate")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        assert len(world.model.chats) == 1
        assert {block.type for block in session.blocks.values()} == {"text"}
        in_order(world)


async def test_cancelling_an_idle_session_never_affects_the_next_turn(
    project: Path,
) -> None:  # O8
    responses = [answer(text("one")), answer(text("two"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        where = {"sessionId": session.session_id}
        prompt = {**where, "input": [{"type": "text", "text": "go"}]}
        first = await world.turn(session, "go")
        cancels = [
            world.client.start("kode/turn/cancel", where),
            world.client.start("kode/turn/cancel", {**where, "turnId": first.id}),
        ]
        start = world.client.start("kode/turn/start", prompt)
        cancels.append(world.client.start("kode/turn/cancel", {**where, "turnId": first.id}))
        turn_id = (await start.answer)["turnId"]
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert [await call.answer for call in cancels] == [{"cancelled": False}] * 3
        in_order(world)


async def test_a_steer_gets_another_step_or_no_active_turn(project: Path) -> None:  # O8
    responses = [answer(text("one"), hold("gate")), answer(text("two"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        await _reached(world, "gate")
        params = {
            "sessionId": session.session_id,
            "turnId": turn_id,
            "input": [{"type": "text", "text": "and more"}],
        }
        assert await world.client.request("kode/turn/steer", params, HANG_SECONDS) == {}
        world.model.release("gate")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        assert world.asked()["messages"][-1]["content"] == "and more"
        with pytest.raises(RpcError) as caught:
            await world.client.request("kode/turn/steer", params, HANG_SECONDS)
        assert caught.value.code == -33004
        in_order(world)


async def test_answers_requests_and_notifications_share_one_queue(project: Path) -> None:  # O9
    # What was decided is told in the order in which it happened: the edit, its outcome, the
    # answer; and pings are answered in their order between the deltas of a running turn.
    words = text("word " * 500, size=5)
    async with sidecar([*FULL_TURN[1:], answer(hold("gate"), words)], roots=[project]) as world:
        world.editor.open(project / "app.py")
        session = await world.session()
        await world.turn(session, "edit")
        decide = await world.decide(only_change_set(session))
        assert decide["verified"] is True
        said = [frame for frame in world.client.frames if frame.direction == "in"]
        places = [
            next(n for n, frame in enumerate(said) if marker in frame.body)
            for marker in (b'"workspace/applyEdit"', b'"state":"applied"', b'"verified":true')
        ]
        assert places == sorted(places)
        turn_id = await world.start(session, "talk")
        pings: list[Call] = []
        await _reached(world, "gate")
        world.client.subscribe(lambda *_: pings.append(world.client.start("kode/ping", {})))
        world.model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        sent = pings.copy()  # what is told after the turn brings more
        async with asyncio.timeout(HANG_SECONDS):
            await asyncio.gather(*(ping.answer for ping in sent))
        ids = {ping.id for ping in sent}
        answers = [frame.message() for frame in world.client.frames if frame.direction == "in"]
        answered = [m["id"] for m in answers if "method" not in m and m["id"] in ids]
        assert answered == sorted(ids)
        assert len(ids) > 1
        in_order(world)


async def test_messages_are_handled_in_arrival_order(project: Path) -> None:  # O10
    # Nothing waits for an answer here: keys and a prompt, then a second prompt and a cancel.
    responses = [answer(tool_call("read_file", {"path": "app.py"})), answer(hold("gate"))]
    async with sidecar(responses, roots=[project]) as world:
        session = await world.session()
        where = {"sessionId": session.session_id}
        prompt = {**where, "input": [{"type": "text", "text": "read"}]}
        buffer = world.editor.open(project / "app.py", "start\n")
        for number in range(50):
            world.editor.type(buffer, 0, f"{number} ")
        first = world.client.start("kode/turn/start", prompt)
        second = world.client.start("kode/turn/start", prompt)
        await _reached(world, "gate")
        read = world.asked()["messages"][-1]["content"]
        assert " ".join(map(str, range(49, -1, -1))) + " start" in read
        refused = world.client.start("kode/turn/start", prompt)
        cancel = world.client.start("kode/turn/cancel", where)
        idle = world.client.start("kode/turn/cancel", {**where, "turnId": "another"})
        turn_id = (await first.answer)["turnId"]
        for call in (second, refused):
            with pytest.raises(RpcError) as caught:
                await call.answer
            assert caught.value.code == -33003
        assert await cancel.answer == {"cancelled": True}
        assert await idle.answer == {"cancelled": False}
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        in_order(world)


async def test_a_start_and_a_cancel_in_one_breath(project: Path) -> None:  # O8 O10
    def respond(body: dict[str, Any]) -> Any:
        return answer(text("ok"))

    async with sidecar(model=AnsweringModel(respond), roots=[project]) as world:
        session = await world.session()
        where = {"sessionId": session.session_id}
        prompt = {**where, "input": [{"type": "text", "text": "go"}]}
        for _ in range(20):
            start = world.client.start("kode/turn/start", prompt)
            cancel = world.client.start("kode/turn/cancel", where)
            assert await cancel.answer == {"cancelled": True}
            turn_id = (await start.answer)["turnId"]
            turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
            assert turn.stop_reason == "cancelled"
        assert (await world.turn(session, "stay")).stop_reason == "end_turn"
        in_order(world)


async def test_a_start_right_after_the_end_is_accepted(project: Path) -> None:  # O11
    def respond(body: dict[str, Any]) -> Any:
        return answer(text("ok"))

    rounds = 40
    async with sidecar(model=AnsweringModel(respond), roots=[project]) as world:
        session = await world.session()
        starts: list[Call] = []
        done = asyncio.Event()

        def start_again(method: str, params: Any) -> None:
            ends = method == "kode/event" and params["events"][-1]["type"] == "turn.completed"
            if ends and len(starts) < rounds:
                starts.append(_start(world, session))
            elif ends:
                done.set()

        world.client.subscribe(start_again)
        starts.append(_start(world, session))
        async with asyncio.timeout(HANG_SECONDS):
            await done.wait()
        turns = [(await call.answer)["turnId"] for call in starts]
        assert turns == list(session.turns)
        assert len(turns) == rounds
        in_order(world)


def _start(world: World, session: SessionFold) -> Call:
    params = {"sessionId": session.session_id, "input": [{"type": "text", "text": "again"}]}
    return world.client.start("kode/turn/start", params)


async def _reached(world: World, gate: str) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        await world.model.reached(gate)
