"""A flame graph of the sidecar during bursts, by py-spy."""

import shutil
import sys
from pathlib import Path

from benchmarks.programs import SIDECAR, Arena
from benchmarks.stream import FLAT_DELTAS

_BURSTS = 20
_SAMPLES_PER_SECOND = 500


class FlameError(Exception):
    """py-spy is missing."""


def draw(arena: Arena, folder: Path) -> Path:
    """Profile; the graph's path.

    py-spy starts the sidecar itself: a parent may look into its child without being root
    (on Linux and Windows; macOS wants root).
    """
    beside = str(Path(sys.executable).parent)
    py_spy = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if py_spy is None:
        raise FlameError("py-spy is missing: python -m pip install py-spy")
    graph = folder / "bench-profile.svg"
    record = [py_spy, "record", "--rate", str(_SAMPLES_PER_SECOND), "--threads", "--gil"]
    program = arena.spawn(SIDECAR, prefix=[*record, "--output", str(graph), "--"])
    try:
        program.open()
        program.wait_loaded()
        for _ in range(_BURSTS):
            program.new_session()
            arena.model.plan(n=FLAT_DELTAS)
            program.turn()
        program.process.end_input()
    finally:
        program.process.close()
    return graph
