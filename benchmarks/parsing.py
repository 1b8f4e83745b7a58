"""What the model layer adds to reading an answer over HTTP."""

import json
import subprocess
import sys
from statistics import median

from benchmarks.figures import Figure
from benchmarks.process import HANG_SECONDS, BenchError
from benchmarks.programs import ROOT, SIDECAR, Arena
from benchmarks.stream import DELTA_SIZE, FLAT_DELTAS


def parsing(arena: Arena, runs: int) -> list[Figure]:
    """20,000 deltas over loopback, made into model events, against httpx reading their bytes."""
    arena.model.plan(n=FLAT_DELTAS, size=DELTA_SIZE, any=True)
    command = [sys.executable, "-m", "benchmarks.parse_client", f"{arena.model.url}/v1", str(runs)]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=HANG_SECONDS, check=False)
    if done.returncode:
        raise BenchError(done.stderr.decode(errors="replace").strip()[-1_000:])
    spent = {name: median(seconds) for name, seconds in json.loads(done.stdout).items()}
    per_delta = {name: seconds / FLAT_DELTAS * 1e6 for name, seconds in spent.items()}
    return [
        Figure(
            "CPU per delta, parsed by the model layer",
            "us",
            {SIDECAR: per_delta["parsed"]},
            most_ratio=1.3,
            base=per_delta["read"],
            base_name="httpx, unparsed",
        )
    ]
