"""Plays governed runs through the real process: one that delivers, and three that must not pass."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording, failure, load_recording
from kode_sidecar.devtools.demo.stage import (
    HERE,
    DemoFailed,
    DemoOptions,
    Show,
    perform,
    recorded_environment,
)
from kode_sidecar.terminal.client.sidecar_process import PROGRAM

CONFIG = "job.yaml"
DELIVERABLE = "deliverables/review.md"
DELIVERING_ANSWER = 3
"""The index of the recorded answer that writes the deliverable."""
_SHOWN = ("skill.enabled", "tool.completed", "tool.refused", "path.refused", "deliverable.checked")

Json = dict[str, Any]


@dataclass(frozen=True)
class Act:
    """One run and its expected state, exit code and reason; `change` edits its configuration."""

    title: str
    recording: Recording
    state: str
    code: int
    reason: str | None = None
    change: Callable[[str], str] = str


async def play_job(options: DemoOptions, out: TextIO | None = None) -> int:
    """Play the runs to `out` (default: standard output) and return the exit code.

    A run with an unexpected result is reported, and the exit code is 1.
    """
    return await perform(options, out, lambda show: _JobPlay(show).run())


class _JobPlay:
    """The acts, in order."""

    def __init__(self, show: Show) -> None:
        self._live = show.options.live
        self._stage, self._terminal, self._say = show.stage, show.terminal, show.say
        self._job = HERE / "job" / show.say.language
        self._folder = show.stage.project.parent

    async def run(self) -> None:
        shutil.copytree(self._job / "skills", self._folder / "skills")
        for act in self._acts():
            await self._play(act)

    def _acts(self) -> list[Act]:
        whole = load_recording(self._job / "recording", 0)
        delivered = Act(self._say("delivered"), whole, "completed", 0)
        if self._live:
            return [delivered]
        answers = whole.responses
        rest = answers[:DELIVERING_ANSWER] + answers[DELIVERING_ANSWER + 1 :]
        down = failure(400, "invalid_request_error", "the recorded host refuses everything")
        return [
            delivered,
            Act(self._say("undelivered"), Recording(rest), "incomplete", 3, "DeliverableMissing"),
            Act(
                self._say("unsafe"),
                whole,
                "failed",
                4,
                "PathOutsideRoots",
                lambda text: text.replace(DELIVERABLE, f"../{DELIVERABLE}"),
            ),
            Act(self._say("broken"), Recording((down,)), "failed", 1, "Provider"),
        ]

    async def _play(self, act: Act) -> None:
        terminal = self._terminal
        terminal.line()
        terminal.line(act.title, "bold")
        text = (self._job / CONFIG).read_text(encoding="utf-8")
        (self._folder / CONFIG).write_text(act.change(text), encoding="utf-8")
        if self._live:
            code, result = await self._command(dict(os.environ))
        else:
            async with ModelServer(act.recording, paced=False) as model:
                environment = recorded_environment(os.environ, model.base_url)
                code, result = await self._command(environment)
        folder = Path(result["sandbox_root"])
        self._show(folder)
        error: Json = result.get("error") or {}
        reason: str | None = error.get("code")
        found = (result["status"], code, reason)
        terminal.line(
            self._say(
                "job_outcome", status=result["status"], governance=result["governance"], code=code
            )
        )
        if found != (act.state, act.code, act.reason):
            raise DemoFailed(self._say("wrong_run", found=found))
        if act.code == 0:
            self._show_deliverable(folder)
        elif not (folder / "logs" / "errors.jsonl").read_bytes():
            raise DemoFailed(self._say("wrong_run", found="logs/errors.jsonl"))
        terminal.line(self._say("job_records", folder=folder), "dim")

    async def _command(self, environment: dict[str, str]) -> tuple[int, Json]:
        """Run `kode-sidecar run` and return its exit code and result."""
        command = [*PROGRAM, "run", "--config", str(self._folder / CONFIG)]
        command += ["--prompt", self._say("job_prompt"), "--json"]
        environment |= {"KODE_HOME": str(self._stage.home), "KODE_LOCALE": self._say.language}
        self._terminal.line(f"$ kode-sidecar {shlex.join(command[len(PROGRAM) :])}", "dim")
        child = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, errors = await child.communicate()
        if not out:
            raise DemoFailed(errors.decode(errors="replace").strip()[-2_000:])
        assert child.returncode is not None
        return child.returncode, json.loads(out)

    def _show(self, folder: Path) -> None:
        for line in (folder / "events.jsonl").read_bytes().splitlines():
            event: Json = json.loads(line)
            if event["type"] in _SHOWN or event["severity"] == "error":
                color = "red" if event["severity"] == "error" else ""
                self._terminal.line(f"  {event['type']:<19} {event['summary']}", color)

    def _show_deliverable(self, folder: Path) -> None:
        memory = folder / "archive" / "candidate-memory.jsonl"
        if memory.exists():
            candidate: Json = json.loads(memory.read_bytes().splitlines()[0])
            self._terminal.line(self._say("memory", content=candidate["content"]))
        self._terminal.line(f"{DELIVERABLE}:", "bold")
        for line in (folder / DELIVERABLE).read_text(encoding="utf-8").splitlines():
            self._terminal.line(f"  {line}")
