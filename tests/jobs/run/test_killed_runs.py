"""A run killed at any boundary leaves a readable record whose state is never a lie (B5, B13)."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest

from kode_sidecar.core.domain.run import FINAL_STATES
from kode_sidecar.infrastructure.records.run_records import list_runs, read_events, read_run
from tests.conftest import FULL
from tests.support.headless_world import HeadlessWorld, RunFiles
from tests.support.killed_run import CONFIG, RUN_ID, STEPS
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

SAMPLE = 2  # of events, unless all are played


async def kill_at(folder: Path, kind: str, number: int) -> Path:
    folder.mkdir()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.killed_run", str(folder), kind, str(number)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    async with asyncio.timeout(HANG_SECONDS):
        assert await child.wait() == -signal.SIGKILL
    return folder / "home" / "runs" / RUN_ID


def assert_true(folder: Path) -> str:
    """The state that is told, after everything that is told was held against the disk."""
    files = RunFiles(folder)
    stored, reported = files.run["status"], read_run(folder)
    over = stored in FINAL_STATES
    if over:
        assert reported.status == stored
    else:
        assert (reported.status, reported.failure_reason) == ("failed", "RunDied")
    assert [one.run_id for one in list_runs(folder.parent)] == [RUN_ID]  # type: ignore[union-attr]
    events = files.events
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert len(read_events(folder)) == len(events)
    types = files.types()
    ends = [one for one in types if one == "governance.decided" or one.startswith("run.c")]
    transcript = folder / "transcript.md"
    text = transcript.read_text(encoding="utf-8") if transcript.exists() else ""
    assert over or (ends == [] and "## Outcome" not in text)
    assert len(files.lines("logs/tools.jsonl")) >= types.count("tool.completed")
    for line in files.lines("logs/tools.jsonl"):
        for path in line["artifacts"]:
            assert line["status"] != "ok" or (folder / path).exists()
    manifest = folder / "artifact-manifest.json"
    if manifest.exists():
        for artifact in json.loads(manifest.read_bytes())["artifacts"]:
            assert (folder / artifact["path"]).is_file()
    if reported.status == "completed":
        assert (folder / "deliverables" / "report.md").read_text() == "All is well.\n"
        assert types.count("step.completed") == 11
    return reported.status


async def counted(folder: Path) -> tuple[int, int]:
    """How many events, and how many times `run.json`, the whole run writes."""
    folder.mkdir()
    world = HeadlessWorld(folder)
    world.write(CONFIG, STEPS)
    result = await world.run(run_id=RUN_ID)
    assert assert_true(Path(result.sandbox_root)) == "completed"
    # The first one, the one that says running, one a step, the last one.
    return len(RunFiles(result.sandbox_root).events), 1 + 1 + 11 + 1


async def test_a_killed_run_never_lies(tmp_path: Path, rng: Random) -> None:
    events, writes = await counted(tmp_path / "whole")
    places = [("event", n) for n in range(1, events + 1)]
    places += [("write", n) for n in range(1, writes + 1)]
    last = [("write", writes), ("event", events)]
    if not FULL:
        places = [*rng.sample(places[:events], SAMPLE), *rng.sample(places[events:-1], 1), last[0]]
    states: dict[tuple[str, int], str] = {}
    for kind, number in places:
        folder = await kill_at(tmp_path / f"{kind}-{number}", kind, number)
        states[kind, number] = assert_true(folder)
    assert states["write", writes] == "completed"
    finished = {place for place, state in states.items() if state == "completed"}
    # Only run.json makes it so, and what tells of it comes after.
    assert finished <= {("write", writes), ("event", events - 1), ("event", events)}
