"""What a Dask worker does for us: one governed run, as a process that ends with the worker.

The worker needs this program, its own keys, and nothing else of ours.
"""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import get_worker

from kode_sidecar.batch.contracts import Job
from kode_sidecar.batch.run_archive import (
    CONFIG,
    PROMPT,
    WORKSPACE,
    pack_run,
    unpack_job,
)
from kode_sidecar.batch.run_process import run_process
from kode_sidecar.errors import KodeError

_LOOK_SECONDS = 0.25
# What imports this module has the program; -P: a working directory is no place to load it from.
_PROGRAM = (sys.executable, "-P", "-m", "kode_sidecar")


@dataclass(frozen=True)
class Parcel:
    """A job on its way. `archive` holds its files where no folder is shared."""

    job: Job
    archive: bytes | None = None


@dataclass(frozen=True)
class Returned:
    """What comes back. `archive` holds the folder of the run where no folder is shared."""

    worker: str
    said: str
    archive: bytes | None = None


async def run_on_worker(parcel: Parcel) -> Returned:
    """Run the job; end it when nobody wants it any more, or the worker closes."""
    worker: Any = get_worker()
    name = f"{socket.gethostname()}:{os.getpid()}"
    if await _was_begun(worker, parcel.job.run_id):
        return Returned(name, "The worker that had this run was lost.")
    running = asyncio.create_task(_run(parcel, name))
    try:
        while not running.done() and _is_wanted(worker, parcel.job.run_id):
            await asyncio.wait({running}, timeout=_LOOK_SECONDS)
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running})
    return running.result()


async def _was_begun(worker: Any, run_id: str) -> bool:
    """Return whether the scheduler gave this run to somebody before: it is not done twice."""
    keys = ["kode-sidecar", run_id]
    begun = await worker.scheduler.get_metadata(keys=keys, default=False)
    await worker.scheduler.set_metadata(keys=keys, value=True)
    return bool(begun)


def _is_wanted(worker: Any, key: str) -> bool:
    state = worker.state.tasks.get(key)
    return state is not None and state.state == "executing"


async def _run(parcel: Parcel, name: str) -> Returned:
    job = parcel.job
    if parcel.archive is None:
        words = job.command(
            config=job.config,
            prompt=job.prompt_file,
            folder=job.folder,
            workspace=job.task.workspace,
        )
        return Returned(name, await run_process(_PROGRAM, words, job.task.timeout, os.environ))
    place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kode-batch-"))
    try:
        return await _run_apart(job, parcel.archive, place, name)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


async def _run_apart(job: Job, archive: bytes, place: Path, name: str) -> Returned:
    """Run it in a folder of its own, from an archive to an archive."""
    given, run = place / "job", place / "run"
    try:
        await asyncio.to_thread(unpack_job, archive, given)
    except KodeError as error:
        return Returned(name, error.message)
    project = given / WORKSPACE
    words = job.command(
        config=given / CONFIG / job.config.name,
        prompt=given / PROMPT,
        folder=run,
        workspace=str(project) if project.is_dir() else "",
    )
    said = await run_process(_PROGRAM, words, job.task.timeout, os.environ)
    return Returned(name, said, await asyncio.to_thread(pack_run, run) if run.is_dir() else None)
