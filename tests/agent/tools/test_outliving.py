"""Programs that try to outlive the sidecar, each in its own way. None does. F9"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kode_sidecar.infrastructure.commands.command import (
    CommandEnd,
    CommandLimits,
    ProgramRun,
    run_program,
)
from tests.support.calling_home import calling_home
from tests.support.processes import gone

HANG = 20.0
LINUX = sys.platform.startswith("linux")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a job object: nothing leaves it")

_HEAD = """
import ctypes, os, signal, socket, subprocess, sys, time
def call(*ids):
    line = ' '.join(map(str, ids or [os.getpid()])) + chr(10)
    socket.create_connection(('127.0.0.1', int(sys.argv[1]))).sendall(line.encode())
def stay():
    call()
    while True: time.sleep(600)
def fork_away():
    if os.getppid() == guard and os.fork(): wait()  # its end would be the end of all
    os.setsid() if os.getsid(0) != os.getpid() else None
    if os.fork(): os._exit(0)
def wait(): time.sleep(600)
guard = os.getppid()
"""
# What a program does, and whether its own system must hold it back for that to fail.
ATTEMPTS = {
    "a child": "if os.fork() == 0: stay()\nwait()",
    "a child of a program that ends": "if os.fork() == 0: stay()",
    "a session of its own": "os.setsid() if os.getpgrp() != os.getpid() else 0\nstay()",
    "a child in a session of its own": "if os.fork() == 0:\n os.setsid(); stay()\nwait()",
    "a double fork": "fork_away(); stay()",
    "a double fork without environment": "fork_away()\nos.environ.clear()\nos.execve("
    "sys.executable, ['x', '-c', 'import socket,os,time;socket.create_connection((\"127.0.0.1\",'"
    "+ sys.argv[1] + ')).sendall(b\"%d\\\\n\" % os.getpid());time.sleep(600)'], {})",
    "deaf to signals": "for n in (1, 2, 3, 13, 15): signal.signal(n, signal.SIG_IGN)\n"
    "fork_away(); stay()",
    "closed descriptors": "fork_away(); os.closerange(0, 64); os.chdir('/'); stay()",
    "another group": "if os.fork() == 0:\n os.setpgid(0, 0); stay()\nwait()",
    "ten generations": "for _ in range(10): fork_away()\nstay()",
    "many children": "ids = []\nfor _ in range(60):\n pid = os.fork()\n if pid == 0:\n"
    "  os.setsid()\n  wait()\n ids.append(pid)\ncall(*ids); wait()",
    "nohup": "subprocess.Popen(['nohup', sys.executable, '-c', 'import time; time.sleep(600)'],"
    " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)\nstay()",
    "its own reaper": "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nfork_away(); stay()",
    "no signal at its parent's end": "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\nfork_away(); stay()",
}
# Against these the system must hold a program back: Linux since 6.12.
ATTACKS = {
    "kills its guard": "if os.fork() == 0:\n os.setsid()\n"
    " try: os.kill(guard, signal.SIGKILL)\n except OSError: pass\n stay()\nwait()",
    "kills its guard, being no child of its": "fork_away()\n"
    "try: os.kill(guard, signal.SIGKILL)\nexcept OSError: pass\nstay()",
    "stops its guard": "try: os.kill(guard, signal.SIGSTOP)\nexcept OSError: pass\n"
    "fork_away(); stay()",
    "kills the sidecar's guard and the sidecar": ""
    "s = int(open(f'/proc/{guard}/stat').read().rpartition(')')[2].split()[1])\nfork_away()\n"
    "for p in (guard, s):\n try: os.kill(p, signal.SIGKILL)\n except OSError: pass\nstay()",
    "holds the pipe of its guard": "held = []\nfor p in (guard, guard - 1):\n"
    " for n in range(64):\n  try: held.append(os.open(f'/proc/{p}/fd/{n}', os.O_WRONLY | "
    "os.O_NONBLOCK))\n  except OSError: pass\nfork_away(); stay()",
    "traces its guard": "ctypes.CDLL(None).ptrace(16, guard, 0, 0)\nfork_away(); stay()",
}
_COMET = """
import os, sys
path = sys.argv[1]
n = 0
if os.fork():
    os.wait()
    import time; time.sleep(600)
while True:
    n += 1
    if n % 20 == 0: open(path, 'w').write(str(n))
    if n == 40: print('it flies', flush=True)
    if os.fork(): os._exit(0)
    os.setsid()
"""


def _landlock_scopes_signals() -> bool:
    if not LINUX:
        return False
    import ctypes

    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


RUNS_IT = """
import asyncio, os, sys
from pathlib import Path
from kode_sidecar.infrastructure.commands.command import CommandLimits, ProgramRun, run_program
asyncio.run(run_program(ProgramRun(Path(sys.executable), ["-c", *sys.argv[1:]], Path.cwd(),
    os.environ, CommandLimits())))
asyncio.run(asyncio.Event().wait())
"""


async def _outlives_a_killed_sidecar(code: str) -> list[int]:
    """The processes that called and still run."""
    async with calling_home() as (port, called):
        ours = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUNS_IT, _HEAD + code, port), stderr=asyncio.subprocess.DEVNULL
        )
        ids = await asyncio.wait_for(called, HANG)
        if ours.returncode is None:
            ours.kill()
        await ours.wait()
    return [pid for pid in ids if not gone(pid, HANG)]


@pytest.mark.parametrize("code", ATTEMPTS.values(), ids=ATTEMPTS.keys())
async def test_nothing_outlives_a_sidecar_that_is_killed(code: str) -> None:
    if not LINUX and ("prctl" in code or "fork_away" in code or "setsid" in code):
        pytest.skip("elsewhere the process group is all there is (see the room's README)")
    assert await _outlives_a_killed_sidecar(code) == []


@pytest.mark.skipif(not _landlock_scopes_signals(), reason="NOT RUN: needs Linux 6.12, Landlock")
@pytest.mark.parametrize("code", ATTACKS.values(), ids=ATTACKS.keys())
async def test_a_program_cannot_get_rid_of_its_guard(code: str) -> None:
    assert await _outlives_a_killed_sidecar(code) == []


async def _run(
    code: str, *arguments: str, on_output: Callable[[bytes], None] = lambda _: None
) -> CommandEnd:
    words = ["-c", code, *arguments]
    wanted = ProgramRun(Path(sys.executable), words, Path.cwd(), os.environ, CommandLimits())
    return await run_program(wanted, on_output)


@pytest.mark.parametrize("code", ATTEMPTS.values(), ids=ATTEMPTS.keys())
async def test_nothing_outlives_a_cancelled_call(code: str) -> None:
    if not LINUX and ("prctl" in code or "fork_away" in code or "setsid" in code):
        pytest.skip("elsewhere the process group is all there is (see the room's README)")
    async with calling_home() as (port, called):
        running = asyncio.create_task(_run(_HEAD + code, port))
        ids = await asyncio.wait_for(called, HANG)
        running.cancel()
        await asyncio.wait((running,))
    assert [pid for pid in ids if not gone(pid, HANG)] == []


@pytest.mark.skipif(not LINUX, reason="elsewhere it is one process group")
async def test_one_that_forks_and_ends_all_the_time_is_caught(tmp_path: Path) -> None:
    """It has another process id at each look."""
    mark = tmp_path / "generation"
    flies = asyncio.Event()
    running = asyncio.create_task(_run(_COMET, str(mark), on_output=lambda _: flies.set()))
    await asyncio.wait_for(flies.wait(), HANG)
    running.cancel()
    await asyncio.wait((running,))

    def generation() -> str:
        return mark.read_text() if mark.exists() else ""

    seen, still = generation(), 0
    while still < 20:  # a generation takes a millisecond
        await asyncio.sleep(0.05)
        still, seen = (still + 1, seen) if generation() == seen else (0, generation())
    assert seen
