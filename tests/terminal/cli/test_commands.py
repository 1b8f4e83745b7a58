"""The commands that ask the wire, as a user types them, with what they end with."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kode_sidecar.core.domain.run import RunError, RunRecord
from kode_sidecar.core.text.shown_text import invisible_characters
from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.terminal.cli.parser import EXIT_CODES
from tests.support.headless_world import HEAD
from tests.support.model_script import answer, failure, hold, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.raw_http import RawHttpServer, response, says
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.program


@dataclass
class Done:
    code: int | None
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def environment(model: ModelServer | None) -> dict[str, str]:
    made = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    if model is not None:
        made |= {"KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "sk-test-key-000"}
    return made


async def run(
    model: ModelServer | None, root: Path, *arguments: str, piped: str = "", **more: str
) -> Done:
    child = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments),
        cwd=root,
        env=environment(model) | more,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(HANG_SECONDS):
        out, err = await child.communicate(piped.encode())
    return Done(child.returncode, out.decode(), err.decode())


async def test_ask_and_the_life_of_a_session(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_bytes(b"tea\n")
    edit = tool_call("propose_edit", {"path": "tea.txt", "edits": [{"old": "tea", "new": "茶"}]})
    script = (
        answer(text("One 茶 \x1b[2J.")),
        answer(text("I propose."), edit),
        answer(text("Well.")),
    )
    async with ModelServer(Recording(script), paced=False) as model:
        first = await run(model, tmp_path, "ask", "what", "is it?", piped="LOG 4711\n")
        assert (first.code, first.out) == (0, "One 茶 [2J.\n"), first.err
        said = model.chats[0].body["messages"][-1]["content"]
        assert said == "what is it?\n\nStandard input:\n```\nLOG 4711\n\n```"

        again = await run(model, tmp_path, "ask", "--continue", "--json", "and?")
        assert again.code == 0, again.err
        (proposed,) = again.data["proposed_edits"]
        assert "-tea\n+茶" in proposed["diff"]
        assert again.data["usage"]["inputTokens"] == 200
        assert "LOG 4711" in str(model.chats[1].body["messages"])
        name = again.data["conversation_id"]
        assert (tmp_path / "tea.txt").read_bytes() == b"tea\n"

        listed = await run(model, tmp_path, "sessions", "list", "--json")
        assert [one["sessionId"] for one in listed.data["sessions"]] == [name]
        (tmp_path / "sub").mkdir()
        elsewhere = await run(model, tmp_path / "sub", "sessions", "search", "4711")
        assert "no sessions" in elsewhere.out
        found = await run(model, tmp_path / "sub", "sessions", "search", "4711", "--all")
        assert name in found.out
        shown = await run(model, tmp_path, "sessions", "show", name[:9])
        assert "I propose." in shown.out
        file = tmp_path / "talk.md"
        await run(model, tmp_path, "sessions", "export", name[:9], "-o", str(file))
        assert "One 茶" in file.read_text(encoding="utf-8")
        used = await run(model, tmp_path, "usage", "--by", "model", "--json")
        assert used.data["total"]["answers"] == 3
        copy = (await run(model, tmp_path, "sessions", "fork", name)).out.strip()
        assert (await run(model, tmp_path, "sessions", "delete", name, copy)).code == 0
        left = await run(model, tmp_path, "sessions", "list", "--all", "--json")
        assert left.data == {"sessions": []}


async def test_exit_codes_are_those_of_the_table(tmp_path: Path) -> None:
    """0 to 4 and 130 here; 5 is tested with reviews, what a run ends with with the runs."""
    job = tmp_path / "job.yaml"
    job.write_text("nonsense: 1\n", encoding="utf-8")
    wrong = failure(400, "invalid_request_error", "no such thing")
    rounds = [answer(tool_call("list_files", {"path": "."}))] * 6
    seen: dict[int, str] = {}
    async with ModelServer(Recording((wrong, *rounds, answer(text("x")))), paced=False) as model:
        for arguments in (
            ("skills",),
            ("ask", "hello"),  # the host refuses
            ("ask", "--agent", "ide-helper", "go"),  # the limit of its tool rounds
            ("sessions", "show", "nobody"),
            ("nonsense",),
            ("chat", "--model", "nope/x"),
        ):
            done = await run(model, tmp_path, *arguments)
            seen.setdefault(done.code or 0, " ".join(arguments))
            assert done.code == 0 or done.err, arguments
        blocked = await run(model, tmp_path, "run", "--config", str(job), "--prompt", "x")
        seen[blocked.code or 0] = "run"
    assert set(seen) | {5, 130} == set(EXIT_CODES), seen


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="a signal of POSIX")
async def test_ctrl_c_ends_a_question_with_130(tmp_path: Path) -> None:
    async with ModelServer(Recording((answer(text("wait"), hold("ever")),)), paced=False) as model:
        child = await asyncio.create_subprocess_exec(
            *(*PROGRAM, "ask", "go"),
            cwd=tmp_path,
            env=environment(model),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # A run that was put in the background ignores it, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        await model.reached("ever")
        child.send_signal(signal.SIGINT)
        async with asyncio.timeout(HANG_SECONDS):
            assert await child.wait() == 130


async def test_a_model_of_nobody_is_refused_with_the_list(tmp_path: Path) -> None:
    done = await run(None, tmp_path, "chat", "--model", "nope/x", KIMI_API_KEY="sk-test")
    assert done.code == 1
    assert "There is no provider nope." in done.err
    assert "kimi/..." in done.err


async def test_a_pipe_learns_of_setup(tmp_path: Path) -> None:
    done = await run(None, tmp_path, "ask", "hello")
    assert done.code == 1
    assert "run `kode-sidecar setup`" in done.err


async def test_setup_tests_a_key_and_keeps_it_for_the_user_alone(tmp_path: Path) -> None:
    home = Path(os.environ["KODE_HOME"])
    home.mkdir()
    async with ModelServer(Recording((answer(text("Hi.")),)), paced=False) as model:
        local = f"providers:\n  ollama:\n    base_url: {model.base_url}\n"
        local += "    api_key_env: OWN_KEY\n"  # the model here wants one
        own = {"OWN_KEY": "sk-test-key-000"}
        (home / "config.yaml").write_text(local, encoding="utf-8")
        (home / ".env").write_text("# mine\nKODE_MODEL=old\nKODE_MODE=plan\n", encoding="utf-8")
        bad = await run(None, tmp_path, "setup", "nobody", piped="sk-1\n")
        assert (bad.code, "use one of" in bad.err) == (1, True)
        done = await run(None, tmp_path, "setup", "ollama", **own)
        assert done.code == 0, done.err
        assert "KODE_MODEL=ollama/kimi-k2.6\n" in (home / ".env").read_text(encoding="utf-8")
        said = await run(None, tmp_path, "ask", "hello", **own)
        assert said.out.startswith("Hi."), said.err
    kept = await run(None, tmp_path, "setup", "deepseek", "--untested", piped="sk-deep-1\n")
    assert kept.code == 0, kept.err
    assert (home / ".env").read_text(encoding="utf-8").splitlines() == [
        "# mine",
        "KODE_MODE=plan",
        "DEEPSEEK_API_KEY=sk-deep-1",
        "KODE_MODEL=deepseek",
    ]
    if sys.platform != "win32":
        assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    assert "sk-deep-1" not in kept.out + kept.err


async def test_the_doctor_asks_the_hosts(tmp_path: Path) -> None:
    async with ModelServer(Recording(()), paced=False) as model:
        good = await run(model, tmp_path, "doctor", "--online", "--json")
        assert good.code == 0, good.out
        assert [c["ok"] for c in good.data["checks"] if c["name"] == "online"] == [True]
    dead = await run(
        None,
        tmp_path,
        "doctor",
        "--online",
        KIMI_BASE_URL="http://127.0.0.1:9/v1",
        KIMI_API_KEY="sk-test",
        KODE_HTTP_RETRY_BUDGET="0.01",
    )
    assert dead.code == 1
    assert "FAIL online: kimi" in dead.out


def local_host(folder: Path, server: RawHttpServer, model: str) -> dict[str, str]:
    text = f"model: {model}\nproviders: {{local: {{base_url: '{server.url}'}}}}\n"
    (folder / "config.yaml").write_text(text, "utf-8")
    return {"KODE_CONFIG": str(folder / "config.yaml"), "KIMI_API_KEY": ""}


@pytest.mark.parametrize(
    "before",
    [
        "",
        "mode: plan\n",
        "# mine\nproviders: # all\n\n    acme:\n        base_url: https://a.example\nmode: plan\n",
        "providers:\n# mine\n    acme:\n        base_url: https://a.example\n",
    ],
    ids=["no file", "no providers", "providers", "a comment first"],
)
async def test_setup_takes_an_address(tmp_path: Path, before: str) -> None:
    home = Path(os.environ["KODE_HOME"])
    home.mkdir()
    if before:
        (home / "config.yaml").write_text(before, "utf-8")
    listed = response(200, {"data": [{"id": "qwen3-coder"}]})
    async with RawHttpServer() as server:
        server.choose = lambda asked: says("hi") if asked.method == "POST" else listed
        for _ in range(2):  # again: the entry is there
            done = await run(None, tmp_path, "setup", server.url)
            assert done.code == 0, done.err
        said = await run(None, tmp_path, "ask", "hello")
        assert said.out.startswith("hi"), said.err
    text = (home / "config.yaml").read_text("utf-8")
    assert text.count(f"base_url: {server.url}\n") == 1
    assert all(line in text for line in before.splitlines())
    assert "KODE_MODEL=local/qwen3-coder\n" in (home / ".env").read_text("utf-8")


async def test_setup_refuses_to_rewrite_what_it_cannot_add_to(tmp_path: Path) -> None:
    home = Path(os.environ["KODE_HOME"])
    home.mkdir()
    flow = "providers: {acme: {base_url: 'https://a.example/v1'}}\n"
    (home / "config.yaml").write_text(flow, "utf-8")
    done = await run(None, tmp_path, "setup", "http://127.0.0.1:9/v1", "--untested")
    assert done.code == 1
    assert (
        "add this by hand.\nproviders:\n  local:\n    base_url: http://127.0.0.1:9/v1" in done.err
    )
    assert (home / "config.yaml").read_text("utf-8") == flow


async def test_a_host_without_a_list_is_no_wrong_address(tmp_path: Path) -> None:
    gone = response(404, {"detail": "Not Found"})
    async with RawHttpServer() as server:
        server.choose = lambda asked: says("hi") if asked.method == "POST" else gone
        more = local_host(tmp_path, server, "local/m")
        doctor = await run(None, tmp_path, "doctor", "--online", **more)
        assert "local: 127.0.0.1" in doctor.out
        assert "lists no models" in doctor.out
        assert "FAIL online" not in doctor.out
        assert "lists no models" in (await run(None, tmp_path, "models", **more)).out
        server.choose = lambda _: gone
        wrong = await run(None, tmp_path, "doctor", "--online", **more)
        assert "no chat API at this address" in wrong.out
        assert wrong.code == 1


async def test_the_doctor_sees_a_misspelt_model(tmp_path: Path) -> None:
    listed = response(200, {"data": [{"id": "qwen3-coder"}, {"id": "glm-air"}]})
    async with RawHttpServer(listed) as server:
        more = local_host(tmp_path, server, "local/qwen3-codr")
        wrong = await run(None, tmp_path, "doctor", "--online", **more)
        assert "FAIL online: model: no host lists local/qwen3-codr" in wrong.out
        assert "Did you mean local/qwen3-coder?" in wrong.out
        for right in ("local/qwen3-coder", "local/glm-air"):
            more = local_host(tmp_path, server, right)
            found = await run(None, tmp_path, "doctor", "--online", **more)
            assert "FAIL online" not in found.out


async def test_skills_memory_and_models_for_programs(tmp_path: Path) -> None:
    async with ModelServer(Recording(()), paced=False) as model:
        assert (await run(model, tmp_path, "skills", "--json")).data["skills"] == []
        assert (await run(model, tmp_path, "memory", "--json")).data["memories"] == []
        found = (await run(model, tmp_path, "models", "--json")).data
        assert found["default"] == "ide-chat"
        assert "kimi-k2.6" in (await run(model, tmp_path, "models")).out


@pytest.mark.parametrize("name", ["two words", "a\u202eb"])
async def test_a_server_whose_name_would_refuse_all_servers_is_not_added(
    tmp_path: Path, name: str
) -> None:
    done = await run(None, tmp_path, "mcp", "add", "--env", "SOME_TOKEN", name, "--", "uvx", "x")
    assert (done.code, "up to 64 letters, digits" in done.err) == (1, True)
    assert not Path(os.environ["KODE_HOME"], "config.yaml").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--config", "job.yaml", "--prompt", "x", "--sandbox", "taken/box"),
        ("batch", "--config", "job.yaml", "--prompt", "x", "--tasks", ".", "--out", "taken/out"),
    ],
    ids=["run", "batch"],
)
async def test_a_folder_that_cannot_be_made_is_told_by_its_own_name(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """And not as the state folder, which is well."""
    (tmp_path / "job.yaml").write_text(HEAD, encoding="utf-8")
    (tmp_path / "project").mkdir()
    (tmp_path / "taken").write_bytes(b"")
    async with ModelServer(Recording(()), paced=False) as model:
        done = await run(model, tmp_path, *words)
    assert done.code == 1
    folder = str(tmp_path / words[-1])
    assert done.err.startswith(f"kode-sidecar: {folder} cannot be made or written: Not a dir")


async def test_what_is_named_wrongly_of_a_session_is_said_plainly(tmp_path: Path) -> None:
    async with ModelServer(
        Recording((answer(text("A.")), answer(text("B.")))), paced=False
    ) as host:
        for _ in range(2):
            assert (await run(host, tmp_path, "ask", "hello")).code == 0
    many = await run(None, tmp_path, "sessions", "show", "")
    assert many.err.startswith("kode-sidecar: There are several sessions with an id")
    listed = await run(None, tmp_path, "sessions", "list", "--json")
    name = listed.data["sessions"][0]["sessionId"]
    nowhere = str(tmp_path / "no" / "talk.md")
    done = await run(None, tmp_path, "sessions", "export", name, "-o", nowhere)
    assert done.err == f"kode-sidecar: Cannot write {nowhere}: No such file or directory.\n"


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
@pytest.mark.parametrize("words", [("ask", "hello"), ("chat",)], ids=" ".join)
def test_a_folder_that_was_removed_under_the_user_is_told(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    leave = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    folder = tmp_path / "gone"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", leave, *PROGRAM, *words],
        cwd=folder,
        env=environment(None),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    reported = "kode-sidecar: the folder you are in is gone; go to another one\n"
    assert (done.returncode, done.stderr) == (1, reported)


async def test_a_strangers_run_moves_no_cursor_and_hides_nothing(tmp_path: Path) -> None:  # W13
    hostile = "\x1b]0;owned\x07\x9b2J\u202e\u200b"
    record = RunRecord(
        session_id="s",
        task_id=hostile,
        run_id="r1",
        profile_id=hostile,
        sandbox_root="x",
        status="failed",
        failure_reason=hostile,
        error=RunError(code="x", message=hostile, category="tool", retryable=False),
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
    )
    for name, text_of_run in (("good", msgspec.json.encode(record)), ("bad", hostile.encode())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_bytes(text_of_run)
    good = str(tmp_path / "good")
    shown = await run(None, tmp_path, "runs", "show", good)
    listed = await run(None, tmp_path, "runs", "list", "--folder", str(tmp_path))
    as_json = await run(None, tmp_path, "runs", "show", good, "--json")
    missing = await run(None, tmp_path, "runs", "show", hostile)
    assert (shown.code, listed.code, as_json.code, missing.code) == (0, 1, 0, 1)
    assert as_json.data == json.loads(msgspec.json.encode(record))
    assert "<U+202E>" in shown.out
    for done in (shown, listed, as_json, missing):
        assert invisible_characters((done.out + done.err).replace(os.linesep, "\n")) == ()
