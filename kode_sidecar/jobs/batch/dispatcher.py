"""Claims tasks, lets an engine run them, and records the outcome of each."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kode_sidecar.core.domain.run import FINAL_STATES, RunRecord
from kode_sidecar.core.kernel.contracts import Clock
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.run_records import RUN_FILE, read_run
from kode_sidecar.infrastructure.records.session_lock import is_held
from kode_sidecar.jobs.batch.batch_folder import BatchFolder, BatchRecord
from kode_sidecar.jobs.batch.engine import BatchEngine, Job, Worked
from kode_sidecar.jobs.batch.limits import BatchBudget, Pace
from kode_sidecar.jobs.batch.task_log import Again, Claimed, Cut, Outcome, TaskEnded, TaskState

_SYNC_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_REPEATED = frozenset({"RunDied", "Cancelled", "RateLimited"})
"""The errors of runs that were cut off, which are no fault of their task."""
_MESSAGE_CHARS = 500
_DIFF = "deliverables/changes.patch"
_WHAT = re.compile(r"\s+")

Reported = Callable[[TaskState], None]
"""Called on the event loop when a task has begun, was cut off or is done."""


@dataclass
class Dispatcher:
    """One pass over a batch. Setting `cancelled` ends it soon, and cuts off the runs.

    `report` is called for each change. Every task that is not done is run; a task whose run was cut
    off is run again, at most `record.attempts` times.
    """

    folder: BatchFolder
    record: BatchRecord
    engine: BatchEngine
    clock: Clock
    reported: Reported
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        log = self.folder.log
        self._waiting = [state for state in log.tasks.values() if state.outcome is None]
        # Runs of an earlier process come first: they may have ended, or may still be running.
        self._waiting.sort(key=lambda state: not state.running)
        self._waiting.reverse()
        self._budget = BatchBudget(self.record.budget, log.outcomes())
        self._paces: dict[str, Pace] = {}
        self._failures = 0
        self._running: dict[asyncio.Task[None], TaskState] = {}
        self._broken: KodeError | None = None

    async def run(self) -> str:
        """Work until no task is left or none may begin; return why it ended early, or "".

        Raises KodeError `Storage` if a disk fails, and what the engine raises.
        """
        stop = asyncio.create_task(self.cancelled.wait())
        sync = asyncio.create_task(self._sync())
        try:
            while not self.cancelled.is_set() and self._broken is None:
                pause = self._begin_what_may()
                if not self._running and pause is None:
                    break
                await asyncio.wait(
                    {stop, *self._running}, timeout=pause, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in (stop, sync, *self._running):
                task.cancel()
            await asyncio.wait({stop, sync, *self._running})
            await asyncio.to_thread(self.folder.log.sync)
        if self._broken is not None:
            raise self._broken
        return self._reason()

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_SECONDS)
            await asyncio.to_thread(self.folder.log.sync)

    def _begin_what_may(self) -> float | None:
        """Begin all tasks that may begin; return the seconds until another may, None if never."""
        pause: float | None = None
        held: list[TaskState] = []
        while self._waiting and len(self._running) < self.record.jobs and not self._is_held_back():
            state = self._waiting.pop()
            seconds = 0.0 if state.running else self._pace(state).seconds_to_go()
            if seconds == 0.0:
                self._begin(state)
                continue
            held.append(state)
            if seconds is not None:
                pause = seconds if pause is None else min(pause, seconds)
        self._waiting += reversed(held)
        return pause

    def _is_held_back(self) -> bool:
        most = self.record.max_failures
        if most is not None and self._failures >= most:
            return True
        return not self._waiting[-1].running and not self._budget.allows(len(self._running))

    def _reason(self) -> str:
        if self.cancelled.is_set():
            return "cancelled"
        if not self._waiting:
            return ""
        if self._failures and self.record.max_failures is not None:
            return f"{self._failures} tasks failed"
        return self._budget.reason()

    def _pace(self, state: TaskState) -> Pace:
        """Return the pace of the task's model: each model has its own rate limit."""
        model = state.task.model
        if model not in self._paces:
            self._paces[model] = Pace(self.record.jobs, self.clock.monotonic)
        return self._paces[model]

    def _begin(self, state: TaskState) -> None:
        self._pace(state).begun()
        task = asyncio.create_task(self._one(state))
        self._running[task] = state
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[None]") -> None:
        del self._running[task]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KodeError):
            self._broken = self._broken or error
        elif error is not None:
            text = f"The batch failed inside: {type(error).__name__}: {error}"
            self._broken = KodeError("InternalError", text)

    async def _one(self, state: TaskState) -> None:
        """Run a task once, or wait for the run that an earlier process began."""
        worked = Worked()
        found = state.running
        attempt = state.attempt if found else state.attempt + 1
        job = self.folder.job(state.task, attempt, self.record)
        try:
            if not found:
                found = (job.folder / RUN_FILE).exists()
                self._claim(state, job)
            if found:
                await _until_let_go(job.folder)
            else:
                worked = await self.engine.run(job)
        except asyncio.CancelledError:
            self._close(state, read_outcome(job, worked), stopped=True)
            raise
        self._close(state, read_outcome(job, worked))

    def _claim(self, state: TaskState, job: Job) -> None:
        self.folder.lay_out(job)
        attempt = int(job.folder.name)
        self.folder.log.add(Claimed(at=self.clock.timestamp(), id=state.task.id, attempt=attempt))
        self.reported(state)

    def _close(self, state: TaskState, outcome: Outcome, *, stopped: bool = False) -> None:
        """Record how a run ended. `stopped`: by the user, which is no strike."""
        alone = self._pace(state).ended(outcome.code)
        self._budget.add(outcome)
        at, name, attempt = self.clock.timestamp(), state.task.id, state.attempt
        if outcome.code in _REPEATED:
            counts = alone if outcome.code == "RateLimited" else not stopped
            if state.strikes + counts < self.record.attempts:
                cut = Cut(at=at, id=name, attempt=attempt, outcome=outcome, counts=counts)
                self.folder.log.add(cut)
                if not self.cancelled.is_set():
                    self._waiting.insert(0, state)
                self.reported(state)
                return
        self.folder.log.add(TaskEnded(at=at, id=name, attempt=attempt, outcome=outcome))
        self._failures += outcome.status != "completed"
        self.reported(state)


def try_again(folder: BatchFolder, clock: Clock) -> int:
    """Plan every task that ended without completing once more; return how many there are."""
    states = folder.log.tasks.values()
    failed = [one.task.id for one in states if one.outcome and one.outcome.status != "completed"]
    for name in failed:
        folder.log.add(Again(at=clock.timestamp(), id=name))
    return len(failed)


async def _until_let_go(folder: Path) -> None:
    """Wait for the end of a run that outlived its batch: until then it locks its folder."""
    while folder.exists() and await asyncio.to_thread(is_held, folder):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)


def read_outcome(job: Job, worked: Worked) -> Outcome:
    """Return the outcome of a run from its records: one small file, and two folders' names."""
    try:
        record = read_run(job.folder)
    except KodeError as error:
        said = _WHAT.sub(" ", worked.said or error.message).strip()[-_MESSAGE_CHARS:]
        return Outcome(status="failed", code="RunDied", message=said, worker=worked.worker)
    over = record.status in FINAL_STATES
    error = record.error
    patch = job.folder / _DIFF
    return Outcome(
        status=record.status if over else "failed",
        governance=record.governance,
        code=error.code if error else "" if over else "RunDied",
        message=error.message[:_MESSAGE_CHARS] if error else "",
        model=record.model,
        worker=worked.worker,
        started_at=record.started_at or record.created_at,
        seconds=_seconds(record),
        usage=record.usage if record.usage.total_tokens else None,
        costs=record.costs,
        cost_usd=record.cost_usd,
        patch_bytes=patch.stat().st_size if patch.is_file() else 0,
        delivered=_delivered(job.folder),
    )


def _delivered(folder: Path) -> tuple[str, ...]:
    """Return the names of the entries of `deliverables`, to which a report links."""
    zone = folder / "deliverables"
    return tuple(sorted(one.name for one in zone.iterdir())) if zone.is_dir() else ()


def _seconds(record: RunRecord) -> float:
    begin, end = record.started_at or record.created_at, record.completed_at or record.updated_at
    took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return round(max(0.0, took.total_seconds()), 3)
