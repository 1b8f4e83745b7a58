"""Runs jobs on a Dask cluster: an existing one, or one made on this machine.

If the scheduler is lost, the running tasks are cut and the batch ends with an error, because no run
is possible until it is back. `resume` does the remaining tasks.
"""

import asyncio
from typing import Any

import dask.config
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.batch.batch_folder import BatchRecord
from kode_sidecar.jobs.batch.dask_worker import run_on_worker
from kode_sidecar.jobs.batch.engine import Job, Worked
from kode_sidecar.jobs.batch.run_archive import pack_job, unpack_run

LOCAL = "local"
_CONNECT_SECONDS = 30.0
_SETTINGS = {
    # Dask must not restart a run: the batch does that, and records it.
    "distributed.scheduler.allowed-failures": 0,
    # A run takes minutes and is a process of its own: moving it gains nothing.
    "distributed.scheduler.work-stealing": False,
    "distributed.admin.log-format": "%(message)s",
}


class DaskEngine:
    """`BatchEngine` on a Dask cluster whose workers have this program installed."""

    def __init__(self, record: BatchRecord) -> None:
        self._scheduler = record.scheduler
        self._archives = record.archives
        self._workers = record.jobs
        self._cluster: Any = None
        self._opening: asyncio.Task[Any] | None = None

    async def run(self, job: Job) -> Worked:
        """Run the job on any free worker."""
        client = await self._client()
        archive = await asyncio.to_thread(pack_job, job) if self._archives else None
        future = client.submit(run_on_worker, job, archive, key=job.run_id, pure=False)
        try:
            worked, made = await future
        except FutureCancelledError as error:
            raise KodeError("Network", f"The Dask scheduler was lost: {error}") from None
        except asyncio.CancelledError:
            await asyncio.shield(client.cancel([future], force=True))
            raise
        except KilledWorker as error:
            return Worked(said=f"The worker was lost: {error}")
        finally:
            future.release()
        if made is not None:
            await asyncio.to_thread(unpack_run, made, job.folder)
        return worked

    async def close(self) -> None:
        """Leave the cluster, and end it if we made it."""
        if self._opening is not None:
            if self._opening.done() and self._opening.exception() is None:
                await self._opening.result().close()
            self._opening.cancel()
        if self._cluster is not None:
            await self._cluster.close()

    async def _client(self) -> Any:
        """Return the shared client. Raises KodeError `Network`."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Any:
        dask.config.set(_SETTINGS)
        address: Any = self._scheduler
        try:
            if self._scheduler == LOCAL:
                made: Any = LocalCluster  # its types do not allow a cluster without a dashboard
                address = self._cluster = await made(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    asynchronous=True,
                )
            return await Client(address, asynchronous=True, timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            text = f"There is no Dask scheduler at {self._scheduler}: {error}"
            raise KodeError("Network", text) from None
