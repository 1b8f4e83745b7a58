"""A batch in one process: real files and records, an engine that a test scripts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.domain.run import RunRecord, RunState, run_error
from kode_sidecar.infrastructure.records.run_records import RUN_FILE, RunRecords
from kode_sidecar.jobs.batch import BatchFolder, BatchOptions, Dispatcher, open_batch, reopen_batch
from kode_sidecar.jobs.batch.engine import Job, Worked
from kode_sidecar.servers.boot.system import SystemClock

CONFIG = """\
kgent: {schema_version: 1}
profile: {id: tester, role: You test things.}
"""
NOW = "2026-01-02T03:04:05.000Z"

Do = Callable[[Job], Awaitable[None]]


def run_record(job: Job, status: RunState = "completed", **fields: Any) -> RunRecord:
    """What `run.json` of a run says."""
    return RunRecord(
        session_id=job.session_id,
        task_id=job.task.id,
        run_id=job.run_id,
        sandbox_root=str(job.folder),
        status=status,
        model=job.task.model,
        created_at=NOW,
        started_at=NOW,
        updated_at=NOW,
        completed_at=None if status == "running" else NOW,
        **fields,
    )


def put_record(job: Job, status: RunState = "completed", **fields: Any) -> None:
    """Write the records of a run that is over."""
    job.folder.mkdir(parents=True)
    data = msgspec.json.encode(run_record(job, status, **fields))
    (job.folder / RUN_FILE).write_bytes(data)


def cost(amount: float, currency: str = "CNY") -> dict[str, Any]:
    """The fields of a run that cost so much."""
    used = Usage(input_tokens=10, output_tokens=5, total_tokens=15)
    return {"costs": (Cost(amount, currency),), "usage": used}


def refused(code: str) -> dict[str, Any]:
    """The fields of a run that failed with this error."""
    error = run_error(failure(code, f"{code} it was."))
    return {"error": error, "failure_reason": code, "governance": "failed"}


@dataclass
class ScriptedEngine:
    """`Engine` that writes the records a test asks for. `begun` are the ids of its runs."""

    do: Do | None = None
    begun: list[str] = field(default_factory=list[str])
    most: int = 0
    now: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self, job: Job) -> Worked:
        """Run it, as the test says."""
        async with self.changed:
            self.begun.append(job.run_id)
            self.changed.notify_all()
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.do is None:
                put_record(job)
            else:
                await self.do(job)
        finally:
            self.now -= 1
        return Worked()

    async def close(self) -> None:
        """Nothing is left."""


class BatchWorld:
    """A folder with a configuration and tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        (folder / "job.yaml").write_text(CONFIG, encoding="utf-8")
        self.clock = SystemClock()

    def write_tasks(self, *tasks: dict[str, Any]) -> Path:
        """The file of tasks."""
        path = self.folder / "tasks.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in tasks))
        return path

    def options(self, **more: Any) -> BatchOptions:
        """The options of a batch over that file."""
        base: dict[str, Any] = {"tasks": self.folder / "tasks.jsonl", "prompt": "Do it."}
        return BatchOptions(self.folder / "job.yaml", out=self.out, **{**base, **more})

    def open(self, **more: Any) -> BatchFolder:
        """A new batch, or the same with other tasks."""
        return open_batch(self.options(**more), self.clock)

    def reopen(self, **changes: Any) -> BatchFolder:
        """The batch, to go on with it."""
        return reopen_batch(self.out, self.clock, **changes)

    async def work(self, folder: BatchFolder, engine: ScriptedEngine) -> str:
        """One pass over it, as the command does it."""
        try:
            made = Dispatcher(folder, folder.record, engine, self.clock, lambda _: None)
            async with asyncio.timeout(60):
                stopped = await made.run()
            folder.note_stopped(stopped)
            return stopped
        finally:
            folder.close()


def held_run(job: Job, **fields: Any) -> RunRecords:
    """Begin the records of a run, which is alive until they are closed."""
    records = RunRecords(job.folder)
    records.write(run_record(job, "running", **fields), durable=False)
    return records
