"""Files of a project that bear the names of ours: never loaded, never run (W12 W14)."""

import os
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from kode_sidecar.terminal.client.sidecar_process import DEFAULT_COMMAND
from tests.support.model_script import answer, text, tool_call
from tests.support.program import BUILT, SERVE
from tests.support.sidecar import sidecar

MODULES = ("json", "asyncio", "ssl", "httpx", "msgspec", "yaml", "pygls", "kode_sidecar", "_socket")
PROGRAMS = ("rg", "git", "python3")
LIBRARIES = ("python3.dll", "python311.dll", "vcruntime140.dll", "libpython3.11.so.1.0")


def plant(folder: Path, traces: Path) -> None:
    """Each file leaves a trace of its name when it is loaded or run."""
    traces.mkdir()
    for name in MODULES:
        trace = f"open({str(traces / name)!r}, 'w').close()\n"
        (folder / f"{name}.py").write_text(trace, encoding="utf-8")
    for name in PROGRAMS:
        script = folder / name
        script.write_text(f'#!/bin/sh\ntouch "{traces / name}"\n', encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        batch = f'@type nul > "{traces / name}"\r\n'
        (folder / f"{name}.bat").write_text(batch, encoding="utf-8")
        (folder / f"{name}.exe").write_bytes(b"no program: whoever starts it fails")
    for name in LIBRARIES:
        (folder / name).write_bytes(b"no library: whoever loads it fails")


# `python -m` itself would take a `kode_sidecar.py` of the working directory for the program.
SCRIPT = str(Path(sysconfig.get_path("scripts"), "kode-sidecar"))
COMMANDS = {"built": SERVE} if BUILT else {"script": [SCRIPT, "serve"], "child": DEFAULT_COMMAND}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_nothing_planted_in_the_project_is_loaded_or_run(
    tmp_path: Path, command: Sequence[str]
) -> None:
    project, traces = tmp_path / "my 项目", tmp_path / "traces"
    project.mkdir()
    (project / "a.txt").write_text("needle\n", encoding="utf-8")
    plant(project, traces)
    path = os.pathsep.join([".", str(project), os.environ.get("PATH", "")])
    call = tool_call("search_code", {"query": "needle"})
    async with sidecar(
        [answer(call), answer(text("found"))],
        roots=[project],
        cwd=project,
        environment={"PATH": path, "RIPGREP_CONFIG_PATH": str(project / "rg.bat")},
        command=command,
    ) as world:
        await world.turn(await world.session(), "look")
        assert "a.txt:1: needle" in world.asked()["messages"][-1]["content"]
    assert list(traces.iterdir()) == []


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no option -m")
def test_only_the_checkout_itself_may_be_the_working_directory(tmp_path: Path) -> None:
    """`python -m` looks into it first."""
    (tmp_path / "argparse.py").write_text("raise SystemExit('planted')", encoding="utf-8")
    run = [sys.executable, "-m", "kode_sidecar", "--version"]
    done = subprocess.run(run, cwd=tmp_path, stdin=subprocess.PIPE, capture_output=True)
    assert done.stdout.startswith(b"kode-sidecar ")
