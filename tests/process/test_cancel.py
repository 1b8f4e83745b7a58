"""Cancel at every moment of a turn, and of every wait: the history stays valid (O8, E2)."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.client.connection import Call, RpcError
from kode_sidecar.client.editor import Manners
from kode_sidecar.client.fold import SessionFold
from kode_sidecar.client.session_view import TurnView
from kode_sidecar.demo.model_server import RecordedResponse
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.fsync_gate import FsyncGate
from tests.support.kimi_rules import refusals
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.processes import children, gone
from tests.support.program import BUILT
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.stream_rules import breaches
from tests.support.stuck_search import make_stuck

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
    after_end: list[str] = field(default_factory=list[str])

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
        elif method == "kode/delta":
            for delta in params["deltas"]:
                case = self._by_block[delta["blockId"]]
                case.grown += len(delta["add"])
                self._item(case)

    def _item(self, case: Case) -> None:
        case.items += 1
        if case.items == case.index:
            params = {"sessionId": case.session.session_id}
            for _ in range(self._random.choice((1, 1, 2, 3))):
                case.cancels.append(self._world.client.start("kode/turn/cancel", params))


async def assert_cancelled_well(world: World, model: AnsweringModel, case: Case) -> None:
    """The turn ended once, as cancelled if it still ran, and the next request is valid."""
    turn = case.session.turns[case.turn_id]
    async with asyncio.timeout(HANG_SECONDS):
        cancelled = [(await call.answer)["cancelled"] for call in case.cancels]
    assert sorted(cancelled, reverse=True) == cancelled  # never again after "not running"
    assert turn.stop_reason == ("cancelled" if any(cancelled) else "end_turn")
    shown = [m.text for m in case.session.messages.values() if m.role == "assistant" and m.text]
    assert (await world.turn(case.session, "go on")).stop_reason == "end_turn"
    (asked,) = [c.body for c in model.chats if user_texts(c.body)[:: max(1, len(user_texts(c.body)) - 1)] == [case.name, "go on"]]
    assert refusals(asked) == []
    told = [m["content"] for m in asked["messages"] if m["role"] == "assistant" and "content" in m]
    assert told == shown
    assert case.session.questions == {}
    assert case.session.anomalies == []
