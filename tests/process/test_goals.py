"""Goals: a turn goes on until a check passes or a limit is reached; repeats are noticed."""

import json
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.process.test_commands import DONE, results, run, said, world
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World

LIST = "{run: list, allow: [python]}"
FLAKY = (
    "import pathlib, sys\n"
    "count = pathlib.Path('count')\n"
    "runs = int(count.read_text()) + 1 if count.exists() else 1\n"
    "count.write_text(str(runs))\n"
    "print('run', runs)\n"
    "sys.exit(0 if runs >= 6 else 1)\n"
)
STOP = answer(text("It should work now."))
CHECK = run("python", "flaky.py")
GOAL = {"command": ["python", "flaky.py"], "rounds": 6}


def project(folder: Path) -> None:
    (folder / "项目").mkdir(exist_ok=True)
    (folder / "项目" / "flaky.py").write_text(FLAKY)


def notices(started: World) -> list[str]:
    return [one["message"] for one in started.events() if one.get("code") == "GoalChecked"]


def completed(started: World) -> dict[str, Any]:
    return [one for one in started.events() if one["type"] == "turn.completed"][-1]


@pytest.mark.parametrize("prompt", ["make it pass", "/goal python flaky.py -- make it pass"])
async def test_six_rounds_until_a_flaky_test_passes(tmp_path: Path, prompt: str) -> None:
    project(tmp_path)
    responses = [part for _ in range(6) for part in (CHECK, STOP)]
    async with world(tmp_path, LIST, *responses) as started:
        goal = {} if prompt.startswith("/") else {"goal": GOAL}
        await started.turn(await started.session(agent="coder", mode="auto"), prompt, **goal)
        assert completed(started)["stopReason"] == "end_turn"
        assert [one["status"] for one in results(started)] == ["error"] * 5 + ["ok"]
        assert len(notices(started)) == 6
        assert (
            "not reached in round 5 of 6: `python flaky.py` has not passed" in notices(started)[4]
        )
        assert "reached in round 6: python flaky.py" in notices(started)[5]
        reported = json.dumps(started.asked(-1)["messages"])
        assert "[The goal] Go on until run_command" in reported
        assert reported.count("[The goal, round ") == 5
        for before, after in zip(range(11), range(1, 12), strict=True):
            old, new = started.asked(before)["messages"], started.asked(after)["messages"]
            assert new[: len(old)] == old  # the prefix stays


async def test_a_goal_ends_at_its_limit_with_the_reason(tmp_path: Path) -> None:
    project(tmp_path)
    responses = [CHECK, STOP, STOP, run("python", "flaky.py", cwd="sub"), STOP, CHECK, STOP]
    async with world(tmp_path, LIST, *responses) as started:
        session = await started.session(agent="coder")
        await started.turn(session, "go", goal={**GOAL, "rounds": 3})
        end = completed(started)
        assert (end["stopReason"], end["error"]["code"]) == ("error", "GoalNotReached")
        assert (
            "not reached (round 3 of 3): `python flaky.py` has not passed"
            in end["error"]["message"]
        )


async def test_what_passed_before_an_edit_does_not_count(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "项目" / "ok.py").write_text("print('fine')\n")
    edit = answer(
        tool_call("propose_edit", {"path": "ok.py", "edits": [{"old": "fine", "new": "good"}]})
    )
    check = run("python", "ok.py")
    responses = [check, edit, STOP, check, STOP]
    async with world(tmp_path, LIST, *responses) as started:
        session = await started.session(agent="coder", mode="auto")
        await started.turn(session, "go", goal={"command": ["python", "ok.py"]})
        assert completed(started)["stopReason"] == "end_turn"
        assert [note.split(":")[0] for note in notices(started)] == [
            "The goal is not reached in round 1 of 6",
            "The goal is reached in round 2",
        ]


async def test_a_goal_goes_on_after_a_restart(tmp_path: Path) -> None:
    project(tmp_path)
    async with world(tmp_path, LIST, CHECK, STOP, CHECK, answer(hold("for ever"))) as started:
        session = await started.session(agent="coder")
        turn_id = await started.start(session, "go", goal={**GOAL, "rounds": 2})
        assert turn_id
        await started.watch.until(lambda: len(results(started)) == 2, HANG_SECONDS)
        session_id = session.session_id
        await started.kill()
    (tmp_path / "项目" / "count").write_text("5")
    async with world(tmp_path, LIST, CHECK, STOP) as started:
        session = await started.watch.attach(session_id)
        await started.turn(session, "")
        assert completed(started)["stopReason"] == "end_turn"
        assert "reached in round 2" in notices(started)[-1]


async def test_a_deliverable_is_a_goal(tmp_path: Path) -> None:
    project(tmp_path)
    write = run("python", "write.py")
    (tmp_path / "项目" / "write.py").write_text("open('report.md', 'w').write('done')\n")
    async with world(tmp_path, LIST, STOP, write, STOP) as started:
        session = await started.session(agent="coder")
        await started.turn(session, "/goal file:report.md -- write it", mode="auto")
        assert completed(started)["stopReason"] == "end_turn"
        assert "report.md is not there, or empty" in notices(started)[0]
        assert len(notices(started)) == 2


@pytest.mark.parametrize("goal", [{}, {**GOAL, "rounds": 0}, {**GOAL, "seconds": 0}])
async def test_a_goal_without_a_check_or_a_limit_is_refused(tmp_path: Path, goal: Any) -> None:
    async with world(tmp_path, LIST) as started:
        session = await started.session()
        with pytest.raises(RpcError, match=r"\$\.goal"):
            await started.start(session, "go", goal=goal)


async def test_the_same_call_again_and_again_is_noted_then_stopped(tmp_path: Path) -> None:
    project(tmp_path)
    same = answer(tool_call("read_file", {"path": "flaky.py"}))
    async with world(tmp_path, LIST, *[same] * 20) as started:
        await started.turn(await started.session(agent="coder"), "go")
        texts = [said(result) for result in results(started)]
        noted = ["the same call with the same result" in one for one in texts]
        assert noted == [False, False, *[True] * 6]
        end = completed(started)
        assert (end["stopReason"], end["error"]["code"]) == ("error", "Repeating")
        assert "called read_file 8 times" in end["error"]["message"]


async def test_a_call_whose_result_changes_is_no_repeat(tmp_path: Path) -> None:
    project(tmp_path)
    async with world(tmp_path, LIST, *[CHECK] * 12, DONE) as started:
        await started.turn(await started.session(agent="coder"), "go")
        assert completed(started)["stopReason"] == "end_turn"
        assert not any("the same call" in said(result) for result in results(started))
