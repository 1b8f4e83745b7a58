"""The threads that wait for the disk, so that the event loop never does.

"Saved" in the protocol means: a request to `Saver.save` was answered.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from kode_sidecar.errors import KodeError

Job = Callable[[], None]

_PAUSE_SECONDS = 0.1


class Syncable(Protocol):
    """Something with bytes on disk that are not saved yet."""

    def sync(self) -> None:
        """Make everything written so far survive a power cut. Blocks; raises KodeError."""
        ...


@dataclass(frozen=True)
class _Request:
    files: tuple[Syncable, ...]
    future: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop

    def answer(self, error: Exception | None) -> None:
        # A loop that is closed has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._resolve, error)

    def _resolve(self, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class Saver:
    """Saves files on its own thread; requests that wait together share their fsyncs.

    The files of a request are synced side by side: a file system makes one commit of that, and
    two in a row cost twice the time. So none is known to be saved before all are.
    """

    def __init__(self) -> None:
        self._beside: SimpleQueue[Sequence[Syncable] | None] = SimpleQueue()
        self._synced_beside: SimpleQueue[dict[Syncable, Exception | None]] = SimpleQueue()
        threading.Thread(target=self._sync_beside, name="saver-beside", daemon=True).start()
        self._changed = threading.Condition()
        self._requests: list[_Request] = []
        self._jobs: dict[Hashable, Job] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)
        self._thread.start()

    def save(self, *files: Syncable) -> asyncio.Future[None]:
        """Sync `files`; done when all that was written to them before is saved.

        Call it on the event loop. The future fails with KodeError `Storage`.
        """
        loop = asyncio.get_running_loop()
        request = _Request(files, loop.create_future(), loop)
        with self._changed:
            if not self._closing:
                self._requests.append(request)
                self._changed.notify()
                return request.future
        text = "not saved: the sidecar is shutting down; start it again"
        request.future.set_exception(KodeError("Storage", text))
        return request.future

    def later(self, key: Hashable, job: Job) -> None:
        """Run `job` soon after the next save was answered; never waits and never fails.

        A job that waits under the same key is replaced: only the newest matters. It does not wake
        the thread: what is appended is saved soon anyway, and now the model is being asked.
        """
        with self._changed:
            self._jobs[key] = job

    def close(self, timeout_s: float = 2.0) -> None:
        """Finish what waits and stop the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)
        self._beside.put(None)

    def _run(self) -> None:
        while not self._done():
            requests, jobs = self._next()
            self._answer(requests)
            for job in jobs:
                _failure_of(job)

    def _answer(self, requests: Sequence["_Request"]) -> None:
        files = list(dict.fromkeys(file for request in requests for file in request.files))
        beside = files[1::2]
        if beside:
            self._beside.put(beside)
        failures = _sync(files[::2])
        if beside:
            failures |= self._synced_beside.get()
        for request in requests:
            errors = (failures[file] for file in request.files)
            request.answer(next((error for error in errors if error is not None), None))

    def _sync_beside(self) -> None:
        while (files := self._beside.get()) is not None:
            self._synced_beside.put(_sync(files))

    def _done(self) -> bool:
        with self._changed:
            return self._closing and not (self._requests or self._jobs)

    def _next(self) -> tuple[list["_Request"], list[Job]]:
        """Requests as soon as there are any; jobs once none came for a moment."""
        with self._changed:
            while not (self._requests or self._closing):
                # Right after a save the loop answers and the editor asks on: jobs can wait.
                came = self._changed.wait(_PAUSE_SECONDS if self._jobs else None)
                if not came and self._jobs:
                    break
            requests, self._requests = self._requests, []
            jobs: list[Job] = []
            if not requests:
                jobs, self._jobs = list(self._jobs.values()), {}
            return requests, jobs


def _sync(files: Sequence[Syncable]) -> dict[Syncable, Exception | None]:
    return {file: _failure_of(file.sync) for file in files}


def _failure_of(action: Job) -> Exception | None:
    try:
        action()
    except Exception as error:
        return error
    return None
