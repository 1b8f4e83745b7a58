"""The time limit and the cancellation of a run, the same for every engine."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from kode_sidecar.domain.error_info import failure
from kode_sidecar.headless_run.contracts import EngineRequest, EngineResult


async def within_limits(
    request: EngineRequest, work: Coroutine[Any, Any, EngineResult]
) -> EngineResult:
    """Do an engine's work until it is done, cancelled or out of time; then it is stopped.

    Raises what `work` raises: a failing disk, a bug.
    """
    task = asyncio.create_task(work)
    stop = asyncio.create_task(request.cancelled.wait())
    try:
        await asyncio.wait(
            {task, stop}, timeout=request.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if task.done():
            return task.result()
        return await _stopped(task, request)
    finally:
        for one in (task, stop):
            one.cancel()
        await asyncio.wait({task, stop})


async def _stopped(task: "asyncio.Task[EngineResult]", request: EngineRequest) -> EngineResult:
    """Stop what still runs and wait for it: nothing of it may act after the run's end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait({task})
        task.result()
    if request.cancelled.is_set():
        return EngineResult("cancelled", error=failure("Cancelled", "The run was cancelled."))
    text = (
        f"The run took longer than runtime.timeout_seconds, {request.timeout_seconds:g} s. "
        "Allow more, or ask for less."
    )
    return EngineResult("timed_out", error=failure("RunTimedOut", text))
