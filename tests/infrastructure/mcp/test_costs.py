"""What the room costs who has servers; others do without it (F5)."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.program import ROOT

MEASURE = """
import sys, time
import kode_sidecar.servers.boot.app, kode_sidecar.servers.boot.agent
assert not [name for name in sys.modules if name.startswith("kode_sidecar.infrastructure.mcp")]
before = set(sys.modules)
times = []
for _ in range(6):
    began = time.process_time()
    import kode_sidecar.servers.boot.mcp_setup
    times.append(time.process_time() - began)
    new = set(sys.modules) - before
    for name in new:
        del sys.modules[name]
foreign = sorted(name for name in new if not name.startswith("kode_sidecar.infrastructure.mcp"))
print(min(times), *foreign)
"""


def test_the_room_is_loaded_late_alone_and_fast(tmp_path: Path) -> None:
    compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env={**os.environ, **compiled, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds, *foreign = done.stdout.split()
    took = f"importing the room took {float(seconds) * 1000:.1f} ms of the processor"
    print(took)  # noqa: T201
    assert set(foreign) <= {"kode_sidecar.servers.boot.mcp_setup", "shlex"}, (
        "neither httpx nor PyYAML"
    )
    assert float(seconds) < 0.01, took
