"""A process with all its descendants, as one thing that can be ended.

POSIX: a session of its own, killed as a group; on Linux also those that left the group, known by a
variable in their environment. Windows: a job object, from which nothing can break away.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kode_sidecar.commands.windows_job import WindowsJob

MARK = "KODE_COMMAND_ID"
"""The variable that tells a command's processes from all others."""
_SWEEPS = 20
_CREATE_SUSPENDED = 0x00000004
_CREATE_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)

CREATION_FLAGS = _CREATE_SUSPENDED | _CREATE_NO_WINDOW if sys.platform == "win32" else 0
NEW_SESSION = sys.platform != "win32"
"""How a process must be started to become the root of a tree."""


class ProcessTree:
    """The tree below a process that was just started with the two above, and `mark` as `MARK`.

    On Windows the process starts to run only now. Raises KodeError `ToolFailed` where the system
    gives no job for it; it is killed then.
    """

    def __init__(self, process_id: int, mark: str) -> None:
        self._process_id = process_id
        self._mark = f"{MARK}={mark}".encode()
        if sys.platform == "win32":
            self._job = WindowsJob(process_id)

    def kill(self) -> None:
        """End whatever of it still runs. It may be called again."""
        if sys.platform == "win32":
            self._job.kill()
        else:
            _kill(os.killpg, self._process_id)
            self._kill_strays()

    def _kill_strays(self) -> None:
        """Again and again, because a process may start another one while it is looked for."""
        for _ in range(_SWEEPS):
            strays = [pid for pid in _running() if self._mark in _environment(pid)]
            if not strays:
                return
            for process_id in strays:
                _kill(os.kill, process_id)


def _kill(send: Callable[[int, int], None], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        send(number, 9)  # SIGKILL, which Windows does not know


def _running() -> list[int]:
    """All process ids of the system, on Linux; elsewhere none."""
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _environment(process_id: int) -> list[bytes]:
    """The variables a process was started with; none of one that is gone, or not ours."""
    with suppress(OSError):
        return Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
    return []
