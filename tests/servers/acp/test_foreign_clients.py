"""Clients that are not ours: the npm SDK's, over every method, and npm's `acpx`."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.devtools.grading import verdicts
from kode_sidecar.devtools.grading.acp_rules import ACP_RULES
from kode_sidecar.devtools.grading.acp_talk import read_acp_talk
from tests.support.acp_schema import schema
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.node_tools import node, node_modules
from tests.support.program import PROGRAM, ROOT

PINS = ROOT / "tests" / "support" / "npm_acp"
SCHEMA = ROOT / "protocol" / "acp.schema.json"
HANG_SECONDS = 100.0

METHODS = {
    *("initialize", "authenticate", "logout"),
    *(f"session/{name}" for name in ("new", "load", "resume", "list", "close", "delete")),
    *(f"session/{name}" for name in ("prompt", "cancel", "set_mode", "set_config_option")),
}


def edit(old: str, new: str) -> object:
    return tool_call("propose_edit", {"path": "app.py", "edits": [{"old": old, "new": new}]})


async def run(command: list[str], tmp_path: Path, model: ModelServer, cwd: Path) -> tuple[str, str]:
    """What a program says, with the model and state folder of this test."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "KODE_HOME": str(tmp_path / "home"),
        "KIMI_BASE_URL": model.base_url,
        "KIMI_API_KEY": "sk-test-key-000",
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd=cwd,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), HANG_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode(), err.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("one\ntwo\nthree\n")
    return folder


@pytest.mark.program
async def test_the_sdk_client_drives_every_method(tmp_path: Path, project: Path) -> None:
    modules = node_modules(PINS)
    responses = (
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(edit("two", "zwei")),
        answer(edit("three", "drei")),
        answer(text("Done.")),
        answer(thinking("hm"), hold("never")),
    )
    async with ModelServer(Recording(responses), paced=False) as model:
        command = [
            *node(),
            str(ROOT / "tests" / "servers" / "acp" / "sdk_client.mjs"),
            str(modules / "@agentclientprotocol" / "sdk" / "dist" / "v1" / "stable" / "acp.js"),
            str(SCHEMA),
            str(modules / "ajv" / "dist" / "2020.js"),
            str(project),
            *PROGRAM,
            "acp",
        ]
        out, err = await run(command, tmp_path, model, project)
    assert out, err
    reported = json.loads(out)
    assert reported["wrong"] == []
    assert set(reported["done"]) >= METHODS
    assert "cancelled" in reported["done"]
    assert reported["asked"] == 2
    assert (project / "app.py").read_text() == "one\nzwei\nthree\n"
    assert {"tool_call", "tool_call_update", "usage_update"} <= set(reported["kinds"])


@pytest.mark.program
async def test_acpx_runs_a_session_and_a_command_in_its_terminal(
    tmp_path: Path, project: Path
) -> None:
    modules = node_modules(PINS)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("commands: {run: list, allow: [echo]}\n")
    responses = (
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(edit("two", "zwei")),
        answer(tool_call("run_command", {"argv": ["echo", "said-there"]})),
        answer(text("It is translated.")),
    )
    async with ModelServer(Recording(responses), paced=False) as model:
        talk = tmp_path / "talk.jsonl"
        recorder = [*PROGRAM, "grade", "--acp", "--record", str(talk), "--"]
        agent = " ".join([*recorder, *PROGRAM, "acp", "--trust"])
        command = [
            *node(),
            str(modules / "acpx" / "dist" / "cli.js"),
            *("--agent", agent, "--approve-all", "--cwd", str(project)),
            *("--format", "json", "exec", "Translate"),
        ]
        out, err = await run(command, tmp_path, model, project)
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in out.splitlines()]
    chunks = [one for one in updates if one.get("sessionUpdate") == "agent_message_chunk"]
    assert "".join(one["content"]["text"] for one in chunks) == "It is translated.", out + err
    assert (project / "app.py").read_text() == "one\nzwei\nthree\n", out + err
    reported = [m for m in model.chats[-1].body["messages"] if m["role"] == "tool"]
    assert "said-there" in str(reported[-1]["content"])
    found = verdicts(read_acp_talk(talk, schema()), ACP_RULES)
    assert {one.rule: one.faults for one in found if one.faults} == {}, "neither side is faulty"
    if sys.platform != "win32":  # there commands run in the sidecar
        assert '"type":"terminal"' in out
        assert "terminal/release" in out
