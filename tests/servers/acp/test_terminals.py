"""Allowed commands run in the client's terminals, by the rules of all commands."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp_client import Json, prompt_params
from tests.support.acp_terminals import Terminals
from tests.support.acp_world import AcpWorld, acp_world
from tests.support.model_script import answer, text, tool_call

pytestmark = pytest.mark.skipif(os.name == "nt", reason="on Windows commands run here")

PYTHON = Path(sys.executable)
DONE = answer(text("Done."))
TERMINAL: Json = {"terminal": True}
ONCE = ["create", "wait_for_exit", "output", "release"]
FILES = {
    "a.py": (
        "import os\n"
        "print('from a.py in', os.getcwd())\n"
        "print('the key:', repr(os.environ.get('KIMI_API_KEY', '')))\n"
    ),
    "wait.py": "import time\ntime.sleep(600)\n",
    "fail.py": "print('so long')\nraise SystemExit(3)\n",
    "much.py": "print('first\\n' + 'x' * 3000 + '\\nlast')\n",
}


def run(*argv: str, **more: Any) -> Any:
    return answer(tool_call("run_command", {"argv": list(argv), **more}))


@asynccontextmanager
async def world(
    folder: Path,
    patch: pytest.MonkeyPatch,
    *responses: Any,
    settings: str = "run: ask",
    **more: Any,
) -> AsyncGenerator[AcpWorld]:
    """A trusted project with `python` on the search path, and these `commands` settings."""
    config = folder / "config.yaml"
    config.write_text(f"commands: {{{settings}}}\n")
    patch.setenv("KODE_CONFIG", str(config))
    patch.setenv("PATH", f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}")
    more = {"capabilities": TERMINAL, "trusted": True, "files": FILES, **more}
    async with acp_world(folder, patch, [*responses, DONE], **more) as started:
        yield started


def result(started: AcpWorld) -> str:
    """What the model was told of its newest call."""
    return str([m for m in started.asked()["messages"] if m["role"] == "tool"][-1]["content"])


async def test_an_allowed_command_runs_in_a_terminal_that_its_card_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, monkeypatch, run("python", "a.py")) as started:
        client = started.client

        def allow(_: Json) -> str:
            assert client.terminals.verbs == []
            return "allow_once"

        client.answer_permission = allow
        await client.prompt(await client.new(started.project), "Run it")
        assert client.terminals.verbs == ONCE
        (created,) = client.terminals.created
        assert created["command"] == str(PYTHON.parent / "python")
        assert created["cwd"] == str(started.project.resolve())
        shown = [u["content"] for u in client.of_kind("tool_call_update") if u.get("content")]
        assert shown[0] == shown[-1] == [{"type": "terminal", "terminalId": "t1"}]
        assert client.of_kind("tool_call_update")[-1]["status"] == "completed"
        assert f"from a.py in {started.project.resolve()}" in result(started)
        assert "exited with 0" in result(started)
        # The client has the key, and the command has not.
        assert os.environ["KIMI_API_KEY"] != ""
        assert "the key: ''" in result(started)
        assert client.terminals.open == {}


async def test_what_the_user_does_not_allow_reaches_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, monkeypatch, run("python", "a.py")) as started:
        started.client.answer_permission = lambda _: "reject_once"
        await started.client.prompt(await started.client.new(started.project), "Run it")
        assert started.client.terminals.verbs == []
        assert "did not run" in result(started)


@pytest.mark.parametrize("word", ["a;touch planted", "$(touch planted)", "`touch planted`", "=a b"])
async def test_what_a_shell_would_read_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    files = {"say.py": "import sys\nprint('told', sys.argv[1:])\n"}
    async with world(tmp_path, monkeypatch, run("python", "say.py", word), files=files) as started:
        await started.client.prompt(await started.client.new(started.project), "Run it")
        assert started.client.terminals.verbs == []
        assert repr([word]) in result(started)
        assert not (started.project / "planted").exists()


@pytest.mark.parametrize("why", ["not announced", "refused", "sandbox"])
async def test_where_there_is_no_terminal_it_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    capabilities = {} if why == "not announced" else TERMINAL
    settings = "run: ask, sandbox: true" if why == "sandbox" else "run: ask"
    async with world(
        tmp_path,
        monkeypatch,
        run("python", "a.py"),
        capabilities=capabilities,
        settings=settings,
    ) as started:
        client = started.client
        client.terminals = Terminals(frozenset({"create"}) if why == "refused" else frozenset())
        await client.prompt(await client.new(started.project), "Run it")
        assert client.terminals.verbs == (["create"] if why == "refused" else [])
        if why != "sandbox":  # a jail may be missing on this system
            assert "from a.py in" in result(started)


async def test_how_it_ended_and_what_was_cut_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = (run("python", "fail.py"), run("python", "much.py"))
    settings = "run: list, allow: [python], max_output_bytes: 1000"
    async with world(tmp_path, monkeypatch, *calls, settings=settings) as started:
        await started.client.prompt(await started.client.new(started.project), "Run both")
        failed, cut = [m for m in started.asked()["messages"] if m["role"] == "tool"]
        assert "exited with 3" in str(failed["content"])
        assert "so long" in str(failed["content"])
        assert "the beginning was cut off" in str(cut["content"])
        assert "last" in str(cut["content"])
        assert "first" not in str(cut["content"])


@pytest.mark.parametrize("refused", [frozenset[str](), frozenset({"kill", "output"})])
async def test_one_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: frozenset[str]
) -> None:
    """Also in a client that fails to kill it: giving the terminal back ends it, too."""
    call = run("python", "wait.py", timeout_seconds=1)
    async with world(tmp_path, monkeypatch, call) as started:
        client = started.client
        client.terminals = terminals = Terminals(refused)
        await client.prompt(await client.new(started.project), "Run it")
        assert terminals.verbs == ["create", "wait_for_exit", "kill", "output", "release"]
        assert ("was ended after 1 s" in result(started)) is not bool(refused)
        assert terminals.open == {}
        assert await terminals.processes[0].wait() == -signal.SIGKILL


async def test_a_cancel_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path, monkeypatch, run("python", "wait.py")) as started:
        client = started.client
        session_id = await client.new(started.project)
        number = await client.send("session/prompt", prompt_params(session_id, "Run it"))
        await client.terminals.waited.wait()
        await client.notify("session/cancel", {"sessionId": session_id})
        assert (await client.wait_for(number))["stopReason"] == "cancelled"
        await client.until(lambda: client.terminals.verbs[-1:] == ["release"])
        assert client.terminals.verbs == ["create", "wait_for_exit", "kill", "release"]
        assert await client.terminals.processes[0].wait() == -signal.SIGKILL


@pytest.mark.parametrize("how", ["it is slow", "cancel"])
async def test_a_command_that_may_have_started_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A creation that is answered too late is ended then, whoever waited for it."""
    files = {"count.py": "import time\nopen('runs', 'a').write('x')\ntime.sleep(600)\n"}
    async with world(tmp_path, monkeypatch, run("python", "count.py"), files=files) as started:
        client = started.client
        client.terminals = terminals = Terminals(slow=asyncio.Event())
        assert terminals.slow is not None
        session_id = await client.new(started.project)
        number = await client.send("session/prompt", prompt_params(session_id, "Run it"))
        runs = started.project / "runs"
        await client.until(lambda: terminals.verbs == ["create"])
        if how == "cancel":
            await client.notify("session/cancel", {"sessionId": session_id})
        await client.wait_for(number)
        if how == "it is slow":
            assert "so it was not started here" in result(started)
            assert runs.read_text(encoding="utf-8") == "x"
        terminals.slow.set()
        await client.until(lambda: terminals.verbs[-1:] == ["release"])
        assert terminals.verbs == ["create", "kill", "release"]
        assert await terminals.processes[0].wait() == -signal.SIGKILL
