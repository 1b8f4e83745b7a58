"""How many files of the package an action enters in the real process: a reader opens as many.

The caps are what was reached, so that no way grows; aims that are lower stand beside them.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.answering_model import AnsweringModel
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import BUILT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, only_change_set, sidecar
from tests.support.traced_process import Trace, Way

pytestmark = pytest.mark.skipif(BUILT is not None, reason="traced by a sitecustomize")

MOST_OF_A_DELTA = 20  # what is shown is on disk, and the log has each request as it happens
MOST_OF_A_DECISION = 58  # aim: 35; notebooks, and the log has it as it happens
MOST_OF_A_FIRST_TURN = 125  # aim: 80; commands, goals, notes, tools found, a fixed prefix


def passes(way: Way, most: int, *known: str) -> None:
    """Assert that the way passes these files, and no more than `most`."""
    print(way)  # noqa: T201 - shown with -s, and where it fails
    assert way.files.keys() >= set(known)
    assert len(way.files) <= most


def said(session: SessionFold) -> str:
    return "".join(block.text for block in session.blocks.values())


async def test_a_text_delta_from_socket_to_stdout() -> None:
    words = ["two ", "three ", "four ", "five "]
    held = [part for word in words for part in (hold(word), text(word))]
    script = answer(text("one "), *held, hold("end"), text("six"))
    async with Trace() as trace, sidecar([script], environment=trace.environment) as world:
        session = await world.session()
        turn_id = await world.start(session, "hello")
        await world.watch.until(lambda: "one" in said(session), HANG_SECONDS)
        ways: list[Way] = []
        for word in words:
            await trace.begin()
            world.model.release(word)
            await world.watch.until(lambda word=word: word in said(session), HANG_SECONDS)
            ways.append(await trace.end())
        world.model.release("end")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    way = ways[0].shared(ways[1:])  # by chance something else happens beside one of them
    # The clock is looked at when the next piece is awaited: by then this one is written.
    way.files.pop("servers/boot/system.py", None)
    passes(way, MOST_OF_A_DELTA, "infrastructure/providers/sse.py", "servers/lsp/outbox.py")


async def test_a_decision_to_verified_and_saved(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_bytes(b"a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n")
    edits = [
        {"old": "a = 1", "new": "a"},
        {"old": "c = 3", "new": "c"},
        {"old": "e = 5", "new": "e"},
    ]
    edit = tool_call("propose_edit", {"path": "plain.py", "edits": edits})
    script = [answer(edit), answer(text("ok"))]
    async with (
        Trace() as trace,
        sidecar(script, roots=[tmp_path], environment=trace.environment) as world,
    ):
        buffer = world.editor.open(file)
        session = await world.session()
        await world.turn(session, "edit")
        change_set = only_change_set(session)
        ways: list[Way] = []
        for number, hunk in enumerate(change_set.hunks("proposed")):
            await world.client.request("kode/ping", {}, HANG_SECONDS)  # before it is done with
            await trace.begin("servers/lsp/connection.py")
            decision = {"hunkId": hunk.id, "action": "accept"}
            result = await world.decide(change_set, decisions=[decision])
            await world.watch.until(
                lambda left=2 - number: len(change_set.hunks("proposed")) == left, HANG_SECONDS
            )
            ways.append(await trace.end())
            assert result["verified"]
        assert buffer.text == "a\nb = 2\nc\nd = 4\ne\nf = 6\n"
    way = ways[0].shared(ways[1:])  # by chance something else happens beside one of them
    passes(way, MOST_OF_A_DECISION, "agent/edits/applying.py", "infrastructure/records/saver.py")


async def test_the_first_turn_to_the_body_of_its_request() -> None:
    asked_ns: list[int] = []

    def respond(_body: dict[str, Any]) -> Any:
        asked_ns.append(time.monotonic_ns())
        return answer(text("hi"))

    async with (
        Trace() as trace,
        sidecar(model=AnsweringModel(respond), environment=trace.environment) as world,
    ):
        # Loaded, so that what is imported for the first time does not count.
        await world.client.request("kode/models/list", {}, HANG_SECONDS)
        ways: list[Way] = []
        for _ in range(3):
            session = await world.session()
            await world.client.request("kode/ping", {}, HANG_SECONDS)  # before it is done with
            await trace.begin("servers/lsp/connection.py")
            await world.turn(session, "hello")
            ways.append((await trace.end()).until(asked_ns.pop()))
    way = ways[0].shared(ways[1:])  # by chance something else happens beside one of them
    passes(way, MOST_OF_A_FIRST_TURN, "agent/turns/setup.py", "core/kernel/turn_loop.py")
