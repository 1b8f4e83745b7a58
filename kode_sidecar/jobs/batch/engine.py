"""What an engine of a batch is given and what it owes, and the engine of this machine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
from kode_sidecar.jobs.batch.tasks import PlannedTask

_GRACE_SECONDS = 300.0
"""A run keeps its own time limit; one that does not is ended after so much more."""
_SAID_CHARS = 2_000


@dataclass(frozen=True)
class Job:
    """One run of one task, with paths of the machine it runs on.

    `folder` is where its records are to be; nobody else writes there.
    """

    task: PlannedTask
    config: Path
    prompt_file: Path
    folder: Path
    session_id: str
    run_id: str
    env_file: str | None = None

    def command(self) -> list[str]:
        """Return the words after the name of the program."""
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
    """A run is over. `worker` says where it was, `said` what its process wrote, for a mishap."""

    worker: str = ""
    said: str = ""


class BatchEngine(Protocol):
    """Runs jobs as processes of their own: on this machine, or on others."""

    async def run(self, job: Job) -> Worked:
        """Run it and bring its records to `job.folder`; how it ended stands in its `run.json`.

        Cancelling ends the run and all that it started, soon. A worker or scheduler that is lost
        is no exception: then `run.json` is missing, or tells of a run that died. Raises KodeError
        where no run can ever be begun.
        """
        ...

    async def close(self) -> None:
        """End what still runs, and release everything."""
        ...


async def run_process(program: Sequence[str], job: Job) -> str:
    """Run a job as a process, to its end; return the end of what it said.

    All that it started ends with it, and it ends with this process, also after `kill -9`. Raises
    KodeError `ToolFailed` where it cannot be started.
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
        """Run it."""
        return Worked(said=await run_process(self._program, job))

    async def close(self) -> None:
        """Do nothing: what ran ended with its task."""
