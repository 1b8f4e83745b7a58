"""A process that ends a program with all its descendants when the sidecar is gone for any reason.

POSIX only: on Windows a job object does this. The sidecar starts `guard FD PROGRAM …` with the
reading end of a pipe; the system closes the writing end with the sidecar, also after `kill -9`.
On Linux the guard adopts orphans (PR_SET_CHILD_SUBREAPER), so a double fork does not escape it, and
since Linux 6.12 its programs can send signals only to each other (Landlock); elsewhere it ends the
program's process group. It uses only the standard library, because it starts with each program.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

# <linux/prctl.h>, <linux/landlock.h> and the system call numbers that all machines share
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 4, 36, 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_SIGNAL_SCOPE_ABI, _SCOPE_SIGNAL = 6, 1 << 1
_SWEEP_SECONDS = 60.0
_NOT_STARTED = 127


def guard_command(descriptor: int, argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` under a guard that reads `descriptor`."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "guard", str(descriptor), *argv]
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(descriptor), *argv]


def guarded_program(argv: Sequence[str]) -> str:
    """Return the program that a command line starts, under a guard or without one."""
    *guard, _ = guard_command(0, [])
    return argv[len(guard) + 1] if [*argv[: len(guard)]] == guard else argv[0]


def run_guard(arguments: list[str]) -> NoReturn:
    """Run `FD PROGRAM ARGUMENT …`, end all its processes, and exit as the program did."""
    descriptor, argv = int(arguments[0]), arguments[1:]
    system = _linux()
    if system is not None:
        system.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        system.prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # nobody else can open its pipe through /proc
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)  # only the closed pipe ends the guard
    child = _start(argv, (descriptor, wake_read, wake_write), system)
    _release_pipes()
    status = _wait(child, descriptor, wake_read)
    _end_all(child)
    _end_as(os.waitstatus_to_exitcode(status) if status is not None else 1)


def _end_as(code: int) -> NoReturn:
    """End with the program's exit code, or by the signal that ended it."""
    if code < 0:
        with suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _wake(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor is written only for signals with a handler."""


def _linux() -> Any:
    """Return the C library, for system calls on Linux; None on other systems."""
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 - 10 ms that other systems do not need

    return ctypes.CDLL(None, use_errno=True)


def _confine(system: Any) -> None:
    """Prevent the program and its children from outliving or signalling the guard, if possible.

    That includes a ban on gaining privileges: a privileged program could signal any process.
    """
    system.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if system.syscall(_CREATE_RULESET, None, 0, 1) < _SIGNAL_SCOPE_ABI:
        return
    scope = (0).to_bytes(16, sys.byteorder) + _SCOPE_SIGNAL.to_bytes(8, sys.byteorder)
    ruleset = system.syscall(_CREATE_RULESET, scope, len(scope), 0)
    if ruleset < 0:
        return
    system.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    system.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _start(argv: list[str], ours: tuple[int, ...], system: Any) -> int:
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    for descriptor in ours:
        os.close(descriptor)
    for name in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(name, signal.SIG_DFL)
    if system is not None:
        _confine(system)
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(_NOT_STARTED)


def _release_pipes() -> None:
    """Close our copies of the program's pipes, so that they end when the program closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def _wait(child: int, descriptor: int, wake: int) -> int | None:
    """Wait for the program's end and return its status, or None when the sidecar is gone."""
    while True:
        status = _reap(child)
        if status is not None:
            return status
        ready, _, _ = select.select([descriptor, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if descriptor in ready and not os.read(descriptor, 1):
            return None


def _reap(child: int) -> int | None:
    """Collect every process that ended; return the program's own status if it is among them."""
    found: int | None = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                found = status
    return found


def _end_all(child: int) -> None:
    """Kill the program's group, then all adopted processes, until none is left.

    A process that forks and exits all the time changes its id: against it, only a fast loop helps.
    """
    deadline = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        for pid in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Return the child processes of this one on Linux; other systems adopt none."""
    with suppress(OSError), open("/proc/thread-self/children", "rb") as file:
        return [int(word) for word in file.read().split()]
    ours = str(os.getpid()).encode()
    found: list[int] = []
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    # The name in brackets may contain anything; the parent is two fields after it.
                    if file.read().rpartition(b")")[2].split()[1] == ours:
                        found.append(int(name))
    return found


if __name__ == "__main__":
    run_guard(sys.argv[1:])
