"""From the start of a program to its answer to `initialize`, beside a bare Python's whole life."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from statistics import median

_PARAMS = b'{"processId": null, "rootUri": null, "capabilities": {}}'
_BODY = b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": %b}' % _PARAMS
_FRAME = b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


_HANG_SECONDS = 60.0


class StartUpError(Exception):
    """The program did not answer; the message has what it said instead."""


def start_up_ms(program: Sequence[str], runs: int = 9) -> tuple[float, float]:
    """Medians in milliseconds, measured in turn: of the program, and of `python -c pass`.

    Raises StartUpError.
    """
    answered: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        for run in range(runs + 1):
            times = (_timed(lambda: _ask(program, home)), _timed(_run_python))
            if run:  # the first fills the caches of the disk
                answered.append(times[0])
                bare.append(times[1])
    return median(answered), median(bare)


def _timed(act: Callable[[], float]) -> float:
    begin = time.perf_counter()
    return (act() - begin) * 1e3


def _ask(program: Sequence[str], home: str) -> float:
    """When the answer began to arrive. `home` is its state folder."""
    with subprocess.Popen(
        [*program, "serve"],
        env={**os.environ, "KODE_HOME": home},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        hung = threading.Timer(_HANG_SECONDS, process.kill)
        hung.start()
        process.stdin.write(_FRAME)
        first = process.stdout.read(1)
        answered = time.perf_counter()
        process.stdin.close()
        process.stdout.read()
        said = process.stderr.read().decode("utf-8", "replace")
        hung.cancel()
    if not first:
        raise StartUpError(f"{program[0]} did not answer `initialize`: {said[-2000:]}")
    return answered


def _run_python() -> float:
    pipe = subprocess.PIPE
    subprocess.run([sys.executable, "-c", "pass"], stdin=pipe, capture_output=True, check=True)
    return time.perf_counter()
