"""Commands in sessions: asked for, by rules, streamed, ended whole. F9 W12 W14"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.calling_home import STAYS_WITH_CHILDREN, calling_home
from tests.support.foreign import require
from tests.support.model_script import answer, text, tool_call
from tests.support.processes import gone, runs
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.tool_names import reachable_tools

PYTHON = Path(sys.executable)
DONE = answer(text("ok"))


def run(*argv: str, **more: Any) -> Any:
    return answer(tool_call("run_command", {"argv": list(argv), **more}))


@asynccontextmanager
async def world(folder: Path, settings: str, *responses: Any, **more: Any) -> AsyncGenerator[World]:
    """A sidecar with these `commands` settings, `python` on its search path, and a project."""
    project = folder / "项目"
    (project / "sub").mkdir(parents=True, exist_ok=True)
    (project / "a.py").write_text("print('from a.py')\n")
    config = folder / "config.yaml"
    config.write_text(f"commands: {settings}\n")
    environment = {
        "KODE_CONFIG": str(config),
        "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}",
    }
    async with sidecar(responses, roots=[project], environment=environment, **more) as started:
        yield started


def tools(body: dict[str, Any]) -> set[str]:
    return {*reachable_tools(body)}


def results(started: World) -> list[dict[str, Any]]:
    blocks = [e["block"] for e in started.events() if e["type"] == "block.completed"]
    return [block for block in blocks if block["type"] == "tool_result"]


def said(result: dict[str, Any]) -> str:
    return "".join(block["text"] for block in result["content"])


def choose(kind: str) -> Any:
    async def permission(params: dict[str, Any]) -> str | None:
        return next((o["optionId"] for o in params["options"] if o["kind"] == kind), None)

    return permission


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ("{run: off, allow: [python]}", {}),
        ("{run: off, allow: [python]}", {"handshake": {"trusted": False}}),
        ("{run: ask, environment: [MY_TOKEN]}", {}),
    ],
)
async def test_nothing_runs_where_it_is_off_or_its_settings_are_wrong(
    tmp_path: Path, settings: str, more: Any
) -> None:
    async with world(tmp_path, settings, run("python", "a.py"), DONE, **more) as started:
        await started.turn(await started.session(), "go")
        assert "run_command" not in tools(started.asked(0))
        assert "run_command" not in json.dumps(started.asked(0)["messages"])
        (result,) = results(started)
        assert "There is no tool named 'run_command'" in said(result)
        assert started.editor.asked == []


async def test_an_editor_cannot_switch_it_on(tmp_path: Path) -> None:
    handshake = {"settings": {"commands": {"run": "ask"}}}
    with pytest.raises(RpcError, match="may not set commands"):
        async with world(tmp_path, "{}", handshake=handshake):
            pass


async def test_not_in_plan_mode(tmp_path: Path) -> None:
    writing = run("python", "-c", "open('ran', 'w')")
    async with world(tmp_path, "{run: ask}", writing, DONE) as started:
        started.editor.answer_permission = choose("allow_session")
        await started.turn(await started.session(mode="plan"), "go")
        (refused,) = results(started)
        assert "run_command was not run. In plan mode you only read" in said(refused)
        assert not list(tmp_path.rglob("ran"))


async def test_the_user_is_asked_and_told_why(tmp_path: Path) -> None:
    responses = [
        run("python", "a.py"),
        run("python", "a.py"),
        run("python", "a.py", cwd="sub"),
        run("python", "-c", "print('code')"),
        run("python", "-c", "print('code')"),
        DONE,
    ]
    async with world(tmp_path, "{run: ask}", *responses) as started:
        started.editor.answer_permission = choose("allow_session")
        await started.turn(await started.session(), "go")
        assert "run_command" in tools(started.asked(0))
        assert "# Commands" in started.asked(0)["messages"][0]["content"]
        once, again, elsewhere, risky, _ = results(started)
        assert "from a.py" in said(once)
        assert once["status"] == again["status"] == "ok"
        assert "exited with 2" in said(elsewhere)  # there is no such file
        questions = started.editor.asked
        assert [question["subject"] for question in questions] == [
            "python a.py",
            "python a.py  (in sub)",
            "python -c 'print('\\''code'\\'')'",
            "python -c 'print('\\''code'\\'')'",
        ]
        assert "not among the commands" in questions[0]["reason"]
        assert "runs code that the command brings along" in questions[2]["reason"]
        # What is always asked for is allowed once or not at all.
        assert [o["kind"] for o in questions[2]["options"]] == ["allow_once", "reject"]
        assert risky["status"] == "denied"
        assert "the user does not allow it" in said(risky)


async def test_rules_of_the_user(tmp_path: Path) -> None:
    settings = "{run: list, allow: [python a.py, [python, -B]], deny: [python -B secret.py]}"
    responses = [
        run("python", "a.py"),
        run("python", "b.py"),
        run("python", "-B", "-c", "print('code')"),
        run("python", "-B", "secret.py"),
        run("python", "-B", "a.py", "../x"),
        run("env", "python", "a.py"),
        DONE,
    ]
    async with world(tmp_path, settings, *responses) as started:
        started.editor.answer_permission = choose("reject")
        await started.turn(await started.session(agent="coder"), "go")
        statuses = [(result["status"], said(result)) for result in results(started)]
        assert [status for status, _ in statuses] == ["ok", *["denied"] * 5]
        assert "allow only what they list" in statuses[1][1]
        assert "deny `python -B secret.py`" in statuses[3][1]
        assert "allow only what they list" in statuses[5][1]
        reasons = [question["reason"] for question in started.editor.asked]
        assert len(reasons) == 2
        assert "runs code" in reasons[0]
        assert "../x leads out of the open folders" in reasons[1]


async def test_output_streams_and_the_whole_of_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "项目").mkdir()
    (tmp_path / "项目" / "b.py").write_text(
        "import os, time\n"
        "print('\\x1b[1m第一 line\\x1b[0m', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "for n in range(20_000): print('line', n)\n"
    )
    settings = "{run: list, allow: [python]}"
    async with world(tmp_path, settings, run("python", "b.py"), DONE) as started:
        session = await started.session()
        turn_id = await started.start(session, "go")

        def reported() -> str:
            grown = (one.text for one in session.blocks.values() if one.type == "tool_result")
            return "".join(grown)

        await started.watch.until(reported, HANG_SECONDS)
        assert reported() == "第一 line\n"
        assert not any(event["type"] == "tool.progress" for event in started.events())
        (tmp_path / "项目" / "go").touch()
        await started.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        (result,) = results(started)
        assert "characters cut here; all " in said(result)
        whole, offset = "", 0
        while offset < result["artifact"]["bytes"]:
            page = await started.client.request(
                "kode/blob/read", {"ref": result["artifact"]["ref"], "offset": offset}, HANG_SECONDS
            )
            whole += page["text"]
            offset = page.get("nextOffset") or result["artifact"]["bytes"]
        assert whole.splitlines()[1:] == [f"line {n}" for n in range(20_000)]


async def test_limits(tmp_path: Path) -> None:
    (tmp_path / "项目").mkdir()
    (tmp_path / "项目" / "flood.py").write_text("while True: print('x' * 1000)\n")
    (tmp_path / "项目" / "sleep.py").write_text("import time; time.sleep(600)\n")
    settings = "{run: list, allow: [python], timeout_seconds: 1, max_output_bytes: 100000}"
    responses = [run("python", "sleep.py"), run("python", "flood.py"), DONE]
    async with world(tmp_path, settings, *responses) as started:
        await started.turn(await started.session(), "go")
        late, flood = results(started)
        assert "was ended after 1 s" in said(late)
        assert "was ended after 100,000 bytes" in said(flood)
        assert flood["artifact"]["bytes"] == 100_000


@pytest.mark.parametrize("end", ["cancel", "close", "kill"])
async def test_whatever_ends_the_turn_ends_all_that_it_started(tmp_path: Path, end: str) -> None:
    (tmp_path / "项目").mkdir()
    (tmp_path / "项目" / "stay.py").write_text(STAYS_WITH_CHILDREN)
    async with calling_home() as (port, called):
        apart = str(sys.platform.startswith(("linux", "win")))
        call = run("python", "stay.py", port, apart)
        async with world(tmp_path, "{run: list, allow: [python]}", call, DONE) as started:
            session = await started.session()
            turn_id = await started.start(session, "go")
            ids = await asyncio.wait_for(called, HANG_SECONDS)
            assert all(map(runs, ids))
            if end == "cancel":
                await started.client.request(
                    "kode/turn/cancel", {"sessionId": session.session_id}, HANG_SECONDS
                )
                await started.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
                (result,) = results(started)
                assert result["status"] == "cancelled"
            elif end == "kill":
                await started.kill()
            else:
                started.client.process.close_stdin()
                await started.client.process.wait(HANG_SECONDS)
            assert all(map(gone, ids))


async def test_no_folder_and_no_program_of_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "项目").mkdir()
    planted = tmp_path / "项目" / "planted"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    responses = [
        run("python", "a.py", cwd=".."),
        run("planted"),
        run("./planted"),
        run(str(planted)),
        DONE,
    ]
    settings = "{run: list, allow: [python, planted]}"
    async with world(tmp_path, settings, *responses) as started:
        await started.turn(await started.session(), "go")
        states = [result["status"] for result in results(started)]
        assert states == ["denied", "error", "error", "error"]
        assert not any("planted\n" in said(result) for result in results(started))


async def test_a_program_by_the_users_own_word(tmp_path: Path) -> None:
    """The project's own Python, say, which is found by no search path."""
    (tmp_path / "项目").mkdir()
    tool = tmp_path / "项目" / "tool.sh"
    tool.write_text("#!/bin/sh\necho own\n")
    tool.chmod(0o755)
    settings = "{run: list, allow: [mytool], programs: {mytool: tool.sh}}"
    if sys.platform == "win32":
        pytest.skip("a script is no program there")
    async with world(tmp_path, settings, run("mytool"), DONE) as started:
        await started.turn(await started.session(), "go")
        (result,) = results(started)
        assert "own" in said(result)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is of Linux")
async def test_in_a_sandbox_there_is_no_network_and_nothing_but_the_project(tmp_path: Path) -> None:
    require("bwrap")
    home = tmp_path / "home"
    home.mkdir()
    (home / "private.txt").write_text("private\n")
    code = (
        "import os, socket, sys\n"
        "print('home', os.path.exists(sys.argv[1]), 'here', os.path.exists('a.py'))\n"
        "try: socket.create_connection(('127.0.0.1', int(sys.argv[2])), 3)\n"
        "except OSError as error: print('no network')\n"
        "open('made.txt', 'w').write('x')\n"
        "try: open('/usr/made.txt', 'w')\n"
        "except OSError as error: print('read-only')\n"
    )
    (tmp_path / "项目").mkdir()
    (tmp_path / "项目" / "c.py").write_text(code)
    async with calling_home() as (port, _):
        call = run("python3", "c.py", str(home / "private.txt"), port)
        settings = "{run: ask, sandbox: true, programs: {python3: /usr/bin/python3}}"
        async with world(tmp_path, settings, call, DONE) as started:
            started.editor.answer_permission = choose("allow_once")
            await started.turn(await started.session(), "go")
            (result,) = results(started)
            assert "home False here True" in said(result), said(result)
            assert "no network" in said(result)
            assert "read-only" in said(result)
            assert (tmp_path / "项目" / "made.txt").exists()
