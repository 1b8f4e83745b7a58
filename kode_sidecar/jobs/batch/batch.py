"""Starts a batch, resumes one, and chooses its engine."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kode_sidecar.core.domain.message import Cost
from kode_sidecar.core.kernel.contracts import Clock
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch.batch_folder import BatchFolder, BatchRecord, read_batch
from kode_sidecar.jobs.batch.begun_batches import BegunBatches
from kode_sidecar.jobs.batch.engine import BatchEngine, LocalEngine
from kode_sidecar.jobs.batch.tasks import PlannedTask, Planner, read_tasks


@dataclass(frozen=True)
class BatchOptions:
    """The options of a batch; fields that `BatchRecord` also has mean the same there.

    `tasks` is a JSONL file or a folder, `prompt` the prompt of tasks without one.
    """

    config: Path
    tasks: Path
    out: Path
    prompt: str = ""
    env_file: str | None = None
    jobs: int = 2
    budget: Cost | None = None
    max_failures: int | None = None
    attempts: int = 3
    scheduler: str = ""
    archives: bool = False


def plan_tasks(options: BatchOptions) -> list[PlannedTask]:
    """Return all tasks as they will be run. Raises KodeError `ConfigInvalid`."""
    planner = Planner(options.config, options.tasks, options.prompt)
    planned = [planner.plan(task) for task in read_tasks(options.tasks, options.prompt)]
    if not planned:
        raise KodeError("ConfigInvalid", f"There is no task in {options.tasks.name}.")
    return planned


def open_batch(
    options: BatchOptions, clock: Clock, begun: BegunBatches | None = None
) -> BatchFolder:
    """Plan the tasks and open the folder: a new batch, or one whose plan is updated.

    The plan becomes one of the user's `begun` batches. Raises KodeError `ConfigInvalid`,
    `ReadOnly`, `Storage`.
    """
    planned = plan_tasks(options)
    folder = BatchFolder(options.out, clock)
    try:
        try:
            known: BatchRecord | None = read_batch(options.out)
        except KodeError as error:
            if error.code != "RunNotFound":
                raise
            known = None
        folder.plan(planned)
        # Written last: a process killed before leaves no batch, so no partial plan is resumed.
        record = _record(options, known, clock)
        if begun is not None:
            begun.add(folder, record)
        folder.write(record)
    except BaseException:
        folder.close()
        raise
    return folder


def reopen_batch(
    out: Path,
    clock: Clock,
    begun: BegunBatches | None = None,
    *,
    trust: bool = False,
    **changes: object,
) -> BatchFolder:
    """Open the folder of a batch to resume it; `changes` replace its options.

    It must be one of the user's `begun` batches, unless the user chooses to `trust` it. Raises
    KodeError `RunNotFound`, `Denied`, `ReadOnly`, `Storage`.
    """
    record = read_batch(out)
    folder = BatchFolder(out, clock)
    try:
        if begun is not None and not trust:
            begun.check(folder)
        changed = {name: value for name, value in changes.items() if value is not None}
        record = replace(record, **changed)
        if begun is not None:
            begun.add(folder, record)
        if changed:
            folder.write(record)
    except BaseException:
        folder.close()
        raise
    return folder


def make_engine(record: BatchRecord, program: Sequence[str]) -> BatchEngine:
    """Make the engine of a batch; `program` is the command line of this program.

    Raises KodeError `ConfigInvalid` if the extra is not installed.
    """
    if not record.scheduler:
        return LocalEngine(program)
    try:
        # Imported late: an optional extra that takes a second to load.
        from kode_sidecar.jobs.batch.dask_engine import DaskEngine  # noqa: PLC0415
    except ImportError as error:
        raise KodeError(
            "ConfigInvalid",
            f"Dask cannot be loaded ({error.name or error} is missing): install it with "
            'pip install "kode-sidecar[dask]", or leave out --scheduler and --dask. The program '
            "that is one file or folder does not carry it.",
        ) from None
    return DaskEngine(record)


def _record(options: BatchOptions, known: BatchRecord | None, clock: Clock) -> BatchRecord:
    now = clock.timestamp()
    digits = "".join(one for one in now if one.isdigit())[:14]
    made = f"{digits[:8]}-{digits[8:]}-{secrets.token_hex(2)}"
    return BatchRecord(
        batch_id=known.batch_id if known else made,
        created_at=known.created_at if known else now,
        config_path=os.path.abspath(options.config),
        env_file=None if options.env_file is None else os.path.abspath(options.env_file),
        jobs=options.jobs,
        budget=options.budget,
        max_failures=options.max_failures,
        attempts=options.attempts,
        scheduler=options.scheduler,
        archives=options.archives,
    )
