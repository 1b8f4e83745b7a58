"""What a process and its children use, from Linux's /proc; None on other systems."""

import os
import sys
import time
from pathlib import Path

AVAILABLE = sys.platform.startswith("linux")


def memory_mb(pid: int) -> float | None:
    """Resident memory in MB (2**20 bytes)."""
    if not AVAILABLE:
        return None
    page = os.sysconf("SC_PAGE_SIZE")
    pages = (int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in _tree(pid))
    return sum(pages) * page / 2**20


def cpu_seconds(pid: int) -> float | None:
    """User and system time so far, of children that have ended too."""
    if not AVAILABLE:
        return None
    return sum(map(_own_and_reaped, _tree(pid)))


def _own_and_reaped(pid: int) -> float:
    # utime + stime, finer than the ticks of /proc: clock_getcpuclockid(3) of the process.
    own = time.clock_gettime((~pid << 3) | 2)
    # "pid (name) state ppid …"; the name may hold anything. cutime and cstime are 16 and 17.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> list[int]:
    found = [pid]
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            found += _tree(int(child))
    return found
