"""A stranger's recording is data: whoever plays, serves or grades it starts and asks nothing (W17).

What is recorded here really ran; the sentinels that it left are removed before it is played. A
player that does anything by itself leaves them again, or is heard at the listeners.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.protocol.base_protocol import encode_frame
from kode_sidecar.infrastructure.mcp.contracts import TOKENS, ServerConfig
from kode_sidecar.infrastructure.mcp.oauth import Token, TokenFile
from tests.support.long_job import with_python
from tests.support.mcp_http_server import LETS_IN, BadServer, bad_server
from tests.support.model_script import answer, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS, sidecar

SERVER = ROOT / "tests" / "support" / "mcp_server.py"
MEMORY_KEY = "the-key-of-the-memories-2342"
TOKEN = "the-recorders-own-token-0815"
PLAYERS = "the-players-own-token-4711"
SCRIPT = """\
import os, pathlib, sys, time
pathlib.Path({touched!r}).write_text("touched")
print("it ran with", os.environ.get("TOKEN"))
sys.stdout.flush()
time.sleep(0.5)  # long enough for its output to be shown while it runs
raise SystemExit(3)
"""
Json = dict[str, Any]
Finished = subprocess.CompletedProcess[str]


@dataclass
class Stranger:
    """A recording, and what shows that something of it happened again."""

    tape: Path
    touched: Path
    starts: Path
    http: BadServer

    def forget(self) -> None:
        """Remove what the recorded session left."""
        self.touched.unlink()
        self.starts.unlink()
        self.http.asked.clear()

    def kode(self, *arguments: str | Path, stdin: bytes = b"") -> Finished:
        """Run a command of the program as a player whose variables are worth stealing."""
        found = subprocess.run(
            [*PROGRAM, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": PLAYERS, "PATH": with_python()},
            cwd=self.tape.parent,
            input=stdin.decode(),
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            check=False,
        )
        assert PLAYERS not in found.stdout + found.stderr
        self.assert_nothing_happened()
        return found

    def assert_nothing_happened(self) -> None:
        assert not self.touched.exists()
        assert not self.starts.exists()
        assert self.http.asked == []

    def changed(self, change: Callable[[Json], Json | None]) -> Path:
        """Another recording: `change` gets each line and returns it, perhaps changed, or None."""
        lines = [json.loads(line) for line in self.tape.read_text("utf-8").splitlines()]
        kept = [line for line in map(change, lines) if line is not None]
        path = self.tape.with_name("changed.jsonl")
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in kept)
        path.write_text(text, encoding="utf-8", newline="\n")
        return path


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[Stranger]:
    with bad_server("locked") as http:
        yield await recorded(tmp_path, http)


async def recorded(folder: Path, http: BadServer) -> Stranger:
    """Record a session with a command, MCP servers over stdio and HTTP, a log-in and memories."""
    project, tape = folder / "project", folder / "tape.jsonl"
    project.mkdir()
    found = Stranger(tape, folder / "touched", folder / "starts", http)
    (project / "go.py").write_text(SCRIPT.format(touched=str(found.touched)), encoding="utf-8")
    raw = {"command": [sys.executable, str(SERVER), "plain", str(found.starts)], "env": ["TOKEN"]}
    web = {"url": http.url, "headers": {"x-key": "${TOKEN}"}}
    trusted = {"trusted_tools": ["add", "go"]}
    config = folder / "config.yaml"
    servers = {"raw": {**raw, **trusted}, "web": {**web, **trusted}}
    commands = {"run": "list", "allow": ["python"], "environment": []}
    memory = {"memory_mode": "external", "memory_url": http.url, "memory_key": MEMORY_KEY}
    reported = {"mcp": servers, "commands": commands, **memory}
    config.write_text(json.dumps(reported), encoding="utf-8")
    (folder / "home" / "mcp").mkdir(parents=True)
    locked = ServerConfig("web", url=http.url, headers={"x-key": TOKEN})
    token = Token(access_token=LETS_IN)
    TokenFile(folder / "home" / "mcp" / TOKENS).put(locked.fingerprint, token)
    environment = {
        "KODE_CONFIG": str(config),
        "KODE_HOME": str(folder / "home"),
        "TOKEN": TOKEN,
        "PATH": with_python(),
    }
    add = {"server": "raw", "tool": "add", "arguments": {"a": 2, "b": 40}}
    responses = (
        answer(tool_call("run_command", {"argv": ["python", "go.py"]})),
        answer(tool_call("mcp", {"action": "call", **add})),
        answer(tool_call("mcp", {"action": "call", "server": "web", "tool": "go"})),
        answer(tool_call("search_code", {"query": "pathlib"})),
        answer(text("All done.")),
    )
    async with sidecar(
        responses,
        command=[*PROGRAM, "serve", "--record", str(tape)],
        roots=[project],
        environment=environment,
        handshake={"trusted": True},
    ) as world:
        session = await world.session(agent="coder", mode="auto", model="kimi-k2.6")
        await world.turn(session, "go")
        reported = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "it ran with None" in reported[0], reported
        assert reported[1].endswith("42"), reported
        assert reported[2].endswith("well"), reported
        assert "go.py" in reported[3], reported
        grown = [frame.body for frame in world.client.frames if b'"kode/delta"' in frame.body]
        assert any(b"it ran with" in body for body in grown)  # while it ran
    assert found.touched.exists()
    assert any(headers.get("x-key") == TOKEN for _, headers in http.asked)
    assert any(headers.get("authorization") == f"Bearer {MEMORY_KEY}" for _, headers in http.asked)
    found.forget()
    return found


async def test_it_plays_as_recorded_and_nothing_happens(stranger: Stranger) -> None:  # W17
    written = stranger.tape.read_text("utf-8")
    for secret in (TOKEN, MEMORY_KEY, LETS_IN):
        assert secret not in written
    played = stranger.kode("replay", stranger.tape)
    assert (played.returncode, played.stderr) == (0, ""), played.stdout
    served = "serve", "--tape", stranger.tape
    stranger.kode(*served, stdin=b"".join(map(encode_frame, frames_in(written))))


def frames_in(written: str) -> list[bytes]:
    lines = map(json.loads, written.splitlines())
    return [json.dumps(line["frame"]).encode() for line in lines if line["lane"] == "in"]


@pytest.mark.parametrize(
    ("lane", "missing"),
    [
        ("program.found", "does not say which program python is"),
        ("program", "in which python[^ ]* did not run"),
        ("model.", "holds no answer"),
    ],
)
async def test_what_is_missing_is_a_difference_and_no_attempt(
    stranger: Stranger, lane: str, missing: str
) -> None:
    """So are recordings from before these lanes, of which a stranger can make one at will."""

    def without(line: Json) -> Json | None:
        of_model = line.get("agent", "").startswith(("main", "models"))
        is_missing = line["lane"].startswith("model.") if lane == "model." else line["lane"] == lane
        return None if is_missing and not of_model else line

    played = stranger.kode("replay", stranger.changed(without))
    assert played.returncode == 1
    assert "The first difference" in played.stdout
    assert re.search(missing, played.stdout), played.stdout


async def test_a_recording_that_asks_for_more_gets_nothing(stranger: Stranger) -> None:
    """Its model asks for commands, servers and a run of which nothing was recorded."""

    def asking(line: Json) -> Json | None:
        if line["lane"] == "model.bytes" and line["agent"].startswith("main"):
            line["text"] = line["text"].replace("search_code", "run_command")
            line["text"] = (
                line["text"]
                .replace("query", "argv")
                .replace('\\"pathlib\\"', '[\\"python\\", \\"go.py\\"]')
            )
        return line

    played = stranger.kode("replay", stranger.changed(asking))
    assert played.returncode == 1
    run = {"jsonrpc": "2.0", "id": 77, "method": "kode/run/start", "params": {"config": "x"}}

    def running(line: Json) -> Json | None:
        if line["lane"] == "in" and line["frame"].get("method") == "kode/session/new":
            line["frame"] = run
        return line

    played = stranger.kode("replay", stranger.changed(running), "--patience", "5")
    assert played.returncode == 1


@pytest.mark.parametrize("path", ["config.yaml", ".env", "mcp/tokens.json", "agents/x.md", "../x"])
async def test_settings_and_hooks_are_no_files_of_a_recording(
    stranger: Stranger, path: str
) -> None:
    def with_file(line: Json) -> Json | None:
        is_first = line["lane"] == "file" and line["path"] == "go.py"
        return {"lane": "kept", "path": path, "text": "x: 1\n"} if is_first else line

    played = stranger.kode("replay", stranger.changed(with_file))
    assert played.returncode == 2
    assert path in played.stderr


async def test_files_that_cannot_be_together_end_the_replay(stranger: Stranger) -> None:
    lines = stranger.tape.read_text("utf-8").splitlines()
    changed = stranger.tape.with_name("inconsistent.jsonl")
    below = json.dumps({"lane": "file", "root": 0, "path": "go.py/x", "text": "x"})
    place = next(at for at, line in enumerate(lines) if '"lane":"file"' in line) + 1
    changed.write_text("\n".join([*lines[:place], below, *lines[place:], ""]), "utf-8")
    played = stranger.kode("replay", changed)
    assert played.returncode == 2
    assert "go.py/x cannot be laid out" in played.stderr
    assert "Traceback" not in played.stderr


async def test_folders_that_it_does_not_hold_are_not_opened(
    stranger: Stranger, tmp_path: Path
) -> None:
    """The player's own are named in it, and asked for by its model."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "diary.txt").write_text("pathlib of the player", encoding="utf-8")

    def elsewhere(line: Json) -> Json | None:
        if line["lane"] == "head":
            line["roots"] = [f"{tmp_path}/x/.."]
        if line["lane"] == "in" and line["frame"].get("method") == "initialize":
            line["frame"]["params"] |= {"rootUri": own.as_uri(), "rootPath": str(own)}
            line["frame"]["params"]["workspaceFolders"] = [{"uri": own.as_uri(), "name": "own"}]
        return line

    played = stranger.kode("replay", stranger.changed(elsewhere), "--patience", "5")
    assert played.returncode in (1, 2)
    assert "diary" not in played.stdout + played.stderr


async def test_serving_and_grading_it_start_nothing_either(stranger: Stranger) -> None:
    stranger.kode("grade", stranger.tape)
    stranger.kode("grade", "--json", stranger.tape)
    frames = b"".join(map(encode_frame, frames_in(stranger.tape.read_text("utf-8"))))
    for strict in ((), ("--strict",)):
        served = stranger.kode("replay", stranger.tape, "--serve", *strict, stdin=frames)
        assert "it ran with None" in served.stdout


async def test_a_strangers_session_is_opened_and_nothing_of_it_happens(
    stranger: Stranger, tmp_path: Path
) -> None:
    """Its folder lies among the user's own, whose settings allow what it once did."""
    environment = {
        "KODE_CONFIG": str(tmp_path / "config.yaml"),
        "KODE_HOME": str(tmp_path / "home"),
        "TOKEN": PLAYERS,
        "PATH": with_python(),
    }
    (folder,) = (tmp_path / "home" / "conversations").iterdir()
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    called = next(at for at, line in enumerate(journal) if b"run_command" in line)
    (folder / "journal.jsonl").write_bytes(b"".join(journal[: called + 1]))  # in mid-call
    handshake = {"trusted": True}
    project = [tmp_path / "project"]
    async with sidecar((), roots=project, environment=environment, handshake=handshake) as world:
        named = {"sessionId": folder.name}
        for method, params in [
            ("kode/session/list", {}),
            ("kode/session/attach", named),
            ("kode/message/list", named),
            ("kode/session/export", {**named, "format": "md"}),
            ("kode/session/fork", named),
        ]:
            await world.client.request(method, params, HANG_SECONDS)
        assert world.model.chats == []
    stranger.assert_nothing_happened()
