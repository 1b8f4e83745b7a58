"""Serves runs that an editor asks for: `kode/run/start`, `get` and `cancel`."""

import asyncio
from pathlib import Path

from msgspec import convert

from kode_sidecar.core.domain.run import RunEvent
from kode_sidecar.core.protocol.run import (
    RunCancelParams,
    RunCancelResult,
    RunEventView,
    RunGetParams,
    RunGetResult,
    RunStartParams,
    RunStartResult,
    RunView,
)
from kode_sidecar.errors import KodeError, invalid_at
from kode_sidecar.infrastructure.records.run_records import RUNS_FOLDER, read_events, read_run
from kode_sidecar.jobs.run.contracts import RunIds, RunOptions, RunServices, is_plain_id
from kode_sidecar.jobs.run.run_config import Overrides
from kode_sidecar.jobs.run.runner import HeadlessRun

MAX_EVENTS = 1_000
END_SECONDS = 1.0
"""How long runs get to record their cancellation when the editor exits."""


class WireRuns:
    """The runs of this process. They run beside the conversations, and end with the process."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._running: dict[asyncio.Task[object], HeadlessRun] = {}

    async def start(self, params: RunStartParams) -> RunStartResult:
        """Begin a run. Raises KodeError `InvalidParams`, `ReadOnly`, `Storage`."""
        config = _absolute(params.config, "$.config")
        workspace = (
            None if params.workspace is None else str(_absolute(params.workspace, "$.workspace"))
        )
        options = RunOptions(
            config=config,
            prompt=params.prompt,
            ids=RunIds(params.session_id, params.task_id, params.run_id),
            overrides=Overrides(
                stream=params.stream,
                max_steps=params.max_steps,
                timeout_seconds=params.timeout_seconds,
                model=params.model,
                workspace=workspace,
            ),
            dry_run=params.dry_run,
        )
        run = await asyncio.to_thread(HeadlessRun, options, self._services)
        task = asyncio.create_task(self._to_end(run))
        self._running[task] = run
        task.add_done_callback(lambda done: self._running.pop(done, None))
        return convert(run.record, RunStartResult, from_attributes=True)

    async def get(self, params: RunGetParams) -> RunGetResult:
        """Return the record and events of a run, also of an earlier process.

        Raises KodeError `RunNotFound`, `Storage`.
        """
        if not is_plain_id(params.run_id):
            raise KodeError("RunNotFound", "There is no such run: that is not the id of one.")
        folder = self._services.storage_root / RUNS_FOLDER / params.run_id
        return await asyncio.to_thread(_read, folder, params)

    async def cancel(self, params: RunCancelParams) -> RunCancelResult:
        """Cancel a run of this process; `get` shows when it has ended.

        Raises KodeError `RunNotFound`, `Storage`.
        """
        for run in self._running.values():
            record = run.record
            if record.run_id == params.run_id and record.completed_at is None:
                run.cancelled.set()
                return RunCancelResult(cancelled=True)
        await self.get(RunGetParams(run_id=params.run_id))  # raises if there is no such run
        return RunCancelResult(cancelled=False)

    async def close(self) -> None:
        """Cancel the runs that are not done; their records say so."""
        for run in self._running.values():
            run.cancelled.set()
        if self._running:
            await asyncio.wait(self._running, timeout=END_SECONDS)

    async def _to_end(self, run: HeadlessRun) -> None:
        try:
            await run.run()
        except KodeError as error:
            self._services.report_bug(f"run {run.record.run_id}", error)


def _absolute(path: str, place: str) -> Path:
    found = Path(path)
    if not found.is_absolute():
        raise invalid_at(place, "this must be an absolute path.")
    return found


def _read(folder: Path, params: RunGetParams) -> RunGetResult:
    record = read_run(folder)
    events: list[RunEvent] = []
    if params.after_sequence is not None:
        after = params.after_sequence
        later = [event for event in read_events(folder) if event.sequence > after]
        events = later[: max(1, min(params.limit, MAX_EVENTS))]
    return RunGetResult(
        run=convert(record, RunView, from_attributes=True),
        events=convert(events, tuple[RunEventView, ...], from_attributes=True),
    )
