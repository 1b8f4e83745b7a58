"""`run_command` over real programs: nothing of them escapes, outlives or floods. B9 W3 W14 W16"""

import asyncio
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.agent.tools.command_text import MAX_SHOWN_CHARS
from kode_sidecar.agent.tools.run_command import (
    CommandPlace,
    RunCommandParams,
    command_subject,
    run_command_tool,
)
from kode_sidecar.core.domain.message import Blob
from kode_sidecar.core.domain.run_policy import command_rule, effective_policy
from kode_sidecar.core.kernel.contracts import ToolOutcome
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandLimits
from kode_sidecar.infrastructure.commands.programs import KEPT_NAMES, check_names
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.infrastructure.workspace.test_paths import HOSTILE
from tests.support.calling_home import STAYS_WITH_CHILDREN, calling_home
from tests.support.files import call, link, write
from tests.support.processes import gone, runs

PYTHON = Path(sys.executable)
HANG = 20.0


class Sandbox:
    """A sandbox with two zones, and what was kept."""

    def __init__(self, root: Path, **limits: Any) -> None:
        self.root = root
        self.workspace = root / "workspace"
        for zone in ("workspace", "deliverables"):
            (root / zone).mkdir()
        self.kept: dict[str, bytes] = {}
        self.limits = (
            CommandLimits(**limits) if "seconds" in limits else CommandLimits(HANG, **limits)
        )

    def _keep(self, call_id: str, output: bytes) -> Blob:
        self.kept[f"{call_id}.log"] = output
        return Blob(ref=f"{call_id}.log", bytes=len(output), sha256="")

    async def run(
        self, *argv: str, environ: Mapping[str, str] | None = None, **more: Any
    ) -> ToolOutcome:
        zones = [self.root / "workspace", self.root / "deliverables"]
        place = CommandPlace(
            Workspace(zones, "utf-16"),
            self.root,
            {**os.environ, "PATH": str(PYTHON.parent)} if environ is None else environ,
            self._keep,
            self.limits,
        )
        return await call(run_command_tool(place), argv=list(argv), **more)

    async def python(self, code: str, *arguments: str, **more: Any) -> ToolOutcome:
        return await self.run(PYTHON.name, "-c", code, *arguments, **more)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    (tmp_path / "sandbox").mkdir()
    return Sandbox(tmp_path / "sandbox")


async def code_of(sandbox: Sandbox, *argv: str, **more: Any) -> str:
    with pytest.raises(KodeError) as refused:
        await sandbox.run(*argv, **more)
    return refused.value.code


async def test_output_and_folder(sandbox: Sandbox) -> None:
    write(sandbox.root, {"workspace/src/中 文/a.txt": ""})
    code = "import os, sys; print('你好'); print(os.getcwd(), file=sys.stderr)"
    outcome = await sandbox.python(code, cwd="src/中 文")
    head, *lines = outcome.content.split("\n")
    assert head.startswith(f"[{PYTHON.name} exited with 0 · ")
    assert head.endswith(" s · in workspace/src/中 文]")
    assert sorted(lines) == sorted(["你好", str(sandbox.workspace / "src" / "中 文")])
    assert (outcome.ok, outcome.summary) == (True, f"{PYTHON.name} exited with 0")


async def test_a_failing_program_is_a_failed_result_with_its_output(sandbox: Sandbox) -> None:
    outcome = await sandbox.python("import sys; print('why'); sys.exit(3)")
    assert (outcome.ok, outcome.data["exitCode"]) == (False, 3)
    assert "exited with 3" in outcome.content
    assert outcome.content.endswith("\nwhy")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.details) == ("ToolFailed", {"reason": "exit_code"})


async def test_there_is_no_shell_and_no_input(sandbox: Sandbox) -> None:
    words = ("*", "$HOME", "a b", '"q"', "&& echo x", "> out.txt", "", "%PATH%")
    code = "import sys; print(sys.argv[1:]); print(repr(sys.stdin.read()))"
    outcome = await sandbox.python(code, *words)
    assert outcome.content.split("\n")[1:] == [str(list(words)), "''"]
    assert list(sandbox.workspace.iterdir()) == []


async def test_our_environment_does_not_leak(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
    for name in ("KIMI_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "ANYTHING", "LD_TRACE"):
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("PATH", os.pathsep.join([str(PYTHON.parent), ".", str(sandbox.workspace)]))
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    outcome = await sandbox.python(code, environ=os.environ)
    seen = msgspec.json.decode(outcome.content.split("\n")[1], type=dict[str, str])
    assert secret not in outcome.content
    ours = {"GIT_CEILING_DIRECTORIES", "GIT_TERMINAL_PROMPT", "NO_COLOR", "TERM", "PAGER"}
    ours |= {"PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE"}
    found = {name.upper() for name in seen if not name.startswith("GIT_CONFIG_")}
    # Wine gives every program some of its own.
    assert {name for name in found if not name.startswith("WINE")} <= KEPT_NAMES | ours
    assert seen["PATH"] == str(PYTHON.parent)


@pytest.mark.parametrize(
    "name", ["MY_TOKEN", "apikey", "DB_PASSWORD", "LD_PRELOAD", "GIT_SSH", "A=B", ""]
)
def test_names_that_never_reach_a_command(name: str) -> None:
    with pytest.raises(KodeError) as refused:
        check_names([name])
    assert refused.value.code == "ConfigInvalid"
    check_names(["JAVA_HOME", "GOPATH"])


@pytest.mark.parametrize("apart", [False, True])
async def test_a_cancelled_call_ends_the_program_with_all_its_descendants(
    sandbox: Sandbox, apart: bool
) -> None:
    async with calling_home() as (port, called):
        running = asyncio.create_task(sandbox.python(STAYS_WITH_CHILDREN, port, str(apart)))
        ids = await asyncio.wait_for(called, HANG)
        assert all(map(runs, ids))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, HANG)
    assert len(ids) == 4
    assert all(map(gone, ids))


@pytest.mark.parametrize("apart", [False, True])
async def test_what_a_program_leaves_behind_does_not_outlive_it(
    sandbox: Sandbox, apart: bool
) -> None:
    """Although it holds the pipe open that the output comes through."""
    async with calling_home() as (port, called):
        outcome = await asyncio.wait_for(
            sandbox.python(STAYS_WITH_CHILDREN, port, str(apart), "and end"), HANG
        )
        assert outcome.ok
        assert all(map(gone, called.result()))


RUNS_IT = """
import asyncio, os, sys
from pathlib import Path
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
asyncio.run(run_program(ProgramRun(Path(sys.executable), ["-c", *sys.argv[1:]], Path.cwd(),
    os.environ, CommandLimits())))
"""


@pytest.mark.parametrize("apart", [False, True])
async def test_nothing_outlives_a_sidecar_that_was_killed(apart: bool) -> None:
    async with calling_home() as (port, called):
        ours = await asyncio.create_subprocess_exec(
            PYTHON, "-c", RUNS_IT, STAYS_WITH_CHILDREN, port, str(apart)
        )
        ids = await asyncio.wait_for(called, HANG)
        assert all(map(runs, ids))
        ours.kill()
        await ours.wait()
        assert all(map(gone, ids))


async def test_a_hung_program_is_ended_in_time(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    sandbox = Sandbox(tmp_path / "box", seconds=1.0)
    async with calling_home() as (port, called):
        code = STAYS_WITH_CHILDREN
        outcome = await asyncio.wait_for(sandbox.python(code, port, "True"), HANG)
        assert outcome.error is not None
        assert outcome.error.details == {"reason": "timed_out"}
        assert "was ended after 1 s" in outcome.content
        assert not called.done() or all(map(gone, called.result()))


async def test_a_long_output_is_cut_in_the_middle_and_kept(sandbox: Sandbox) -> None:
    outcome = await sandbox.python("for n in range(20_000): print('line', n)")
    assert outcome.artifacts == ("use.log",)
    assert sandbox.kept["use.log"].split()[1::2] == [str(n).encode() for n in range(20_000)]
    assert "line 0\n" in outcome.content
    assert outcome.content.endswith("line 19999")
    assert "characters cut here; all " in outcome.content
    assert "kept for the user as use.log" in outcome.content
    assert len(outcome.content) < MAX_SHOWN_CHARS + 500


async def test_an_endless_output_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    sandbox = Sandbox(tmp_path / "box", output_bytes=1_000_000)
    code = "import os\nwhile True: os.write(1, b'x' * 60_000 + bytes([10]))"
    outcome = await asyncio.wait_for(sandbox.python(code), HANG)
    assert outcome.error is not None
    assert outcome.error.details == {"reason": "too_much_output"}
    assert len(sandbox.kept["use.log"]) == 1_000_000


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"a\0b\xff" * 10, "[binary output, SHA-256 "),
        (b"caf\xe9 \xff\n", None),
        ("价目".encode()[:-1], "价"),
        (b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07x\n", "red x"),
        (b"10%\r50%\r100%\r\ndone\r\n", "100%\ndone"),
        (b"", "(no output)"),
        (b"key: sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6\n", "[the output is not shown: it holds"),
    ],
)
async def test_any_bytes(sandbox: Sandbox, written: bytes, shown: str | None) -> None:
    outcome = await sandbox.python(f"import os; os.write(1, {written!r})")
    text = outcome.content.partition("\n")[2]
    assert outcome.ok
    assert text.isprintable() or "\n" in text
    if shown is not None:
        assert text.startswith(shown)
    if outcome.artifacts:
        assert sandbox.kept["use.log"] == written


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("no-such-program-anywhere", "ToolFailed"),
        ("./tool", "InvalidArguments"),
        ("/bin/ls", "InvalidArguments"),
        ("bin\\tool", "InvalidArguments"),
        ("c:tool", "InvalidArguments"),
        ("..", "InvalidArguments"),
        ("-c", "InvalidArguments"),
        ("", "InvalidArguments"),
        ("py\0thon", "InvalidArguments"),
    ],
)
async def test_programs_that_are_none(sandbox: Sandbox, program: str, code: str) -> None:
    assert await code_of(sandbox, program) == code


async def test_a_planted_program_is_never_run(sandbox: Sandbox) -> None:
    """Not from the working folder, by a path, by the search path, nor behind a link."""
    name = "planted.exe" if sys.platform == "win32" else "planted"
    write(sandbox.root, {f"workspace/{name}": "#!/bin/sh\necho planted\n"})
    (sandbox.workspace / name).chmod(stat.S_IRWXU)
    outside = sandbox.root.parent / "bin"
    outside.mkdir()
    link(outside / name, sandbox.workspace / name)
    paths = ("", ".", str(sandbox.workspace), str(sandbox.workspace / ".."), str(outside))
    environ = {"PATH": os.pathsep.join(paths)}
    for program in (name, f"./{name}", str(sandbox.workspace / name)):
        assert await code_of(sandbox, program, environ=environ) in (
            "ToolFailed",
            "InvalidArguments",
        )


@pytest.mark.skipif(sys.platform != "win32", reason="only there it would find them")
async def test_batch_files_need_a_shell(sandbox: Sandbox) -> None:
    outside = sandbox.root.parent / "bin"
    write(outside, {"tool.cmd": "@echo off\r\n"})
    assert await code_of(sandbox, "tool", environ={"PATH": str(outside)}) == "Denied"


async def test_no_folder_outside(sandbox: Sandbox) -> None:
    link(sandbox.workspace / "out", sandbox.root.parent)
    for cwd in (*HOSTILE, "out", str(sandbox.root), "archive/../.."):
        assert await code_of(sandbox, PYTHON.name, cwd=cwd) == "PathOutsideRoots", cwd
    assert await code_of(sandbox, PYTHON.name, cwd="nowhere") == "NotFound"


async def test_arguments_that_no_system_takes(sandbox: Sandbox) -> None:
    assert await code_of(sandbox, PYTHON.name, "a\0b") == "InvalidArguments"
    assert await code_of(sandbox, PYTHON.name, "x" * 40_000) == "InvalidArguments"


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["git", "diff", "--stat"], True),
        (["git", "diff"], True),
        (["GIT.exe", "diff"], False),
        (["git.exe", "diff"], True),
        (["git", "difftool"], False),
        (["git"], False),
        (["git/diff"], False),
        (["git", "push"], False),
        (["make"], True),
        (["make", "a/b"], True),
        (["make", "clean", "all"], False),
        (["Make.EXE", "CLEAN"], False),
        (["bash"], False),
    ],
)
def test_rules_know_commands_by_their_first_words(argv: list[str], allowed: bool) -> None:
    rules = [command_rule(["git", "diff"]), command_rule(["make"])]
    rules.append(command_rule(["make", "clean"], "deny"))
    policy = effective_policy(shell=True, delete=False, rules=rules)
    (subject,) = command_subject(RunCommandParams(argv=argv))
    assert policy.verdict("run_command", subject.name).allowed == allowed


@pytest.mark.parametrize("name", ["sh", "BASH", "cmd.exe", "PowerShell.EXE", "sudo", "env"])
def test_launchers_run_only_where_they_are_named(name: str) -> None:
    (subject,) = command_subject(RunCommandParams(argv=[name, "-c", "x"]))
    everything = effective_policy(shell=True, delete=False)
    assert not everything.verdict("run_command", subject.name).allowed
    named = effective_policy(shell=True, delete=False, rules=[command_rule([name])])
    assert named.verdict("run_command", subject.name).allowed
