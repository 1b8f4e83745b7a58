"""Cancel at every moment of a turn, and of every wait: the history stays valid (O8, E2)."""

import asyncio
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.terminal.client.connection import Call, RpcError
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.fsync_gate import FsyncGate
from tests.support.kimi_rules import refusals
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.processes import children, gone
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.stream_rules import breaches, starts_after_cancel
from tests.support.stuck_search import STUCK_SEARCH, make_stuck

pytestmark = pytest.mark.program
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="a search is stuck on a pipe")
needs_faults = pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")

AT_ONCE = 8
"""Sessions that run side by side."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "tasks.json").write_bytes(b'{"tasks": []}\n')
    (folder / "app.py").write_bytes(b"a = 1\nb = 2\n")
    return folder


def propose(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]}, size=40)


RECORDED = (
    answer(
        thinking("Both at once.", size=7),
        text("先看 😀 both.", size=5),
        tool_call("read_file", {"path": "app.py"}, size=10),
        tool_call("search_code", {"query": "b = 2"}, size=10),
    ),
    answer(
        thinking("One edit.", size=5),
        propose("app.py", "b = 2", "b = 20"),
        tool_call("list_files", {"directory": "."}, size=20),
    ),
    answer(text("Proposed that.", size=5)),
)
"""What the model says in one turn: parallel reads, an edit and a read, a closing text."""


def grown_by(response: RecordedResponse) -> list[int]:
    """How many characters of blocks each piece brings."""
    sizes: list[int] = []
    for piece in response.pieces:
        data = piece.data.removeprefix(b"data: ").strip()
        chunk = {} if data == b"[DONE]" else json.loads(data)
        delta = chunk["choices"][0]["delta"] if chunk.get("choices") else {}
        calls = delta.get("tool_calls", [])
        texts = [delta.get("content"), delta.get("reasoning_content")]
        texts += [call["function"]["arguments"] for call in calls]
        sizes.append(sum(len(one or "") for one in texts))
    return sizes


@dataclass
class Case:
    """One session whose turn is cancelled as soon as `index` events and deltas have come."""

    name: str
    index: int
    stepped: bool
    session: SessionFold
    cancels: list[Call] = field(default_factory=list[Call])
    items: int = 0
    grown: int = 0
    turn_id: str = ""
    over: bool = False

    @property
    def was_cancelled(self) -> bool:
        return self.session.turns[self.turn_id].stop_reason == "cancelled"

    def holds(self, step: int) -> RecordedResponse:
        """The recorded answer; `stepped`, each piece waits to be let go."""
        response = RECORDED[step]
        if not self.stepped:
            return response
        pieces = [
            replace(piece, hold=f"{self.name}/{step}/{number}")
            for number, piece in enumerate(response.pieces)
        ]
        return replace(response, pieces=tuple(pieces))


class Cases:
    """Runs cases in one process and watches each item of the stream as it comes."""

    def __init__(self, world: World, model: AnsweringModel, random: Random) -> None:
        self._world = world
        self._model = model
        self._random = random
        self._by_session: dict[str, Case] = {}
        self._by_name: dict[str, Case] = {}
        self._by_block: dict[str, Case] = {}
        world.client.subscribe(self._received)

    @property
    def every(self) -> list[Case]:
        return list(self._by_name.values())

    def respond(self, body: dict[str, Any]) -> RecordedResponse:
        """The next answer of the case that asks."""
        said = user_texts(body)
        if said[-1] == "go on":
            return answer(text("going on"))
        steps = sum(message["role"] == "assistant" for message in body["messages"])
        return self._by_name[said[0]].holds(steps)

    async def run(self, index: int, *, stepped: bool) -> Case:
        """Start a turn, cancel it at `index`, and see it to its end."""
        world = self._world
        session = await world.session()
        case = Case(f"case {index} {stepped}", index, stepped, session)
        self._by_session[session.session_id] = self._by_name[case.name] = case
        pace = asyncio.create_task(self._let_go_one_by_one(case) if stepped else asyncio.sleep(0))
        case.turn_id = await world.start(session, case.name)
        await world.watch.turn_end(session.session_id, case.turn_id, HANG_SECONDS)
        pace.cancel()
        return case

    async def _let_go_one_by_one(self, case: Case) -> None:
        """A piece goes out when all that the pieces before it brought has been seen."""
        due = 0
        for step, response in enumerate(RECORDED):
            for number, size in enumerate(grown_by(response)):
                gate = f"{case.name}/{step}/{number}"
                await self._model.reached(gate)
                expected = due
                await self._world.watch.until(lambda: case.grown >= expected)  # noqa: B023
                self._model.release(gate)
                due += size

    def _received(self, method: str, params: Any) -> None:
        if method == "kode/event":
            case = self._by_session.get(params["sessionId"])
            for event in params["events"] if case else ():
                if event["type"] == "block.started":
                    self._by_block[event["blockId"]] = case
                self._item(case)
                case.over = case.over or event["type"] == "turn.completed"
        elif method == "kode/delta":
            for delta in params["deltas"]:
                case = self._by_block[delta["blockId"]]
                case.grown += len(delta["add"])
                self._item(case)

    def _item(self, case: Case) -> None:
        case.items += not case.over
        if not case.over and case.items == case.index:
            params = {"sessionId": case.session.session_id}
            for _ in range(self._random.choice((1, 1, 2, 3))):
                case.cancels.append(self._world.client.start("kode/turn/cancel", params))


async def assert_cancelled_well(world: World, case: Case) -> None:
    """The turn ended once, as cancelled if it still ran, and the next request is valid."""
    turn = case.session.turns[case.turn_id]
    async with asyncio.timeout(HANG_SECONDS):
        cancelled = [(await call.answer)["cancelled"] for call in case.cancels]
    assert cancelled == sorted(cancelled, reverse=True)  # never again after "nothing runs"
    assert turn.stop_reason == ("cancelled" if any(cancelled) else "end_turn")
    shown = [m.text for m in case.session.messages.values() if m.role == "assistant" and m.text]
    assert (await world.turn(case.session, "go on")).stop_reason == "end_turn"
    bodies = [chat.body for chat in world.model.chats if user_texts(chat.body)[0] == case.name]
    asked = bodies[-1]
    assert user_texts(asked) == [case.name, "go on"]
    assert [refusals(body) for body in bodies] == [[] for _ in bodies]
    reported = [
        m["content"] for m in asked["messages"] if m["role"] == "assistant" and "content" in m
    ]
    assert reported == shown
    assert case.session.anomalies == []
    async with asyncio.timeout(HANG_SECONDS):
        for chat in world.model.chats:
            if user_texts(chat.body)[0] == case.name:
                await chat.finished.wait()  # the socket was closed


@pytest.mark.parametrize("stepped", [True, False], ids=["step by step", "flat out"])
async def test_cancel_at_every_event(project: Path, rng: Random, stepped: bool) -> None:  # O2 O8
    model = AnsweringModel(lambda body: cases.respond(body))
    async with sidecar(model=model, roots=[project]) as world:
        world.editor.open(project / "app.py")
        cases = Cases(world, model, rng)
        whole = await cases.run(0, stepped=stepped)
        assert whole.session.turns[whole.turn_id].stop_reason == "end_turn"
        assert whole.items > (50 if stepped else 30)
        lanes = asyncio.Semaphore(AT_ONCE)

        async def run(index: int) -> None:
            async with lanes:
                await assert_cancelled_well(world, await cases.run(index, stepped=stepped))

        await asyncio.gather(*(run(index) for index in range(1, whole.items + 1)))
        assert breaches(world.client.frames) == []
        assert starts_after_cancel(world.client.frames) == []
        cancelled = sum(case.was_cancelled for case in cases.every)
        assert cancelled > whole.items // (2 if stepped else 10)


async def cancel(world: World, session: SessionFold, turn_id: str) -> None:
    """Cancel the turn and see it end; its session stays in order and can go on."""
    params = {"sessionId": session.session_id}
    answered = await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
    assert answered == {"cancelled": True}
    turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    assert turn.stop_reason == "cancelled"


async def assert_goes_on(world: World, session: SessionFold) -> None:
    """The next turn runs to its end, its request is valid and nothing was out of order."""
    assert (await world.turn(session, "go on")).stop_reason == "end_turn"
    assert refusals(world.asked()) == []
    assert breaches(world.client.frames) == []
    assert session.anomalies == []


def last_result(session: SessionFold) -> dict[str, Any]:
    """The newest tool result."""
    return [b.block for b in session.blocks.values() if b.type == "tool_result"][-1]


async def test_cancel_while_a_question_is_open(project: Path) -> None:  # O5 O8
    responses = [answer(propose(".vscode/tasks.json", "[]", "[1]")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        asked, withdrawn = asyncio.Event(), asyncio.Event()
        late = asyncio.Event()

        async def answer_late(params: dict[str, Any]) -> str:
            asked.set()
            await late.wait()
            return next(o["optionId"] for o in params["options"] if o["kind"] == "allow_session")

        world.editor.answer_permission = answer_late
        world.client.subscribe(lambda method, _: method == "$/cancelRequest" and withdrawn.set())
        session = await world.session()
        turn_id = await world.start(session, "edit")
        async with asyncio.timeout(HANG_SECONDS):
            await asked.wait()
            await cancel(world, session, turn_id)
            await withdrawn.wait()
        late.set()  # an answer that nobody waits for any more
        resolved = [e for e in world.journal(session) if e["type"] == "permission.resolved"]
        assert [e["by"] for e in resolved] == ["cancel"]
        assert last_result(session)["status"] == "cancelled"
        assert session.change_sets == {}
        await assert_goes_on(world, session)


async def test_cancel_while_an_edit_is_unanswered(project: Path) -> None:  # O6 O8
    responses = [answer(propose("app.py", "b = 2", "b = 20")), answer(text("ok"))]
    async with sidecar(responses, roots=[project]) as world:
        world.editor.manners.hold_changes = reported = asyncio.Event()
        buffer = world.editor.open(project / "app.py")
        session = await world.session(mode="auto")
        turn_id = await world.start(session, "edit")
        async with asyncio.timeout(HANG_SECONDS):
            while "b = 20" not in buffer.text:  # the editor has applied it and says nothing
                await world.client.request("kode/ping")
        await cancel(world, session, turn_id)
        assert last_result(session)["status"] == "cancelled"
        (hunk,) = only_change_set(session).hunks()
        assert hunk.state == "proposed"
        reported.set()
        await world.watch.until(lambda: hunk.state != "proposed", HANG_SECONDS)
        assert (hunk.state, len(world.editor.edits)) == ("applied", 1)
        await assert_goes_on(world, session)
        assert "applied" in json.dumps(world.asked()["messages"])  # the model is told after all


@needs_posix
async def test_cancel_while_a_search_runs(project: Path) -> None:  # O8
    make_stuck(project)
    search = tool_call("search_code", STUCK_SEARCH)
    responses = [answer(search, search, tool_call("list_files", {"directory": "."}))]
    async with sidecar([*responses, answer(text("ok"))], roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "search")
        pid = world.pid
        async with asyncio.timeout(HANG_SECONDS):
            while len(started := children(pid)) < 2:
                await world.client.request("kode/ping")
        await cancel(world, session, turn_id)
        assert children(pid) == []
        for child in started:
            assert await asyncio.to_thread(gone, child, HANG_SECONDS)
        await assert_goes_on(world, session)


async def cancelled_request(world: World, call: Call) -> None:
    """`$/cancelRequest` answers a request that waits."""
    world.client.notify("$/cancelRequest", {"id": call.id})
    with pytest.raises(RpcError) as caught:
        async with asyncio.timeout(HANG_SECONDS):
            await call.answer
    assert (caught.value.code, caught.value.data["code"]) == (-32800, "RequestCancelled")


@needs_faults
async def test_cancel_request_for_a_turn_that_is_not_accepted_yet(project: Path) -> None:
    # The turn that began behind it is cancelled; the same key is then another turn.
    responses = [answer(text("one "), hold("gate")), answer(text("two")), answer(text("three"))]
    async with (
        FsyncGate() as gate,
        sidecar(responses, roots=[project], environment=gate.environment) as world,
    ):
        session = await world.session()
        gate.shut()
        prompt = {
            "sessionId": session.session_id,
            "input": [{"type": "text", "text": "go"}],
            "clientTurnKey": "k",
        }
        start = world.client.start("kode/turn/start", prompt)
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        await cancelled_request(world, start)
        gate.open()
        turn = await world.watch.until(
            lambda: next((t for t in session.turns.values() if t.stop_reason), None), HANG_SECONDS
        )
        assert turn.stop_reason == "cancelled"
        again = await world.client.request("kode/turn/start", prompt, HANG_SECONDS)
        assert again["turnId"] != turn.id
        assert "deduplicated" not in again
        await world.watch.turn_end(session.session_id, again["turnId"], HANG_SECONDS)
        assert user_texts(world.asked()) == ["go", "go"]
        await assert_goes_on(world, session)


@needs_faults
async def test_who_cancels_waits_for_no_disk(project: Path) -> None:  # O3 O8
    # The end of a cancelled turn is told once it is written; what is acknowledged after it waits
    # for its save, too. A turn that ends by itself is told when it is saved.
    responses = [answer(text("half "), hold("gate")), answer(hold("next"), text("ok"))]
    async with (
        FsyncGate() as gate,
        sidecar(
            [*responses, answer(text("fine"))], roots=[project], environment=gate.environment
        ) as world,
    ):
        session = await world.session()
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: any(b.text == "half " for b in session.blocks.values()))
        gate.shut()
        await world.client.request("kode/turn/cancel", {"sessionId": session.session_id})
        ended = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert ended.stop_reason == "cancelled"
        assert world.messages(session)[-1]["content"][0]["text"] == "half "
        assert world.journal(session)[-1]["type"] == "turn.completed"
        await gate.held()
        start = asyncio.create_task(world.start(session, "and now"))
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("next")  # the model is asked before the disk is
        assert not start.done()
        gate.open()
        world.model.release("next")
        turn_id = await start
        ended = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert ended.stop_reason == "end_turn"
        await assert_goes_on(world, session)


@needs_faults
async def test_cancel_request_for_a_steer_and_for_a_session(project: Path) -> None:
    # Neither disturbs the turn that runs, nor the session that is used.
    responses = [answer(text("one "), hold("gate")), answer(text("two")), answer(text("three"))]
    async with (
        FsyncGate() as gate,
        sidecar(responses, roots=[project], environment=gate.environment) as world,
    ):
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        gate.shut()
        params = {
            "sessionId": session.session_id,
            "turnId": turn_id,
            "input": [{"type": "text", "text": "more"}],
        }
        for method, wanted in (("kode/turn/steer", params), ("kode/session/new", {})):
            call = world.client.start(method, wanted)
            await gate.held()
            await cancelled_request(world, call)
        gate.open()
        world.model.release("gate")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        await assert_goes_on(world, session)


async def test_cancel_request_for_a_decision(project: Path) -> None:
    # The edit may be on its way to the editor already: what becomes of it is told by events.
    responses = [answer(propose("app.py", "b = 2", "b = 20")), answer(text("ok"))]
    async with sidecar([*responses, answer(text("fine"))], roots=[project]) as world:
        world.editor.manners.hold_changes = reported = asyncio.Event()
        buffer = world.editor.open(project / "app.py")
        session = await world.session()
        await world.turn(session, "edit")
        change_set = only_change_set(session)
        params = {"changeSetId": change_set.id, "rest": "accept", "seenSeq": session.seq}
        decide = world.client.start("kode/changeSet/decide", params)
        async with asyncio.timeout(HANG_SECONDS):
            while "b = 20" not in buffer.text:
                await world.client.request("kode/ping")
        await cancelled_request(world, decide)
        reported.set()
        await world.watch.until(lambda: change_set.state == "decided", HANG_SECONDS)
        assert [hunk.state for hunk in change_set.hunks()] == ["applied"]
        again = await world.decide(change_set)  # decided already: answered, and nothing is done
        assert [again["applied"], buffer.text.count("b = 20")] == [[change_set.hunks()[0].id], 1]
        await assert_goes_on(world, session)
