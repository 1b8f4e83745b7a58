"""Holds the state of a run: each step between its events, and the verdict at the end.

`run.json` is written before the event for a change, so that no record claims an end that a crash
could still prevent."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.core.domain.run import Governance, RunRecord, RunResult, RunState, StepName
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.run_records import RUNS_FOLDER, TRANSCRIPT_FILE, RunRecords
from kode_sidecar.jobs.run.contracts import RunOptions, RunServices, Watch, is_plain_id
from kode_sidecar.jobs.run.run_log import EventLog
from kode_sidecar.jobs.run.transcript import Transcript

_BLOCKING = ("config", "sandbox")
_BEFORE_THE_ENGINE: tuple[StepName, ...] = (
    "config",
    "ids",
    "sandbox",
    "records",
    "skills",
    "memory",
    "prompt",
    "tools",
)


@dataclass(frozen=True)
class RunVerdict:
    """The end of a run; `governance` is None for a cancelled one, which is not judged."""

    status: RunState
    governance: Governance | None
    error: ErrorInfo | None = None


class RunOver(Exception):
    """Raised in a step to end the run there, with this verdict."""

    def __init__(self, verdict: RunVerdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class RunCourse:
    """The state of one run and its records. The constructor makes the folder and `run.json`.

    Setting `cancelled` ends the run before its next step. Raises KodeError `ReadOnly` if the folder
    already holds a run, `Storage`.
    """

    def __init__(self, options: RunOptions, services: RunServices, watch: Watch) -> None:
        self._services = services
        self.cancelled = asyncio.Event()
        self.record = _first_record(options, services)
        self.records = RunRecords(Path(self.record.sandbox_root))
        self.log = EventLog(
            self.records,
            lambda: self.record,
            services.clock,
            services.redaction,
            watch,
            self.cancelled.set,
        )
        self.transcript = Transcript(
            lambda text: self.records.append_text(TRANSCRIPT_FILE, text), self.log.text
        )
        self.records.write(self.record, durable=True)

    @property
    def result(self) -> RunResult:
        """The result of the run so far."""
        return msgspec.convert(self.record, RunResult, from_attributes=True)

    @asynccontextmanager
    async def step(self, name: StepName) -> AsyncGenerator[None, None]:
        """Run the body as a step between its events. Raises `RunOver` if it ends the run."""
        if self.cancelled.is_set():
            raise RunOver(cancelled_verdict())
        self.change(step=name)
        await self.save(durable=False)
        try:
            started = self.log.event("step.started", f"Step {name}", correlation_id=name)
            yield
            self.log.event(
                "step.completed",
                f"Step {name} done",
                correlation_id=name,
                parent_event_id=started,
            )
        except RunOver:
            raise
        except KodeError as error:
            raise self.failed(name, error_info(error)) from None
        except Exception as error:
            self._services.report_bug(f"run {self.record.run_id}, step {name}", error)
            text = f"The sidecar failed inside the step {name}; the log has the details."
            raise self.failed(name, failure("InternalError", text)) from None

    def failed(self, name: StepName, error: ErrorInfo) -> RunOver:
        """Record that a step failed; return the exception to raise in it."""
        # If the disk fails, run.json may be all that can still be written.
        with suppress(KodeError):
            self.log.error(name, error, correlation_id=name)
            self.log.event(
                "step.failed",
                f"Step {name} failed: {error.message}",
                severity="error",
                data={"code": error.code},
                correlation_id=name,
            )
        return RunOver(on_failed_step(name, error))

    async def end(self, verdict: RunVerdict) -> RunResult:
        """Record the verdict: `run.json` first, then the events and the transcript."""
        error = None if verdict.error is None else self.log.clean_error(verdict.error)
        self.change(
            status=verdict.status,
            governance=verdict.governance,
            error=error,
            failure_reason=None if error is None else error.code,
            completed_at=self._services.clock.timestamp(),
        )
        await self.save()
        result = self.result
        with suppress(KodeError):
            decided = self.log.event(
                "governance.decided",
                f"Judged as {verdict.governance or 'nothing: it was not to be judged'}",
                actor="governance",
                severity="info" if verdict.governance in ("passed", None) else "warning",
                data={"governance": verdict.governance},
            )
            self.log.event(
                f"run.{verdict.status}",
                f"Run {self.record.run_id}: {verdict.status}",
                severity="info" if result.exit_code == 0 else "error",
                data={"exit_code": result.exit_code},
                parent_event_id=decided,
            )
            self.transcript.outcome(self.record, result)
        return result

    def change(self, **fields: Any) -> None:
        now = self._services.clock.timestamp()
        self.record = replace(self.record, updated_at=now, **fields)

    async def save(self, *, durable: bool = True) -> None:
        """Write `run.json`; `durable` survives a power cut, and is written off the event loop."""
        if durable:
            await asyncio.to_thread(self.records.write, self.record, durable=True)
        else:
            self.records.write(self.record, durable=False)


def cancelled_verdict() -> RunVerdict:
    """Return the verdict of a run that was cancelled."""
    return RunVerdict("cancelled", None, failure("Cancelled", "The run was cancelled."))


def _first_record(options: RunOptions, services: RunServices) -> RunRecord:
    """Return the record as known before the first step."""
    now, given = services.clock.timestamp(), options.ids

    def usable(text: str) -> str:
        # An unsafe id names nothing; the step `ids` reports it.
        return text if is_plain_id(text) else ""

    run_id = usable(given.run_id) or _made_run_id(now, services.new_id("session"))
    folder = options.sandbox or services.storage_root / RUNS_FOLDER / run_id
    return RunRecord(
        session_id=usable(given.session_id) or services.new_id("session"),
        task_id=usable(given.task_id) or services.new_id("session"),
        run_id=run_id,
        config_path=str(options.config),
        overrides=msgspec.to_builtins(options.overrides),
        sandbox_root=os.path.realpath(folder),
        created_at=now,
        updated_at=now,
        dry_run=options.dry_run,
        pid=os.getpid(),
    )


def on_failed_step(step: StepName, error: ErrorInfo) -> RunVerdict:
    """Judge a failed step: before the engine, a bad configuration or path means blocked."""
    blocked = step in _BEFORE_THE_ENGINE and error.category in _BLOCKING
    return RunVerdict("failed", "blocked" if blocked else "failed", error)


def on_deliverables(missing: ErrorInfo | None) -> RunVerdict:
    """Judge the deliverables, after the engine is done."""
    if missing is not None:
        return RunVerdict("incomplete", "incomplete", missing)
    return RunVerdict("completed", "passed")


def _made_run_id(timestamp: str, random: str) -> str:
    """Return a run id that sorts by time, to the millisecond: `20260102-030405678-1a2b3c4d`."""
    digits = re.sub(r"\D", "", timestamp)[:17]
    return f"{digits[:8]}-{digits[8:]}-{random[:8]}"
