"""Looking at processes from outside: do they run, what did they start, how much do they hold."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.program import ONE_FILE
from tests.support.windows_processes import processes

LINUX = sys.platform.startswith("linux")


def runs(pid: int) -> bool:
    """Is it there, and more than a zombie?"""
    if sys.platform == "win32":
        return any(pid == process for process, _ in processes())
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True)
    return listed.stdout.strip()[:1] not in (b"", b"Z")


def gone(pid: int, seconds: float = 60.0) -> bool:
    """Does it end? A kill takes effect a moment after it was sent."""
    deadline = time.monotonic() + seconds
    while runs(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children(pid: int) -> list[int]:
    """The processes it started that still run."""
    if sys.platform == "win32":
        return [process for process, parent in processes() if parent == pid]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(row[0]) for row in rows if int(row[1]) == pid and row[2][0] != "Z"]


def serving(pid: int) -> int:
    """The process that serves when this one was started: a one-file program starts a second one."""
    if not ONE_FILE:
        return pid
    (second,) = children(pid)
    return second


def kill(pid: int) -> None:
    """Kill what was started and what serves; it may have ended by itself."""
    # In one file the second would notice that the first is gone, and end in order.
    for one in (*(children(pid) if ONE_FILE else ()), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, getattr(signal, "SIGKILL", signal.SIGTERM))


def memory(pid: int, name: str = "VmRSS") -> int:
    """Bytes, by the name in /proc/PID/status. Linux only."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def cpu_ticks(pid: int) -> int:
    """Clock ticks it has used. Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def at_rest(pid: int) -> None:
    """Wait until it has used no processor time for a while. Linux only."""
    quiet, ticks = 0, -1
    while quiet < 10:
        now = cpu_ticks(pid)
        quiet, ticks = (quiet + 1 if now == ticks else 0), now
        await asyncio.sleep(0.02)


def open_files(pid: int) -> dict[int, str]:
    """What its descriptors lead to. Linux only."""
    found: dict[int, str] = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def program(pid: int) -> str:
    """The name of the program it runs; between fork and exec still that of its parent's. Linux."""
    return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
