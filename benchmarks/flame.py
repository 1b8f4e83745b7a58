"""A flame graph of the sidecar during bursts, by py-spy."""

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.process import HANG_SECONDS
from benchmarks.programs import SIDECAR, Arena, Program
from benchmarks.stream import FLAT_DELTAS

_BURSTS = 20
_SAMPLES_PER_SECOND = 500


class FlameError(Exception):
    """There is no graph; the message says why."""


def draw(arena: Arena, graph: Path) -> None:
    """Profile `_BURSTS` turns of 20,000 deltas, only frames that hold the GIL, into `graph`."""
    beside = str(Path(sys.executable).parent)
    py_spy = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if py_spy is None:
        raise FlameError(
            "py-spy is missing, as there is no wheel of it for this machine: build it with"
            f" {sys.executable} -m pip install py-spy, which takes Rust"
        )
    program = arena.spawn(SIDECAR, hook="let_attach")
    try:
        program.open()
        program.wait_loaded()
        options = ["--rate", str(_SAMPLES_PER_SECOND), "--threads", "--gil", "--output", str(graph)]
        command = [py_spy, "record", *options, "--pid", str(program.process.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as spy:
            assert spy.stdout is not None
            first = spy.stdout.readline()
            if b"Sampling" in first:
                _run_bursts(arena, program)
            said = first + spy.stdout.read()
            code = spy.wait(HANG_SECONDS)
    finally:
        program.process.close()
    if code or not graph.exists():
        raise FlameError(f"py-spy failed: {said.decode(errors='replace').strip()}")


def _run_bursts(arena: Arena, program: Program) -> None:
    for _ in range(_BURSTS):
        program.new_session()
        arena.model.plan(n=FLAT_DELTAS)
        program.turn()
    program.process.close()  # py-spy writes the graph when the process has ended
