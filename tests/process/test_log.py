"""`agent.log` is written as things happen: what a killed process did is there. W6"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.model_script import answer, failure, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, read_jsonl, sidecar

READ = tool_call("read_file", {"path": "a.py"})
EDIT = tool_call("propose_edit", {"path": "a.py", "edits": [{"old": "n = 1", "new": "n = 2"}]})


async def logged(world: World, last: Sequence[str]) -> list[dict[str, Any]]:
    """The lines of the log, once its last events are these."""
    path = world.home / "logs" / "agent.log"
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            lines = read_jsonl(path) if path.exists() else []
            if [line["event"] for line in lines][-len(last) :] == list(last):
                return lines
            await asyncio.sleep(0.01)


async def test_the_log_of_a_killed_process_says_what_happened_until_then(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("n = 1\n")
    script = [
        failure(503, "server_error", "busy"),
        answer(text("Let me see."), READ),
        answer(EDIT),
        answer(text("It is "), hold("here"), text("done")),
    ]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        turn_id = await world.start(session, "change it")
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("here")
        lines = await logged(world, ["request", "first_byte"])
        await world.kill()
    start, *lines = lines
    assert (start["event"], start["settings"]["mode"]) == ("start", "review")
    assert [line["event"] for line in lines if line["event"] != "notice"] == [
        "turn_started",
        "prompt",
        "request",
        "retry",
        "first_byte",
        "response",
        "answer",
        "tool_begun",
        "tool_result",
        "request",
        "first_byte",
        "response",
        "answer",
        "tool_begun",
        "edits",
        "tool_result",
        "request",
        "first_byte",
    ]
    by_event = {line["event"]: line for line in lines}
    assert by_event["retry"]["code"] == "Provider"
    assert by_event["tool_result"]["tool"] == "propose_edit"
    assert by_event["tool_result"]["status"] == "ok"
    assert by_event["tool_result"]["duration"] >= 0
    assert by_event["edits"]["hunks"] == {"proposed": 1}
    assert by_event["response"]["tokens"]["output"] > 0
    assert by_event["answer"]["trace_id"] == turn_id
    assert {line["conversation_id"] for line in lines} == {session.session_id}


async def test_the_end_of_a_turn_and_a_decision_are_logged(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("n = 1\n")
    async with sidecar([answer(EDIT), answer(text("done"))], roots=[tmp_path]) as world:
        world.editor.open(tmp_path / "a.py")
        session = await world.session()
        await world.turn(session, "change it")
        lines = await logged(world, ["response", "answer", "turn_completed"])
        assert lines[-1]["stop_reason"] == "end_turn"
        await world.decide(next(iter(session.change_sets.values())))
        lines = await logged(world, ["edits"])
        assert lines[-1]["hunks"] == {"applied": 1}
