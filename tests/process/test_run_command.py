"""`kode-sidecar run` and `runs` as a user and a scheduler start them (B1)."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kode_sidecar.core.text.yaml_text import read_yaml
from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.jobs.run.run_config import parse_run_config
from kode_sidecar.terminal.cli.run import TEMPLATE
from tests.process.test_goals import FLAKY
from tests.support.headless_world import HEAD, SCRIPTED, RunFiles, call
from tests.support.model_script import answer, hold, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

Json = dict[str, Any]
KEY = "sk-test-0123456789abcdef"


class Finished:
    """A command that ended."""

    def __init__(self, code: int | None, out: bytes, err: bytes | None) -> None:
        self.code = code
        self.out = out.decode()
        self.err = (err or b"").decode()

    @property
    def json(self) -> Json:
        return json.loads(self.out)


async def spawn(*arguments: str, cwd: Path, url: str = "") -> asyncio.subprocess.Process:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KIMI_API_KEY": KEY}
    if url:
        env["KIMI_BASE_URL"] = url
    return await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments),
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def finish(child: asyncio.subprocess.Process) -> Finished:
    async with asyncio.timeout(HANG_SECONDS):
        out, err = await child.communicate()
    return Finished(child.returncode, out, err)


async def kode(*arguments: str, cwd: Path, url: str = "") -> Finished:
    return await finish(await spawn(*arguments, cwd=cwd, url=url))


def write_job(folder: Path, config: str, *steps: Json) -> None:
    (folder / "job.yaml").write_text(config, encoding="utf-8")
    (folder / "script.yaml").write_text(json.dumps({"steps": steps}), encoding="utf-8")


def model(*answers: RecordedResponse) -> ModelServer:
    return ModelServer(Recording(answers), paced=False)


async def test_a_workspace_beside_the_folder_one_stands_in(tmp_path: Path) -> None:
    """As a shell completes it: `--workspace ../project`."""
    for name in ("project", "jobs"):
        (tmp_path / name).mkdir()
    (tmp_path / "project" / "app.py").write_text("print(1)\n")
    write_job(tmp_path / "jobs", SCRIPTED, {"say": "Seen."})
    words = ("run", "--config", "job.yaml", "--prompt", "look", "--workspace", "../project")
    done = await kode(*words, cwd=tmp_path / "jobs")
    assert done.code == 0, done.out


async def test_a_job_goes_on_where_nobody_reads_its_progress(tmp_path: Path) -> None:
    write_job(tmp_path, SCRIPTED, {"say": "Seen."})
    reader, writer = os.pipe()
    os.close(reader)
    child = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "run", "--config", "job.yaml", "--prompt", "look"),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writer,
    )
    os.close(writer)
    done = await finish(child)
    assert (done.code, "completed" in done.out) == (0, True)


@pytest.mark.parametrize(("rounds", "state"), [(6, "completed"), (3, "failed")])
async def test_a_job_goes_on_until_a_flaky_test_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int, state: str
) -> None:
    """The goal of a session, by the same code: it passes in its sixth run."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "flaky.py").write_text(FLAKY)
    shell = "tools: {shell: {enabled: true, allow: [[python]]}}\n"
    goal = f"goal: {{command: [python, flaky.py], rounds: {rounds}}}\n"
    write_job(tmp_path, f"{HEAD}{shell}{goal}")
    check = tool_call("run_command", {"argv": ["python", "flaky.py"], "cwd": "workspace"})
    async with model(*[answer(check), answer(text("Done."))] * 6) as host:
        done = await kode(
            *("run", "--config", "job.yaml", "--prompt", "go", "--workspace", "project"),
            cwd=tmp_path,
            url=host.base_url,
        )
        assert (done.code == 0) == (state == "completed"), done.out + done.err
        assert len(host.chats) == 2 * rounds
    assert ("GoalNotReached" in done.out + done.err) == (state == "failed")


async def test_a_run_against_a_host(tmp_path: Path) -> None:
    """B1 B12: the native engine over HTTP, all options given."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "app.py").write_text("print(1)\n")
    write_job(tmp_path, f"{HEAD}deliverables: [{{path: deliverables/report.md}}]\n")
    (tmp_path / "task.md").write_text("Report on app.py.", encoding="utf-8")
    report = {"path": "deliverables/report.md", "content": "It prints 1.\n"}
    edit = {"path": "workspace/app.py", "edits": [{"old": "print(1)", "new": "print(2)"}]}
    answers = (
        answer(text("Reading."), tool_call("read_file", {"path": "workspace/app.py"})),
        answer(tool_call("propose_edit", edit)),
        answer(tool_call("write_artifact", report)),
        answer(text("Reported.")),
    )
    async with model(*answers) as host:
        done = await kode(
            *("run", "--config", "job.yaml", "--prompt-file", "task.md", "--workspace", "project"),
            *("--sandbox", "box", "--session-id", "s", "--task-id", "t", "--run-id", "r"),
            *("--no-stream", "--max-steps", "5", "--timeout", "50", "--model", "kimi-k2.6"),
            "--json",
            cwd=tmp_path,
            url=host.base_url,
        )
        assert done.code == 0, done.err
        asked = host.chats[0].body
    assert done.err == ""
    result = done.json
    assert (result["session_id"], result["task_id"], result["run_id"]) == ("s", "t", "r")
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    assert result["final_text"] == "Reported."
    assert asked["messages"][-1]["content"] == "Report on app.py."
    assert asked.get("stream", False) is False
    files = RunFiles(tmp_path / "box")
    assert files.run["overrides"]["max_steps"] == 5
    assert read_yaml(files.text("config.yaml")).value["runtime"]["timeout_seconds"] == 50  # type: ignore[index]
    assert files.text("deliverables/report.md") == "It prints 1.\n"
    assert "+print(2)" in files.text("deliverables/changes.patch")
    assert (tmp_path / "project" / "app.py").read_text() == "print(1)\n"
    assert KEY not in files.all_text()


async def test_exit_codes_and_what_is_shown(tmp_path: Path) -> None:
    run = ("run", "--config", "job.yaml", "--prompt", "Go.")
    write_job(tmp_path, SCRIPTED, {"say": "Done."})
    done = await kode(*run, cwd=tmp_path)
    assert done.code == 0
    assert done.err.splitlines()[::10] == ["- Step config", "- Step final"], "no terminal, no text"
    assert done.out.startswith("completed (passed): run ")
    assert "\nDone.\n" in done.out
    wanted = f"{SCRIPTED}deliverables: [{{path: deliverables/a}}]\n"
    write_job(tmp_path, wanted, {"say": "Done."})
    done = await kode(*run, cwd=tmp_path)
    assert done.code == 3
    assert "DeliverableMissing: " in done.out
    write_job(tmp_path, f"{SCRIPTED}surprise: 1\n")
    done = await kode(*run, cwd=tmp_path)
    assert done.code == 4
    assert "ConfigInvalid: job.yaml, line 4: `surprise`: " in done.out
    assert (await kode("run", "--prompt", "Go.", cwd=tmp_path)).code == 2

    listed = await kode("runs", "list", cwd=tmp_path)
    states = [line.split()[1] for line in listed.out.splitlines()]
    assert states == ["failed", "incomplete", "completed"]
    newest = listed.out.split()[0]
    shown = await kode("runs", "show", newest, cwd=tmp_path)
    assert "failed in step config" in shown.out
    reported = await kode("runs", "list", "--json", cwd=tmp_path)
    rows = reported.json["runs"]
    assert [row["governance"] for row in rows] == ["blocked", "incomplete", "passed"]
    shown = await kode("runs", "show", rows[0]["sandbox_root"], "--json", cwd=tmp_path)
    assert shown.json == rows[0]
    gone = await kode("runs", "show", "20260101-000000-none", cwd=tmp_path)
    assert (gone.code, gone.out) == (1, "")


async def test_dry_runs_and_prompts(tmp_path: Path) -> None:
    write_job(tmp_path, SCRIPTED, {"say": "never"})
    base = ("run", "--config", "job.yaml", "--prompt", "Go.")
    shown = await kode(*base, "--show-prompt", cwd=tmp_path)
    assert shown.code == 0
    assert shown.out.startswith("You test things.\n")
    assert "deliverables/" in shown.out
    dry = await kode(*base, "--dry-run", "--json", cwd=tmp_path)
    assert (dry.code, dry.json["status"]) == (0, "pending")
    asks = await kode(
        *base,
        "--dry-run",
        "--json",
        "--set",
        "runtime={}",
        "--set",
        "model=openai/gpt-x",
        cwd=tmp_path,
    )
    assert (asks.code, asks.json["status"]) == (1, "pending")
    assert "OPENAI_API_KEY" in asks.json["error"]["message"]
    shutil.rmtree(asks.json["sandbox_root"])
    listed = await kode("runs", "list", cwd=tmp_path)
    assert [line.split()[1:3] for line in listed.out.splitlines()] == [["dry", "run"]] * 2
    first, second = Path(os.environ["KODE_HOME"], "runs").iterdir()
    prompt = RunFiles(first).text("effective-prompt.md")
    assert prompt == RunFiles(second).text("effective-prompt.md"), "equal parts, equal bytes (B3)"


async def test_init_writes_a_configuration_that_holds(tmp_path: Path) -> None:
    written = await kode("run", "--init", "mine.yaml", cwd=tmp_path)
    assert (written.code, written.out) == (0, "wrote mine.yaml\n")
    text_written = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    config = parse_run_config(text_written, "mine.yaml")
    assert config.profile.id == "my-job"
    again = await kode("run", "--init", "mine.yaml", cwd=tmp_path)
    assert again.code == 1
    assert "exists already" in again.err


def test_the_configuration_to_begin_with_shows_every_default() -> None:
    """What is commented out says what holds without it, and every field is there."""
    template = TEMPLATE.read_text(encoding="utf-8")
    spelt = re.sub(r"(?m)^# ( *(?:- )?\w+:)", r"\1", template)
    config, bare = parse_run_config(spelt, "all"), parse_run_config(template, "bare")
    examples = {"workspace": replace(config.workspace, source=None)}
    examples["memory"] = replace(config.memory, external=None)
    examples["deliverables"] = bare.deliverables
    assert replace(config, **examples) == bare
    written: Any = read_yaml(spelt).value
    for part in ("model", "profile", "skills", "tools", "memory", "workspace", "runtime"):
        kind = type(getattr(config, part))
        assert set(written[part]) == set(kind.__struct_encode_fields__), part


@pytest.mark.skipif(sys.platform == "win32", reason="no Ctrl-C for one child there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_ctrl_c_leaves_a_true_record(tmp_path: Path, number: int) -> None:
    """B1 B7: while the model speaks."""
    write_job(tmp_path, f"{HEAD}model: kimi-k2.6\n")
    async with model(answer(text("I am"), hold("middle"), text(" thinking."))) as host:
        child = await spawn(
            *("run", "--config", "job.yaml", "--prompt", "Go.", "--sandbox", "box", "--json"),
            cwd=tmp_path,
            url=host.base_url,
        )
        async with asyncio.timeout(HANG_SECONDS):
            await host.reached("middle")
        child.send_signal(number)
        done = await finish(child)
    assert done.code == 130, done.err
    assert (done.json["status"], done.json["error"]["code"]) == ("cancelled", "Cancelled")
    files = RunFiles(tmp_path / "box")
    assert (files.run["status"], files.run["step"]) == ("cancelled", "engine")
    assert files.text("transcript.md").rstrip().endswith("Cancelled: The run was cancelled.")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
async def test_no_runs_are_an_empty_list(tmp_path: Path) -> None:
    reported = await kode("runs", "list", "--json", cwd=tmp_path)
    assert (reported.code, reported.json) == (0, {"runs": []})
    assert (await kode("runs", "list", cwd=tmp_path)).out == "There are no runs yet.\n"


async def test_a_killed_run_is_listed_as_failed(tmp_path: Path) -> None:
    """B5: found running, its process gone."""
    write_job(tmp_path, f"{HEAD}model: kimi-k2.6\n")
    async with model(answer(text("I am"), hold("middle"))) as host:
        child = await spawn(
            *("run", "--config", "job.yaml", "--prompt", "Go.", "--run-id", "r-1"),
            cwd=tmp_path,
            url=host.base_url,
        )
        async with asyncio.timeout(HANG_SECONDS):
            await host.reached("middle")
        alive = await kode("runs", "list", cwd=tmp_path)
        assert alive.out.split()[:2] == ["r-1", "running"]
        child.kill()
        await finish(child)
    listed = await kode("runs", "list", cwd=tmp_path)
    assert listed.out.split()[:2] == ["r-1", "failed"]
    assert listed.out.rstrip().endswith("RunDied")
    folder = Path(os.environ["KODE_HOME"]) / "runs" / "r-1"
    assert RunFiles(folder).run["status"] == "running", "nobody else writes to it"


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
async def test_progress_is_shown_at_a_terminal_only(tmp_path: Path) -> None:
    import pty

    write_job(tmp_path, SCRIPTED, {"calls": [call("list_files", directory=".")]}, {"say": "Done."})
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "run", "--config", "job.yaml", "--prompt", "Go."),
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    done = await finish(child)
    shown = os.read(ours, 65_536).decode().replace("\r\n", "\n")
    os.close(ours)
    assert done.code == 0
    assert "- Step engine\n+ list_files .: " in shown
    assert "\n- Step final\n" in shown
