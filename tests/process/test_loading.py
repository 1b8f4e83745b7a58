"""What a process imports: no more than it is asked for, counted in the real process."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.headless_world import HEAD
from tests.support.model_script import answer, text, tool_call
from tests.support.program import BUILT, ROOT
from tests.support.sidecar import HANG_SECONDS, sidecar
from tests.support.traced_process import Trace

pytestmark = pytest.mark.skipif(BUILT is not None, reason="asks the Python of the source")

PACKAGE = "kode_sidecar"
LSP_LIBRARIES = {"pygls", "lsprotocol", "cattrs"}
STANDARD = (
    ("initialized", {}),
    ("$/setTrace", {"value": "off"}),
    ("workspace/didChangeConfiguration", {"settings": {}}),
    ("workspace/didChangeWatchedFiles", {"changes": []}),
    ("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}}),
    ("window/workDoneProgress/cancel", {"token": "t"}),
)
"""What clients of LSP send besides document sync, right after their start or later."""
# A job is a session, which imports what a session needs. Aim: 220.
MOST_OF_A_RUN = 332  # requests, models, rules of commands, findings, web, notebooks, tools found
SERVERS = ("kode_sidecar.servers.lsp", "kode_sidecar.servers.acp", "kode_sidecar.devtools")


async def test_a_kode_client_never_loads_pygls(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    script = [answer(tool_call("read_file", {"path": "a.py"})), answer(text("read"))]
    async with (
        Trace() as trace,
        sidecar(script, roots=[tmp_path], environment=trace.environment) as world,
    ):
        for method, params in STANDARD:
            world.client.notify(method, params)
        world.editor.open(tmp_path / "a.py")
        session = await world.session()
        turn = await world.turn(session, "read it")
        assert turn.stop_reason == "end_turn"
        assert not LSP_LIBRARIES & await trace.modules()
        command = {"command": "kode.doctor"}
        report = await world.client.request("workspace/executeCommand", command, HANG_SECONDS)
        assert report["protocolVersion"]
        assert await trace.modules() >= LSP_LIBRARIES


def imported(*words: str, cwd: Path, url: str = "") -> set[str]:
    """Run a command to its good end; what it imported of ours."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", PACKAGE, *words],
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KIMI_API_KEY": "sk-test-0123456789",
            **({"KIMI_BASE_URL": url} if url else {}),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = (line.rpartition("|") for line in done.stderr.splitlines() if "import time:" in line)
    return {name.strip() for _, _, name in rows if name.strip().split(".")[0] == PACKAGE}


def test_a_version_is_said_before_anything_else_is_imported(tmp_path: Path) -> None:
    ours = imported("--version", cwd=tmp_path)
    assert len(ours) <= 9, sorted(ours)


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "list"),
        ("completion", "bash"),
        ("complete", "--", "se"),
        ("complete", "--", "chat", "--mode", ""),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_commands_that_ask_no_model_import_no_agent(words: tuple[str, ...], tmp_path: Path) -> None:
    ours = imported(*words, cwd=tmp_path)
    layers = {"agent", "jobs", "devtools"}
    assert not [name for name in ours if name.split(".")[1:2] and name.split(".")[1] in layers]
    assert not [name for name in ours if name.startswith("kode_sidecar.servers.lsp")]
    assert len(ours) <= 45, sorted(ours)


def test_the_doctor_examines_without_the_world(tmp_path: Path) -> None:
    ours = imported("doctor", cwd=tmp_path)
    layers = ("servers.lsp", "servers.acp", "agent.sessions", "agent.turns", "core.kernel", "jobs")
    assert not [name for name in ours if name.startswith(tuple(f"{PACKAGE}.{x}" for x in layers))]


async def test_a_run_imports_no_server_and_no_demo(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(HEAD, encoding="utf-8")
    script = Recording((answer(text("done")),))
    words = ("run", "--config", "job.yaml", "--prompt", "go", "--json")
    async with ModelServer(script, paced=False) as model:
        ours = await asyncio.to_thread(imported, *words, cwd=tmp_path, url=model.base_url)
        assert model.chats
    assert f"{PACKAGE}.infrastructure.http.client" in ours
    assert not [name for name in ours if name.startswith(SERVERS)]
    assert len(ours) <= MOST_OF_A_RUN, sorted(ours)


def test_a_batch_imports_no_server_and_no_demo(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(HEAD, encoding="utf-8")
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "one", "prompt": "go"}) + "\n")
    words = ("batch", "--config", "job.yaml", "--tasks", "tasks.jsonl", "--out", "out")
    ours = imported(*words, "--prompt", "go", "--dry-run", cwd=tmp_path)
    assert not [name for name in ours if name.startswith(SERVERS)]
    assert len(ours) <= MOST_OF_A_RUN, sorted(ours)
