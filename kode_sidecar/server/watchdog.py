"""Ends the process in time, whatever else it is doing (W4)."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

if sys.platform == "win32":
    import ctypes

POLL_SECONDS = 2.0
ORDERLY_SECONDS = 1.5
FLUSH_SECONDS = 0.5
HARD_SECONDS = 2.5

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


class Watchdog:
    """Waits on a thread of its own for a reason to end, then sees that the end comes.

    `begin_close(done)` starts the orderly part on the loop and sets `done` when it is over; a
    loop that is blocked gets no more than ORDERLY_SECONDS. Then what `kill_with_us` was told
    is killed, `flush(seconds)` may finish, and the process is gone HARD_SECONDS after the
    reason at the latest. `exit_code()` is asked last.
    """

    def __init__(
        self,
        *,
        begin_close: Callable[[str, threading.Event], None],
        flush: Callable[[float], object],
        exit_code: Callable[[], int],
    ) -> None:
        self._begin_close = begin_close
        self._flush = flush
        self._exit_code = exit_code
        self._process_id: int | None = None
        self._killers: list[Callable[[], None]] = []
        # A SimpleQueue may be put to from a signal handler.
        self._reasons: SimpleQueue[str] = SimpleQueue()

    def start(self, process_id: int | None) -> None:
        """Watch; `process_id` is the editor's, from `initialize`."""
        self._process_id = process_id
        threading.Thread(target=self._run, name="kode-watchdog", daemon=True).start()

    def catch_signals(self) -> None:
        """End on the signals that ask a process to. On the main thread."""
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, lambda number, _: self.end(f"signal {number}"))

    def end(self, reason: str) -> None:
        """End the process. From any thread or signal handler; the first reason counts."""
        self._reasons.put(reason)

    def kill_with_us(self, kill: Callable[[], None]) -> None:
        """Call `kill()` before the process ends; it must not wait for the child."""
        self._killers.append(kill)

    def _run(self) -> None:
        reason = self._wait()
        threading.Thread(target=self._end_hard, name="kode-last-resort", daemon=True).start()
        done = threading.Event()
        self._begin_close(reason, done)
        done.wait(ORDERLY_SECONDS)
        for kill in self._killers:
            with suppress(Exception):
                kill()
        self._flush(FLUSH_SECONDS)
        os._exit(self._exit_code())

    def _end_hard(self) -> None:
        time.sleep(HARD_SECONDS)
        os._exit(self._exit_code())

    def _wait(self) -> str:
        editor = None if self._process_id is None else _Process(self._process_id)
        while True:
            try:
                return self._reasons.get(timeout=None if editor is None else POLL_SECONDS)
            except Empty:
                if editor is not None and not editor.alive():
                    return "the editor's process is gone"


class _Process:
    """Another process, watched by its id."""

    def __init__(self, process_id: int) -> None:
        self._id = process_id
        if sys.platform == "win32":
            # os.kill(id, 0) would send CTRL_C_EVENT there.
            synchronize = 0x00100000
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.OpenProcess.restype = ctypes.c_void_p
            self._kernel.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
            self._handle = self._kernel.OpenProcess(synchronize, False, process_id)
            self._denied = ctypes.get_last_error() == 5  # ERROR_ACCESS_DENIED

    def alive(self) -> bool:
        if sys.platform == "win32":
            if not self._handle:
                return self._denied
            wait_timeout = 0x102
            return self._kernel.WaitForSingleObject(self._handle, 0) == wait_timeout
        try:
            os.kill(self._id, 0)
        except ProcessLookupError:
            return False
        except OSError:  # it lives, but is not ours
            return True
        return True
