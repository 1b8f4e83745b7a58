"""Ends the process in time, whatever it is doing (W4)."""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

if sys.platform == "win32":
    import ctypes

POLL_SECONDS = 2.0
ORDERLY_SECONDS = 1.5
FLUSH_SECONDS = 0.5
HARD_SECONDS = 2.5

# A Windows console sends these to all processes that share it, so they are not meant for us: there
# only the editor ends us, by closing the pipe.
_CONSOLE = ("SIGINT", "SIGBREAK") if sys.platform == "win32" else ()
_SIGNALS = () if sys.platform == "win32" else ("SIGTERM", "SIGINT", "SIGHUP")


class Watchdog:
    """Waits on a thread of its own for a reason to end, then makes sure that the process ends.

    `begin_close(reason, done)` starts the orderly part on the loop and sets `done` at its end; a
    blocked loop gets at most ORDERLY_SECONDS. Then the functions given to `kill_with_us` run,
    `flush(seconds)` may finish, and the process is gone at most HARD_SECONDS after the reason.
    `orphaned()` is called if the process that unpacked this one is gone; `exit_code()` comes last.
    """

    def __init__(
        self,
        *,
        begin_close: Callable[[str, threading.Event], None],
        flush: Callable[[float], object],
        exit_code: Callable[[], int],
        orphaned: Callable[[], None],
    ) -> None:
        self._begin_close = begin_close
        self._flush = flush
        self._exit_code = exit_code
        self._orphaned = orphaned
        self._process_id: int | None = None
        self._unpacker: _Parent | None = None
        self._killers: list[Callable[[], None]] = []
        self._reasons: deque[str] = deque()
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)

    def start(self, process_id: int | None, unpacker_id: int | None) -> None:
        """Start watching; `process_id` is the editor's, from `initialize`.

        `unpacker_id` is the process that unpacked this one, if any; it is watched too.
        """
        self._process_id = process_id
        self._unpacker = None if unpacker_id is None else _Parent(unpacker_id)
        threading.Thread(target=self._run, name="kode-watchdog", daemon=True).start()

    def catch_signals(self) -> None:
        """End the process on termination signals. Call on the main thread, with the loop running.

        Events of a Windows console are ignored.

        Python runs handlers on the main thread, which may be blocked. So the watchdog reads the
        wake-up descriptor, which the C handler writes.
        """
        signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        for name in _SIGNALS:
            signal.signal(getattr(signal, name), _leave_it_to_the_watchdog)
        for name in _CONSOLE:
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def end(self, reason: str) -> None:
        """End the process. Call it from any thread; the first reason counts."""
        self._reasons.append(reason)
        with suppress(OSError):  # the buffer is full: the watchdog will wake up anyway
            self._ringer.send(b"\0")

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
        if self._unpacker is not None and not self._unpacker.alive():
            self._orphaned()
        os._exit(self._exit_code())

    def _end_hard(self) -> None:
        time.sleep(HARD_SECONDS)
        os._exit(self._exit_code())

    def _wait(self) -> str:
        editor = None if self._process_id is None else _Process(self._process_id)
        poll = None if editor is None and self._unpacker is None else POLL_SECONDS
        bells = [self._bell]
        if self._unpacker is not None:
            bells += self._unpacker.bell()
        while True:
            ringing, _, _ = select.select(bells, [], [], poll)
            if self._bell in ringing:
                rung = self._bell.recv(1)[0]
                return f"signal {rung}" if rung else self._reasons[0]
            if editor is not None and not editor.alive():
                return "the editor's process is gone"
            if self._unpacker is not None and not self._unpacker.alive():
                return "the process that unpacked us is gone"


def _leave_it_to_the_watchdog(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor is written only if a handler exists."""


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
        except OSError:  # it is alive, but belongs to another user
            return True
        return True


class _Parent:
    """The process that started this one."""

    def __init__(self, process_id: int) -> None:
        self._id = process_id
        self._process = _Process(process_id)

    def bell(self) -> list[int]:
        """Return a descriptor that becomes readable when the process ends, if there is one."""
        if sys.platform == "linux" and self.alive():
            with suppress(OSError):  # before Linux 5.3
                return [os.pidfd_open(self._id)]
        return []

    def alive(self) -> bool:
        if sys.platform == "win32":  # the parent id never changes here, even if reused
            return self._process.alive()
        return os.getppid() == self._id
