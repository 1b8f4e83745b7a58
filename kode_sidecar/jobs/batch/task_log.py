"""`tasks.jsonl`: which tasks were planned, claimed, cut off and done; lines are only appended.

A line is written to the system before the work goes on, so a killed process loses none. A power cut
may lose the last second; then a run's folder exists without its line, and is found when the task is
claimed again. So `run.json` is the truth, and this file its index.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.domain.run import Governance, RunState
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.infrastructure.records.jsonl import JsonlFile, open_lines, read_records
from kode_sidecar.jobs.batch.tasks import PlannedTask

TASKS_FILE = "tasks.jsonl"


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one run of a task; `code` and `message` are those of its error.

    `delivered` lists the files it made, `patch_bytes` is the size of `changes.patch`.
    """

    status: RunState
    governance: Governance | None = None
    code: str = ""
    message: str = ""
    model: str = ""
    worker: str = ""
    started_at: str = ""
    seconds: float = 0.0
    usage: Usage | None = None
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None
    patch_bytes: int = 0
    delivered: tuple[str, ...] = ()


class _Line(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="state"):
    """A line of the file. `at` is RFC 3339 in UTC."""

    at: str


class Planned(_Line, frozen=True, kw_only=True, tag="planned"):
    """A task is to be done; a task done with another fingerprint is to be done again."""

    task: PlannedTask


class Removed(_Line, frozen=True, kw_only=True, tag="removed"):
    """A task is no longer in the plan; what its runs cost still counts."""

    id: str


class Claimed(_Line, frozen=True, kw_only=True, tag="claimed"):
    """The run number `attempt` of a task begins."""

    id: str
    attempt: int


class Cut(_Line, frozen=True, kw_only=True, tag="cut"):
    """A run was cut off, and its task waits again. `counts`: the cut counts as a strike."""

    id: str
    attempt: int
    outcome: Outcome
    counts: bool = True


class TaskEnded(_Line, frozen=True, kw_only=True, tag="ended"):
    """A task is done: completed, incomplete or failed."""

    id: str
    attempt: int
    outcome: Outcome


class Again(_Line, frozen=True, kw_only=True, tag="again"):
    """The user wants an uncompleted task to be done once more."""

    id: str


Line = Planned | Removed | Claimed | Cut | TaskEnded | Again


@dataclass
class TaskState:
    """The state of a task. `attempt` is the number of its newest run, 0 before the first one.

    `outcome` is set when it is done; `cuts` are the outcomes of runs that were cut off, `strikes`
    how many of those count. `earlier` are the outcomes of runs that ended and were repeated.
    """

    task: PlannedTask
    attempt: int = 0
    running: bool = False
    outcome: Outcome | None = None
    strikes: int = 0
    cuts: list[Outcome] = field(default_factory=list[Outcome])
    earlier: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all its ended runs, the newest last."""
        return [*self.earlier, *self.cuts, *([self.outcome] if self.outcome else [])]

    @property
    def name(self) -> str:
        """The state in one word."""
        if self.outcome is not None:
            return "blocked" if self.outcome.governance == "blocked" else self.outcome.status
        return "running" if self.running else "cut" if self.cuts else "pending"


class TaskLogFold:
    """The states of all tasks after the applied lines.

    `removed` are the outcomes of tasks that are no longer in the plan.
    """

    def __init__(self) -> None:
        self.tasks: dict[str, TaskState] = {}
        self.removed: list[Outcome] = []

    def apply(self, line: Line) -> None:
        """Apply one line; a line about an unknown task has no effect."""
        if isinstance(line, Planned):
            self._planned(line.task)
            return
        state = self.tasks.get(line.id)
        if state is None:
            return
        match line:
            case Removed():
                self.removed += state.outcomes
                del self.tasks[line.id]
            case Again():
                self._retire(state)
                state.strikes = 0
            case Claimed():
                state.attempt, state.running = line.attempt, True
            case Cut():
                state.running = False
                state.cuts.append(line.outcome)
                state.strikes += line.counts
            case TaskEnded():
                state.running, state.outcome = False, line.outcome

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcome of every ended run, also of removed tasks."""
        yield from self.removed
        for state in self.tasks.values():
            yield from state.outcomes

    def _planned(self, task: PlannedTask) -> None:
        known = self.tasks.get(task.id)
        if known is None:
            self.tasks[task.id] = TaskState(task)
            return
        if known.task.fingerprint != task.fingerprint:
            self._retire(known)
            known.strikes = 0
        known.task = task

    def _retire(self, state: TaskState) -> None:
        if state.outcome is not None:
            state.earlier += [*state.cuts, state.outcome]
            state.cuts = []
        state.outcome, state.running = None, False


class TaskLog(TaskLogFold):
    """The states of all tasks, and the file that records them, for the one process that writes it.

    Raises KodeError `Storage`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        path = folder / TASKS_FILE
        for line in open_lines(path, msgspec.json.Decoder(Line).decode).records:
            self.apply(line)
        self._file = JsonlFile(path)

    def add(self, line: Line) -> None:
        """Write a line and apply it. Raises KodeError `Storage`."""
        self._file.append(encode_json(line))
        self.apply(line)

    def sync(self) -> None:
        """Flush what was written to the disk. Blocks; raises KodeError `Storage`."""
        self._file.sync()

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def read_task_log(folder: Path) -> TaskLogFold:
    """Return the states from the file as it is now, for readers. Raises KodeError `Storage`."""
    fold = TaskLogFold()
    for line in read_records(folder / TASKS_FILE, msgspec.json.Decoder(Line).decode)[0]:
        fold.apply(line)
    return fold
