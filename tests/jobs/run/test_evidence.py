"""What a run is evidence of: money, what commands said, a limit, its language. B5 F10"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.jobs.run.project_copy import copy_history
from tests.support.files import write
from tests.support.git import GIT, git
from tests.support.headless_world import HEAD, SCRIPTED, HeadlessWorld, RunFiles, call
from tests.support.model_script import answer, failure, text, tool_call
from tests.support.sidecar import HANG_SECONDS


async def asked(folder: Path, *answers: Any, **options: Any) -> RunFiles:
    """A run that asks a host, which answers so."""
    async with ModelServer(Recording(answers), paced=False) as server:
        world = HeadlessWorld(folder, base_url=server.base_url)
        chat = ChatClient(world.registry, HttpClient)
        world.answer_with(chat)
        world.write(f"{HEAD}model: kimi-k2.6\n")
        try:
            async with asyncio.timeout(HANG_SECONDS):
                return RunFiles((await world.run(**options)).sandbox_root)
        finally:
            await chat.aclose()


async def test_tokens_and_cost_stand_in_the_record(tmp_path: Path) -> None:
    first = answer(text("Looking."), tool_call("list_files", {"directory": "."}))
    files = await asked(tmp_path, first, answer(text("Done.")))
    reported = [one["data"]["usage"] for one in files.events if one["type"] == "model.answered"]
    assert len(reported) == 2
    used = files.run["usage"]
    assert used["inputTokens"] == sum(one["inputTokens"] for one in reported) > 0
    (cost,) = files.run["costs"]
    assert cost["amount"] > 0
    assert cost["currency"] in ("CNY", "USD")


async def test_a_rate_limit_that_lasts_is_no_time_out(tmp_path: Path) -> None:
    refused = failure(429, "rate_limit_reached_error", "max RPM: 3", {"Retry-After": "50"})
    files = await asked(tmp_path, refused, timeout_seconds=1.0)
    assert files.run["failure_reason"] == "RateLimited"
    assert files.run["error"]["retryable"] is True


async def test_a_time_out_without_a_limit_is_one(tmp_path: Path) -> None:
    files = await asked(tmp_path, failure(500, "server_error", "broken"), timeout_seconds=0.3)
    assert files.run["failure_reason"] in ("RunTimedOut", "Provider")


async def test_what_a_command_said_is_kept(tmp_path: Path) -> None:
    world = HeadlessWorld(tmp_path)
    python = Path(sys.executable)
    world.set_environ({**os.environ, "PATH": str(python.parent)})
    shell = f"tools: {{shell: {{enabled: true, allow: [[{python.name}]]}}}}\n"
    argv = [python.name, "-X", "utf8", "-c", "print('kept 茶')"]
    world.write(f"{SCRIPTED}{shell}", [{"calls": [call("run_command", argv=argv)]}])
    files = RunFiles((await world.run()).sandbox_root)
    (line,) = files.lines("logs/tools.jsonl")
    (kept,) = line["artifacts"]
    assert (files.folder / kept).read_bytes().decode().strip() == "kept 茶"


@pytest.mark.parametrize(("role", "words"), [("You test.", "sandbox"), ("你来测试。", "沙箱")])
async def test_prompts_speak_the_language_of_the_role(
    tmp_path: Path, role: str, words: str
) -> None:
    world = HeadlessWorld(tmp_path)
    world.write(SCRIPTED.replace("You test things.", role), [])
    english = RunFiles((await world.run()).sandbox_root).text("effective-prompt.md")
    world.write(SCRIPTED.replace("You test things.", f"{role}, language: en"), [])
    reported = RunFiles((await world.run()).sandbox_root).text("effective-prompt.md")
    assert words in english.lower()
    assert "sandbox" in reported.lower()


@pytest.mark.skipif(GIT is None, reason="needs git")
async def test_the_history_comes_along_and_nothing_that_runs(tmp_path: Path) -> None:
    project = tmp_path / "app"
    write(project, {"a.txt": "one\n", "b.txt": "b\n"})
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "-c", "user.name=T", "-c", "user.email=t@t", "commit", "-qm", "first")
    git(project, "config", "core.fsmonitor", "touch pwned")
    write(project, {".git/hooks/post-checkout": "#!/bin/sh\n", "a.txt": "two\n"})
    world = HeadlessWorld(tmp_path)
    world.set_environ(os.environ)
    shell = "tools: {shell: {enabled: true, allow: [[git, diff]]}}\n"
    world.write(
        f"{SCRIPTED}{shell}workspace: {{import: app, git: true}}\n",
        [{"calls": [call("run_command", argv=["git", "diff"], cwd="workspace")]}],
    )
    files = RunFiles((await world.run()).sandbox_root)
    copy = files.folder / "workspace"
    assert "-one\n+two" in git(copy, "diff")
    assert "first" in git(copy, "log", "--oneline")
    assert not (copy / ".git" / "hooks").exists()
    assert "fsmonitor" not in (copy / ".git" / "config").read_text()
    (line,) = files.lines("logs/tools.jsonl")
    assert line["status"] == "ok", line
    assert "-one\n+two" in files.text(line["artifacts"][0])
    assert not (files.folder / "deliverables" / "changes.patch").exists()


def test_a_history_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"tree/.git": "gitdir: /elsewhere\n"})
    write(tmp_path, {"borrower/.git/objects/info/alternates": "/elsewhere\n"})
    for name in ("tree", "borrower"):
        with pytest.raises(KodeError, match=r"no whole \.git"):
            copy_history(tmp_path / name, tmp_path / "copy", 1_000)
    write(tmp_path, {"big/.git/objects/x": b"x" * 2_000, "big/.git/config": ""})
    with pytest.raises(KodeError) as caught:
        copy_history(tmp_path / "big", tmp_path / "copy", 1_000)
    assert caught.value.code == "TooLarge"
