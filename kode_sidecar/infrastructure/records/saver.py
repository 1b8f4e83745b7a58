"""Saves files on threads that wait for the disk, so that the event loop never does.

"Saved" in the protocol means: a request to `Saver.save` was answered.
"""

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from kode_sidecar.errors import KodeError

Job = Callable[[], None]

_PAUSE_SECONDS = 0.1


class Syncable(Protocol):
    """A file with writes that are not fsynced yet."""

    def sync(self) -> None:
        """Make everything written so far survive a power cut. Blocks; raises KodeError."""
        ...


class Saver(Executor):
    """Saves files on its own threads; requests that wait together share their fsyncs.

    The files of a request are synced in parallel, the first on one thread and the others on a
    second: the file system combines them into one commit, while two in a row take twice the time.
    A file that always has the same position in a request is never on both threads.
    """

    def __init__(self) -> None:
        self._jobs: dict[Hashable, Job] = {}
        self._changed = threading.Lock()
        self._doing_jobs = threading.Lock()
        self._closing = False
        self._first = _SyncThread("saver", self._do_jobs)
        self._beside = _SyncThread("saver-beside", lambda: None)

    def save(self, *files: Syncable) -> asyncio.Future[None]:
        """Sync `files`; the future is done when everything written to them before is saved.

        Call it on the event loop. The future fails with KodeError `Storage`.
        """
        return asyncio.get_running_loop().run_in_executor(self, self.sync, files)

    def sync(self, files: Sequence[Syncable]) -> None:
        """Sync `files` one after the other, then run the waiting jobs. Blocks."""
        failures = [_failure_of(file.sync) for file in files]
        self._do_jobs()
        if error := next(filter(None, failures), None):
            raise error

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue `sync` for the threads, which combine it with other waiting requests."""
        assert fn == self.sync
        assert not kwargs
        files: Sequence[Syncable] = args[0]
        first, beside = files[:1], files[1:]
        request = _Request(2 if beside else 1)
        with self._changed:
            if not self._closing:
                self._first.queue.put(_Part(first, request))
                if beside:
                    self._beside.queue.put(_Part(beside, request))
                return request.future
        text = "not saved: the sidecar is shutting down; start it again"
        request.future.set_exception(KodeError("Storage", text))
        return request.future

    def later(self, key: Hashable, job: Job) -> None:
        """Run `job` soon after the next save was answered; never blocks and never fails.

        It replaces a waiting job of the same key: only the newest matters. It does not wake the
        thread: a save follows soon anyway, and the request to the model must not be slowed down.
        """
        with self._changed:
            self._jobs[key] = job

    def close(self, timeout_s: float = 2.0) -> None:
        """Finish all waiting requests and jobs, and stop the threads."""
        with self._changed:
            self._closing = True
        for thread in (self._beside, self._first):
            thread.queue.put(None)
        for thread in (self._beside, self._first):
            thread.join(timeout_s)

    def finish(self, key: Hashable) -> None:
        """Run the waiting job of this key now; afterwards no job of it is running."""
        with self._doing_jobs:
            with self._changed:
                job = self._jobs.pop(key, None)
            if job is not None:
                _failure_of(job)

    def _do_jobs(self) -> None:
        """Run all waiting jobs. On the saver's thread."""
        with self._doing_jobs:
            with self._changed:
                jobs, self._jobs = list(self._jobs.values()), {}
            for job in jobs:
                _failure_of(job)


class _Request:
    """A running save. The part that ends last answers it: no thread waits for the other."""

    def __init__(self, parts: int) -> None:
        self.future: Future[None] = Future()
        self.future.set_running_or_notify_cancel()  # so a cancelled caller does not stop the save
        self._missing = parts
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def part_done(self, error: Exception | None) -> None:
        """Note that a part has ended; the last one answers. Safe from any thread."""
        with self._lock:
            self._error = self._error or error
            self._missing -= 1
            if self._missing:
                return
        if self._error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(self._error)


class _Part(NamedTuple):
    files: Sequence[Syncable]
    request: _Request


class _SyncThread(threading.Thread):
    """Syncs the parts in `queue`; None ends the thread after all parts before it.

    It calls `do_jobs` when no part has come for a moment.
    """

    def __init__(self, name: str, do_jobs: Job) -> None:
        super().__init__(name=name, daemon=True)
        self.queue: SimpleQueue[_Part | None] = SimpleQueue()
        self._do_jobs = do_jobs
        self.start()

    def run(self) -> None:
        """Sync the parts of the queue until None comes."""
        part = self.queue.get()
        while part is not None:
            part = self._sync([part, *self._waiting()])
        self._do_jobs()

    def _sync(self, parts: Sequence[_Part | None]) -> _Part | None:
        """Sync and answer all parts; return the next one from the queue."""
        failures: dict[Syncable, Exception | None] = {}
        for part in parts:
            if part is None:
                return None
            for file in part.files:
                if file not in failures:
                    failures[file] = _failure_of(file.sync)
            found = (failures[file] for file in part.files)
            part.request.part_done(next(filter(None, found), None))
        try:
            # Right after a save the event loop and the editor are busy: jobs can wait.
            return self.queue.get(timeout=_PAUSE_SECONDS)
        except Empty:
            self._do_jobs()
            return self.queue.get()

    def _waiting(self) -> Iterator[_Part | None]:
        with suppress(Empty):
            while True:
                yield self.queue.get_nowait()


def _failure_of(action: Job) -> Exception | None:
    try:
        action()
    except Exception as error:
        return error
    return None
