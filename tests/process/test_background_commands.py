"""Commands in the background: read, waited for, stopped, listed, and ended with the session. F9"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FULL
from tests.process.test_commands import DONE, choose, results, run, said, tools, world
from tests.support.calling_home import STAYS_WITH_CHILDREN, calling_home
from tests.support.model_script import answer, tool_call
from tests.support.processes import gone, runs
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World

LIST = "{run: list, allow: [python]}"
SERVES = (
    "import os, time\n"
    "print('starting', flush=True)\n"
    "while not os.path.exists('go'): time.sleep(0.01)\n"
    "print('line 1\\nready on 80', end='', flush=True)\n"
    "time.sleep(600)\n"
)


def behind(*argv: str, **more: Any) -> Any:
    return run(*argv, background=True, **more)


def ask(name: str, **arguments: Any) -> Any:
    return answer(tool_call(name, {"id": "c1", **arguments}))


def project(folder: Path, **programs: str) -> None:
    (folder / "项目").mkdir()
    for name, code in programs.items():
        (folder / "项目" / f"{name}.py").write_text(code)


async def listed(started: World, session: SessionFold) -> list[dict[str, Any]]:
    params = {"sessionId": session.session_id}
    found = await started.client.request("kode/session/get", params, HANG_SECONDS)
    return found["commands"]


def reported(started: World, index: int) -> str:
    """The user's side of the newest messages of a request."""
    return str(
        [one["content"] for one in started.asked(index)["messages"] if one["role"] == "user"]
    )


async def test_a_server_is_started_awaited_read_and_stopped(tmp_path: Path) -> None:
    project(tmp_path, serve=SERVES)
    responses = [
        behind("python", "serve.py"),
        ask("command_wait", until="never|starting", seconds=600),
        DONE,
        ask("command_wait", until="ready on", seconds=600),
        ask("command_output"),
        ask("command_stop"),
        ask("command_output"),
        answer(tool_call("command_output", {"id": "c7"})),
        DONE,
    ]
    async with world(tmp_path, LIST, *responses) as started:
        session = await started.session()
        await started.turn(session, "go")
        assert {"command_output", "command_wait", "command_stop"} <= tools(started.asked(0))
        began, waited = results(started)
        assert "[c1 (python serve.py) runs" in said(began)
        assert "starting" in said(began) + said(waited)
        (command,) = await listed(started, session)
        assert (command["commandId"], command["state"]) == ("c1", "running")
        (tmp_path / "项目" / "go").touch()
        await started.turn(session, "on")
        ready, read, stopped, after, unknown = results(started)[2:]
        assert said(ready).endswith("line 1\nready on 80")  # the line that it waited for, unended
        assert said(read).endswith("(no new output)")
        assert [one["status"] for one in (ready, read, stopped, after)] == ["ok"] * 4
        assert "was stopped" in said(stopped)
        assert "was stopped" in said(after)
        assert "no background command 'c7'. There are: c1 (python serve.py)" in said(unknown)
        (command,) = await listed(started, session)
        assert command["state"] == "stopped"
        assert not [one for one in started.events() if one.get("code") == "CommandEnded"]


async def test_the_model_and_the_user_are_notified_once_of_an_end(tmp_path: Path) -> None:
    waits = (
        "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('late')\nexit(3)"
    )
    project(tmp_path, waits=waits)
    responses = [behind("python", "waits.py"), DONE, DONE, DONE, ask("command_output"), DONE]
    async with world(tmp_path, LIST, *responses) as started:
        session = await started.session()
        await started.turn(session, "go")
        (tmp_path / "项目" / "go").touch()

        def ended() -> list[dict[str, Any]]:
            return [one for one in started.events() if one.get("code") == "CommandEnded"]

        await started.watch.until(lambda: bool(ended()), HANG_SECONDS)
        assert "c1 (python waits.py) exited with 3" in ended()[0]["message"]
        for _ in range(3):
            await started.turn(session, "on")
        assert "exited with 3" not in reported(started, 1)
        assert reported(started, 2).count("c1 (python waits.py) exited with 3") == 1
        assert reported(started, 3).count("c1 (python waits.py) exited with 3") == 1
        # Each request begins with all of the one before.
        before, after = (started.asked(at)["messages"] for at in (2, 3))
        assert after[: len(before)] == before
        output = results(started)[-1]
        assert (output["status"], said(output).endswith("late")) == ("error", True)
        (command,) = await listed(started, session)
        assert (command["state"], command["exitCode"]) == ("exited", 3)
        assert len(ended()) == 1


async def test_a_wait_for_what_will_never_come_ends_with_the_command(tmp_path: Path) -> None:
    project(tmp_path, breaks="print('no such port')\nexit(2)\n")
    waiting = ask("command_wait", until="ready", seconds=600)
    async with world(tmp_path, LIST, behind("python", "breaks.py"), waiting, DONE) as started:
        await started.turn(await started.session(), "go")
        began, waited = results(started)
        assert "exited with 2" in said(waited)
        assert "no such port" in said(began) + said(waited)
        assert waited["status"] == "error"


async def test_limits_of_number_time_and_output(tmp_path: Path) -> None:
    project(tmp_path, stay="import time; time.sleep(600)\n", flood="while True: print('x' * 999)\n")
    responses = [
        behind("python", "stay.py", timeout_seconds=1),
        ask("command_wait", seconds=600),
        behind("python", "flood.py"),
        answer(tool_call("command_wait", {"id": "c2", "seconds": 600})),
        *[behind("python", "stay.py") for _ in range(6)],
        DONE,
    ]
    settings = "{run: list, allow: [python], max_output_bytes: 100000}"
    async with world(tmp_path, settings, *responses) as started:
        await started.turn(await started.session(agent="coder"), "go")
        late, flood = results(started)[1], results(started)[3]
        assert "was ended after 1 s" in said(late)
        assert "was ended after 100,000 bytes" in said(flood)
        assert flood["artifact"]["bytes"] == 100_000
        *five, sixth = results(started)[4:]
        assert all(one["status"] == "ok" for one in five)
        assert "5 commands run in the background already: c3" in said(sixth)


async def test_a_secret_in_two_pieces_is_not_shown(tmp_path: Path) -> None:
    key = "AKIA" + "Z3MKQP7WJ5RT2XYB"
    code = (
        "import os, sys, time\n"
        f"sys.stdout.write('first\\nkey {key[:9]}'); sys.stdout.flush()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        f"print({key[9:]!r}, flush=True)\ntime.sleep(600)\n"
    )
    project(tmp_path, leaks=code)
    responses = [
        behind("python", "leaks.py"),
        ask("command_wait", until="first", seconds=600),
        DONE,
        ask("command_wait", until=key, seconds=600),
        DONE,
    ]
    async with world(tmp_path, LIST, *responses) as started:
        session = await started.session()
        await started.turn(session, "go")
        (tmp_path / "项目" / "go").touch()
        await started.turn(session, "on")
        assert "the output is not shown: it holds" in said(results(started)[-1])
        assert key[9:] not in "".join(map(said, results(started)))


async def test_none_in_plan_mode_and_none_without_a_yes(tmp_path: Path) -> None:
    writing = behind("python", "-c", "open('ran', 'w')")
    async with world(tmp_path, "{run: ask}", writing, DONE, writing, DONE) as started:
        started.editor.answer_permission = choose("reject")
        await started.turn(await started.session(mode="plan"), "go")
        await started.turn(await started.session(), "go")
        assert [one["status"] for one in results(started)] == ["error", "denied"]
        assert not list(tmp_path.rglob("ran"))


ENDS = ("kill", "delete", "end of input", "stop", "cancel and kill")


@pytest.mark.parametrize("number", range(1_000 if FULL else len(ENDS)))
async def test_no_child_outlives_what_it_belongs_to(tmp_path: Path, number: int) -> None:
    """1,000 kills and cancels with `--full`, one of each kind without."""
    end = ENDS[number % len(ENDS)]
    project(tmp_path, stay=STAYS_WITH_CHILDREN)
    async with calling_home() as (port, called):
        apart = str(sys.platform.startswith(("linux", "win")))
        waiting = ask("command_wait", seconds=600)
        responses = [behind("python", "stay.py", port, apart), waiting, ask("command_stop"), DONE]
        async with world(tmp_path, LIST, *responses) as started:
            session = await started.session()
            turn_id = await started.start(session, "go")
            ids = await asyncio.wait_for(called, HANG_SECONDS)
            assert all(map(runs, ids))
            await _end(started, session, turn_id, end)
            assert all(map(gone, ids))


def _begun(started: World) -> int:
    begun = (one["block"] for one in started.events() if one["type"] == "block.started")
    return sum(block["type"] == "tool_result" for block in begun)


async def _end(started: World, session: SessionFold, turn_id: str, end: str) -> None:
    params = {"sessionId": session.session_id}
    if end in ("stop", "cancel and kill"):
        await started.watch.until(lambda: _begun(started) == 2, HANG_SECONDS)  # it waits
        await started.client.request("kode/turn/cancel", params, HANG_SECONDS)
        await started.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        (command,) = await listed(started, session)
        assert command["state"] == "running"  # a cancelled turn does not end it
    match end:
        case "kill" | "cancel and kill":
            await started.kill()
        case "delete":
            await started.client.request("kode/session/delete", params, HANG_SECONDS)
        case "stop":
            await started.turn(session, "stop it")
        case _:
            started.client.process.close_stdin()
            await started.client.process.wait(HANG_SECONDS)
