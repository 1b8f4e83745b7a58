"""The folder of a batch: `batch.json`, `tasks.jsonl`, and a folder for each task under `runs`."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kode_sidecar.core.domain.message import Cost
from kode_sidecar.core.kernel.contracts import Clock
from kode_sidecar.core.text.shown_text import fix_surrogates
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import not_made, not_read, not_saved, replace_file
from kode_sidecar.infrastructure.records.json_record import DECODE_ERRORS, encode_json
from kode_sidecar.infrastructure.records.session_lock import SessionLock
from kode_sidecar.jobs.batch.engine import Job
from kode_sidecar.jobs.batch.task_log import Planned, Removed, TaskLog, TaskState
from kode_sidecar.jobs.batch.tasks import PlannedTask

BATCH_FILE = "batch.json"
RUNS_FOLDER = "runs"
PROMPT_FILE = "prompt.md"


class BatchRecord(Struct, frozen=True, kw_only=True):
    """`batch.json`: the options of a batch, so that `resume` needs only the folder.

    `attempts` is how often a task may be run if its runs are cut off, `scheduler` the address of a
    Dask scheduler, `local` for one on this machine, or empty for no Dask; `archives` says that its
    workers do not see this machine's folders. `stopped` says why the last process ended before
    all tasks were done.
    """

    schema_version: int = 1
    batch_id: str
    created_at: str
    config_path: str
    env_file: str | None = None
    jobs: int = 2
    budget: Cost | None = None
    max_failures: int | None = None
    attempts: int = 3
    scheduler: str = ""
    archives: bool = False
    stopped: str = ""


class BatchFolder:
    """The folder of a batch, locked by this process.

    Raises KodeError `ReadOnly` if another process holds it, `Storage`.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        try:
            make_private(path / RUNS_FOLDER)
        except OSError as error:
            raise not_made(path, error) from None
        try:
            self._lock = SessionLock(path)
        except KodeError as error:
            raise _busy(path) if error.code == "ReadOnly" else error from None
        try:
            self.log = TaskLog(path)
        except KodeError:
            self._lock.release()
            raise

    @property
    def record(self) -> BatchRecord:
        """The content of `batch.json`. Raises KodeError `RunNotFound`, `Storage`."""
        return read_batch(self.path)

    def write(self, record: BatchRecord) -> None:
        """Replace `batch.json`. Blocks; raises KodeError `Storage`."""
        data = msgspec.json.format(encode_json(record), indent=2) + b"\n"
        replace_file(self.path / BATCH_FILE, data, durable=True)

    def note_stopped(self, reason: str) -> None:
        """Record in `batch.json` why the process ended; empty if all tasks are done."""
        record = self.record
        if record.stopped != reason:
            self.write(replace(record, stopped=reason))

    def plan(self, tasks: Iterable[PlannedTask]) -> None:
        """Update the plan: new and changed tasks will be run, missing ones are removed.

        Raises KodeError `ReadOnly` for a changed or removed task whose run is not yet closed, and
        what `tasks` raises; then the plan is unchanged.
        """
        wanted = {task.id: task for task in tasks}
        known = self.log.tasks
        at = self._clock.timestamp()
        changed = [task for name, task in wanted.items() if _differs(known.get(name), task)]
        gone = [name for name in known if name not in wanted]
        for name in (*gone, *(task.id for task in changed)):
            if name in known and known[name].running:
                raise KodeError(
                    "ReadOnly",
                    f"The task {name} was being done when the batch ended. Resume the batch before "
                    "you change its tasks.",
                )
        for name in gone:
            self.log.add(Removed(at=at, id=name))
        for task in changed:
            self.log.add(Planned(at=at, task=task))
        self.log.sync()

    def job(self, task: PlannedTask, attempt: int, record: BatchRecord) -> Job:
        """Return the run number `attempt` of a task."""
        below = self.path / RUNS_FOLDER / task.id
        return Job(
            task=task,
            config=Path(record.config_path),
            prompt_file=below / PROMPT_FILE,
            folder=below / str(attempt),
            session_id=record.batch_id,
            run_id=f"{record.batch_id}-{task.id}-{attempt}",
            env_file=record.env_file,
        )

    def lay_out(self, job: Job) -> None:
        """Write the prompt file for the run. Blocks; raises KodeError `Storage`."""
        try:
            with suppress(FileExistsError):
                job.prompt_file.parent.mkdir(mode=0o700)
            job.prompt_file.write_bytes(fix_surrogates(job.task.prompt).encode())
        except OSError as error:
            raise not_saved(job.task.id, error) from None

    def close(self) -> None:
        """Release the folder."""
        self.log.close()
        self._lock.release()


def read_batch(folder: Path) -> BatchRecord:
    """Return `batch.json`. Raises KodeError `RunNotFound` if there is none, `Storage`."""
    try:
        return msgspec.json.decode((folder / BATCH_FILE).read_bytes(), type=BatchRecord)
    except (FileNotFoundError, NotADirectoryError):
        raise KodeError("RunNotFound", f"There is no batch in {folder}.") from None
    except OSError as error:
        raise not_read(BATCH_FILE, error) from None
    except DECODE_ERRORS as error:
        raise KodeError("Storage", f"{BATCH_FILE} is damaged: {error}") from None


def _differs(known: TaskState | None, task: PlannedTask) -> bool:
    return known is None or known.task != task


def _busy(path: Path) -> KodeError:
    return KodeError(
        "ReadOnly", f"Another process is at work on the batch in {path}; wait for it, or end it."
    )
