"""One governed run as a process of its own, which ends with whoever started it."""

import os
from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.batch.contracts import Job, Worked
from kode_sidecar.commands.command import CommandLimits, run_program

_GRACE_SECONDS = 300.0
"""A run keeps its own time limit; one that does not is ended after so much more."""
_SAID_CHARS = 2_000


async def run_process(program: Sequence[str], job: Job) -> str:
    """Run it to its end; return the end of what it said.

    All that it started ends with it, and it ends with this process, also after `kill -9`. Raises
    KodeError `ToolFailed` where it cannot be started.
    """
    end = await run_program(
        Path(program[0]),
        [*program[1:], *job.command()],
        folder=Path.cwd(),
        environment=os.environ,
        limits=CommandLimits(job.task.timeout + _GRACE_SECONDS),
    )
    return end.output.decode("utf-8", "replace")[-_SAID_CHARS:]


class LocalEngine:
    """`Engine` on this machine. `program` is the command line of this program."""

    def __init__(self, program: Sequence[str]) -> None:
        self._program = program

    async def run(self, job: Job) -> Worked:
        """Run it."""
        return Worked(said=await run_process(self._program, job))

    async def close(self) -> None:
        """Do nothing: what ran ended with its task."""
