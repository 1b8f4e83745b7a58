"""`kode-sidecar acp` as a process: pure stdout, bad input, its end, and the other face after it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.__main__ import acp_options
from kode_sidecar.core.protocol.acp_handshake import initialize_result
from kode_sidecar.core.protocol.base_protocol import LineDecoder
from tests.support.acp_client import AcpClient
from tests.support.model_script import answer, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS, sidecar

RAW_SERVER = ROOT / "tests" / "support" / "mcp_server.py"


@dataclass
class Spawned:
    """The process and a client on its streams."""

    process: asyncio.subprocess.Process
    client: AcpClient


@asynccontextmanager
async def spawned(environment: Mapping[str, str]) -> AsyncGenerator[Spawned]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        "acp",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        limit=2**26,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def write(data: bytes) -> None:
        stdin.write(data)
        await stdin.drain()

    client = AcpClient(stdout, write)
    try:
        yield Spawned(process, client)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await client.close()


@pytest.mark.program
async def test_a_session_of_the_acp_face_opens_in_the_lsp_face(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("one\ntwo\n")
    edit = {"path": "app.py", "edits": [{"old": "two", "new": "zwei"}]}
    starts = tmp_path / "starts"
    add = {"action": "call", "server": "raw", "tool": "add", "arguments": {"a": 1, "b": 2}}
    responses = [
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(tool_call("propose_edit", edit)),
        answer(tool_call("mcp", add)),
        answer(text("Done.")),
        answer(text("Go on.")),
    ]
    home = {"KODE_HOME": str(tmp_path / "home"), "KODE_LOG_DIR": str(tmp_path / "logs")}
    server = {
        "name": "raw",
        "command": sys.executable,
        "args": [str(RAW_SERVER), "new", str(starts)],
        "env": [{"name": "GIVEN", "value": "yes"}],
    }
    async with sidecar(responses, roots=[project], environment=home) as world:
        base_url = world.model.base_url
        keys = {"KIMI_BASE_URL": base_url, "KIMI_API_KEY": "sk-test-key-000"}
        async with spawned({**home, **keys}) as acp:
            client = acp.client
            await client.initialize()
            session_id = await client.new(project, mcpServers=[server])
            await client.prompt(session_id, "Translate")
            assert (project / "app.py").read_text() == "one\nzwei\n"
            assert len(client.permissions()) == 2
            tools = [m for m in world.asked()["messages"] if m["role"] == "tool"]
            assert "3" in str(tools[-1]["content"]), tools[-1]
            assert acp.process.stdin is not None
            acp.process.stdin.close()
            assert await asyncio.wait_for(acp.process.wait(), HANG_SECONDS) == 0
        attached = await world.client.request(
            "kode/session/attach", {"sessionId": session_id}, HANG_SECONDS
        )
        roles = [message["role"] for message in attached["messages"]]
        assert roles.count("assistant") == 4
        (change_set,) = attached["changeSets"]
        (file,) = change_set["files"]
        assert [hunk["state"] for hunk in file["hunks"]] == ["applied"]
        session = world.watch.session(session_id, attached["seq"])
        assert (await world.turn(session, "Go on")).stop_reason == "end_turn"


@pytest.mark.program
async def test_bad_input_is_answered_and_the_process_lives_on(tmp_path: Path) -> None:
    async with spawned({"KODE_HOME": str(tmp_path), "KIMI_API_KEY": "sk-test"}) as acp:
        stdin = acp.process.stdin
        assert stdin is not None
        early: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {}}
        hello: dict[str, Any] = {"jsonrpc": "2.0", "id": 8, "method": "initialize", "params": {}}
        client = acp.client
        stdin.write(b"nonsense\n" + json.dumps(early).encode() + b"\n\n")
        stdin.write(json.dumps(hello).encode() + b"\n")
        await client.until(lambda: len(client.raw) == 3)
        codes = [json.loads(line)["error"]["code"] for line in client.raw]
        assert codes == [-32700, -32600, -32602]
        await client.initialize()
        stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"no/such"}\n[1]\n{"id":\n')
        stdin.write(b'{"jsonrpc":"2.0","method":"no/such/notification","params":{}}\n')
        await client.until(lambda: len(client.raw) == 7)
        codes = [json.loads(line)["error"]["code"] for line in client.raw[4:]]
        assert codes == [-32601, -32600, -32700]
        assert (await client.request("session/list", {}))["sessions"] == []


@pytest.mark.program
async def test_a_line_that_is_too_long_ends_no_session(tmp_path: Path) -> None:
    environment = {"KODE_HOME": str(tmp_path / "home"), "KIMI_API_KEY": "sk-test"}
    async with spawned(environment) as acp:
        client, stdin = acp.client, acp.process.stdin
        assert stdin is not None
        await client.initialize()
        session_id = await client.new(tmp_path)
        before = len(client.raw)
        for _ in range(2):
            stdin.write(b'{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{"x":"')
            for _ in range(70):
                stdin.write(b"x" * 1_000_000)
                await stdin.drain()
            stdin.write(b'"}}\n')
        await client.until(lambda: len(client.raw) >= before + 2)
        error = json.loads(client.raw[-1])["error"]
        assert error["code"] == -32700
        assert "a line has more than 67,108,864 bytes and was not read" in error["message"]
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "ask"})


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ([], (None, False)),
        (["--trust"], (None, True)),
        (["--env-file", "x", "--trust"], ("x", True)),
        (["--help"], None),
        (["--loud"], None),
        (["--env-file"], None),
    ],
)
def test_other_options_are_left_to_the_command_line(words: list[str], read: object) -> None:
    assert acp_options(words) == read


def test_lines_are_cut_wherever_the_input_is(rng: object) -> None:
    import random

    assert isinstance(rng, random.Random)
    lines = [bytes(rng.randrange(32, 127) for _ in range(rng.randrange(40))) for _ in range(200)]
    data = b"".join(line + rng.choice((b"\n", b"\r\n", b"\n\n")) for line in lines)
    decoder, found = LineDecoder(), list[bytes]()
    while data:
        size = rng.randrange(1, 30)
        found += decoder.feed(data[:size])
        data = data[size:]
    assert [one.strip(b"\r") for one in found] == [one for one in lines if one.strip()]


def test_a_version_of_the_future_gets_ours() -> None:
    """That of the draft, too: nothing of it is spoken."""
    for asked in (2, 99):
        assert initialize_result({"protocolVersion": asked}, "1")["protocolVersion"] == 1
