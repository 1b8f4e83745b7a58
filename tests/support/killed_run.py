"""Plays a run that dies: `python -m tests.support.killed_run FOLDER event|write N`.

At once after its Nth event, or its Nth `run.json`, is on disk, the process is killed. N from 1.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kode_sidecar.core.domain.run import RunEvent
from kode_sidecar.infrastructure.records.run_records import RunRecords
from tests.support.headless_world import SCRIPTED, HeadlessWorld, call

RUN_ID = "r-1"
CONFIG = f"{SCRIPTED}deliverables: [{{path: deliverables/report.md}}]\n"
STEPS = [
    {"say": "Looking.", "calls": [call("list_files", directory=".")]},
    {
        "say": "Writing.",
        "calls": [
            call("write_artifact", path="deliverables/report.md", content="All is well.\n"),
            call("write_memory", content="All was well."),
        ],
    },
    {"say": "Done."},
]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    folder, kind, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    world = HeadlessWorld(folder)
    world.write(CONFIG, STEPS)

    def watch(event: Any) -> None:
        if kind == "event" and isinstance(event, RunEvent) and event.sequence == number:
            die()

    if kind == "write":
        written, write = [0], RunRecords.write

        def dying(self: RunRecords, *args: Any, **options: Any) -> None:
            write(self, *args, **options)
            written[0] += 1
            if written[0] == number:
                die()

        RunRecords.write = dying  # type: ignore[method-assign]
    asyncio.run(world.make(run_id=RUN_ID, watch=watch).run())


if __name__ == "__main__":
    main()
