"""The contract of a batch's engine, and the engine for this machine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
from kode_sidecar.jobs.batch.tasks import PlannedTask

_GRACE_SECONDS = 300.0
"""A run keeps its own time limit; one that does not is killed this much later."""
_SAID_CHARS = 2_000


@dataclass(frozen=True)
class Job:
    """One run of one task, with paths of the machine it runs on.

    `folder` is for its records only; nothing else writes there.
    """

    task: PlannedTask
    config: Path
    prompt_file: Path
    folder: Path
    session_id: str
    run_id: str
    env_file: str | None = None

    def command(self) -> list[str]:
        """Return the arguments for the program."""
        words = ["run", "--json", "--no-stream", "--config", str(self.config)]
        words += ["--prompt-file", str(self.prompt_file), "--sandbox", str(self.folder)]
        words += ["--session-id", self.session_id, "--task-id", self.task.id]
        words += ["--run-id", self.run_id]
        if self.task.workspace:
            words += ["--workspace", self.task.workspace]
        if self.env_file is not None:
            words += ["--env-file", self.env_file]
        for name, value in self.task.fields.items():
            words += ["--set", f"{name}={msgspec.json.encode(value).decode()}"]
        return words


@dataclass(frozen=True)
class Worked:
    """A run that has ended. `worker` names its worker, `said` is its output, in case it died."""

    worker: str = ""
    said: str = ""


class BatchEngine(Protocol):
    """Runs jobs as processes of their own: on this machine, or on others."""

    async def run(self, job: Job) -> Worked:
        """Run a job and bring its records to `job.folder`; its `run.json` says how it ended.

        Cancelling soon ends the run and all its processes. A lost worker raises nothing: then
        `run.json` is missing, or shows a run that died. Raises KodeError if no run can be started
        at all.
        """
        ...

    async def close(self) -> None:
        """End the runs in progress, and release everything."""
        ...


async def run_process(program: Sequence[str], job: Job) -> str:
    """Run a job as a process, to its end; return the end of its output.

    Its child processes end with it, and it ends with this process, even after `kill -9`. Raises
    KodeError `ToolFailed` if it cannot be started.
    """
    words, limits = job.command(), CommandLimits(job.task.timeout + _GRACE_SECONDS)
    end = await run_program(
        ProgramRun(Path(program[0]), [*program[1:], *words], Path.cwd(), os.environ, limits)
    )
    return end.output.decode("utf-8", "replace")[-_SAID_CHARS:]


class LocalEngine:
    """`BatchEngine` on this machine. `program` is the command line of this program."""

    def __init__(self, program: Sequence[str]) -> None:
        self._program = program

    async def run(self, job: Job) -> Worked:
        """Run the job as a process here."""
        return Worked(said=await run_process(self._program, job))

    async def close(self) -> None:
        """Do nothing: each process ended with its task."""
