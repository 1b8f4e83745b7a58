"""Runs one governed run on a Dask worker, as a process that ends with the worker.

The worker needs only this program and its own keys.
"""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import get_worker
from msgspec import structs

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch.engine import Job, Worked, run_process
from kode_sidecar.jobs.batch.run_archive import (
    CONFIG,
    PROMPT,
    WORKSPACE,
    pack_run,
    unpack_job,
)

_LOOK_SECONDS = 0.25
# Whoever imports this module has the program. -P: never load it from the working directory.
_PROGRAM = (sys.executable, "-P", "-m", "kode_sidecar")


async def run_on_worker(job: Job, archive: bytes | None) -> tuple[Worked, bytes | None]:
    """Run the job; end it if its task is no longer wanted or the worker closes.

    If no folder is shared, `archive` holds the files of the job, and the folder of the run is
    returned as another archive.
    """
    worker: Any = get_worker()
    name = f"{socket.gethostname()}:{os.getpid()}"
    if await _was_begun(worker, job.run_id):
        return Worked(name, "The worker that had this run was lost."), None
    running = asyncio.create_task(_run(job, archive))
    try:
        while not running.done() and _is_wanted(worker, job.run_id):
            await asyncio.wait({running}, timeout=_LOOK_SECONDS)
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running})
    said, made = running.result()
    return Worked(name, said), made


async def _was_begun(worker: Any, run_id: str) -> bool:
    """Return whether another worker had this run before, and mark it: it is not done twice."""
    keys = ["kode-sidecar", run_id]
    begun = await worker.scheduler.get_metadata(keys=keys, default=False)
    await worker.scheduler.set_metadata(keys=keys, value=True)
    return bool(begun)


def _is_wanted(worker: Any, key: str) -> bool:
    state = worker.state.tasks.get(key)
    return state is not None and state.state == "executing"


async def _run(job: Job, archive: bytes | None) -> tuple[str, bytes | None]:
    if archive is None:
        return await run_process(_PROGRAM, job), None
    place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kode-batch-"))
    try:
        return await _run_apart(job, archive, place)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


async def _run_apart(job: Job, archive: bytes, place: Path) -> tuple[str, bytes | None]:
    """Run the job of an archive in a folder of its own; return its output and another archive."""
    given, run = place / "job", place / "run"
    try:
        await asyncio.to_thread(unpack_job, archive, given)
    except KodeError as error:
        return error.message, None
    project = given / WORKSPACE
    workspace = str(project) if project.is_dir() else ""
    here = replace(
        job,
        task=structs.replace(job.task, workspace=workspace),
        config=given / CONFIG / job.config.name,
        prompt_file=given / PROMPT,
        folder=run,
    )
    said = await run_process(_PROGRAM, here)
    return said, await asyncio.to_thread(pack_run, run) if run.is_dir() else None
