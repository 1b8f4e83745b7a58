"""Killed at any moment and resumed: every task done once, paid once, and no child left. F10

A seeded sample daily; with KODE_TEST_FULL=1 sixty kills of each kind, ten in one batch.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.jobs.batch import make_report
from tests.conftest import FULL
from tests.support.files import write
from tests.support.model_script import answer, hold, text
from tests.support.processes import kill
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL, and /proc to find the children"),
]

KILLS = 10 if FULL else 1
PARTS = 6 if FULL else 1
"""Each part is one batch that is killed so often; sixty of each kind with KODE_TEST_FULL=1."""
TASKS = 4 * KILLS + 2
JOB = """\
kgent: {schema_version: 1}
profile: {id: tester, role: You test things.}
model: kimi-k2.6
"""
NEW = ("--config", "job.yaml", "--tasks", "repos", "--prompt", "Do it.", "--out", "out")


class Batch:
    """A batch in a folder of its own, over real processes."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        write(folder, {"job.yaml": JOB, **{f"repos/r{n}/a.txt": "a\n" for n in range(TASKS)}})
        self.folder, self.out, self.model = folder, folder / "out", model
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KIMI_BASE_URL": model.base_url,
            "KIMI_API_KEY": "sk-test-key-000",
        }

    async def spawn(self, *argv: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def begin(self, *more: str) -> asyncio.subprocess.Process:
        """Begin it; or go on, where there is something to go on with."""
        if (self.out / "batch.json").exists():
            return await self.spawn(*PROGRAM, "batch", "resume", "out", *more)
        return await self.spawn(*PROGRAM, "batch", *NEW, "--attempts", "100", *more)

    @property
    def lines(self) -> int:
        """How much is told by now of what became of the tasks."""
        path = self.out / "tasks.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    async def a_moment(self, rng: Random, child: asyncio.subprocess.Process) -> bool:
        """Wait for any moment of the next few lines; False when the batch is over before."""
        goal = self.lines + rng.randint(0, 5)
        async with asyncio.timeout(2 * HANG_SECONDS):
            while child.returncode is None and self.lines < goal:  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # a file has no event
        await asyncio.sleep(rng.random() / 2)
        return child.returncode is None

    def running(self) -> list[int]:
        """The processes of runs that are at work."""
        records = [json.loads(path.read_bytes()) for path in self.records()]
        return [one["pid"] for one in records if one["status"] == "running"]

    def records(self) -> list[Path]:
        return sorted(self.out.glob("runs/*/*/run.json"))

    async def finish(self, *more: str) -> None:
        """Go on to the end; then every task is done once, all is paid, nobody is left."""
        async with asyncio.timeout(20 * HANG_SECONDS):
            assert await (await self.begin(*more)).wait() == 0
        await self.check()

    async def check(self) -> None:
        records: list[Any] = [json.loads(path.read_bytes()) for path in self.records()]
        done = Counter(one["task_id"] for one in records if one["status"] == "completed")
        assert done == {f"r{number}": 1 for number in range(TASKS)}
        report = make_report(self.out)
        assert report.states == {"completed": TASKS}
        paid = sum(cost["amount"] for one in records for cost in one["costs"])
        assert sum(cost.amount for cost in report.costs) == pytest.approx(paid)
        assert paid > 0
        async with asyncio.timeout(HANG_SECONDS):
            while processes_of(self.folder):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # the system says nothing of processes that end


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names a place below the folder."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.fsencode(folder) in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@asynccontextmanager
async def batch_in(folder: Path, *, free: int = 20 * TASKS) -> AsyncIterator[Batch]:
    """All answers but the `free` first ones wait until the test releases "killed"."""
    at_once, held = answer(text("Done.")), answer(hold("killed"), text("Done."))
    answers = (at_once,) * free + (held,) * (20 * TASKS - free)
    async with ModelServer(Recording(answers), paced=False) as model:
        yield Batch(folder, model)


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_killed_batch_is_resumed(tmp_path: Path, rng: Random, part: int) -> None:
    async with batch_in(tmp_path) as batch:
        for _ in range(KILLS):
            child = await batch.begin()
            assert await batch.a_moment(rng, child)
            kill(child.pid)
            await child.wait()
        await batch.finish()


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_killed_run_is_repeated(tmp_path: Path, rng: Random, part: int) -> None:
    # A run that is quick may end before it is killed; the held ones are certain to be at work.
    async with batch_in(tmp_path, free=TASKS // 2) as batch:
        child = await batch.begin()
        killed = set[int]()
        while len(killed) < KILLS:
            async with asyncio.timeout(2 * HANG_SECONDS):
                while not set(batch.running()) - killed:
                    assert child.returncode is None
                    await asyncio.sleep(0.02)
            await asyncio.sleep(rng.random() / 4)
            for process_id in list(set(batch.running()) - killed)[:1]:
                kill(process_id)
                killed.add(process_id)
        batch.model.release("killed")
        async with asyncio.timeout(20 * HANG_SECONDS):
            assert await child.wait() == 0
        await batch.check()


class Cluster:
    """A scheduler and two workers, each a process. A context manager."""

    def __init__(self, batch: Batch, port: int) -> None:
        self.address = f"tcp://127.0.0.1:{port}"
        self._batch, self._port = batch, str(port)

    async def __aenter__(self) -> "Cluster":
        where = ("--host", "127.0.0.1", "--port", self._port)
        self.scheduler = await self._spawn("scheduler", *where, "--no-dashboard", "--no-show")
        self.workers = [await self.worker() for _ in range(2)]
        return self

    async def worker(self) -> asyncio.subprocess.Process:
        """One more."""
        options = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "20")
        return await self._spawn("worker", self.address, *options)

    async def _spawn(self, name: str, *words: str) -> asyncio.subprocess.Process:
        return await self._batch.spawn(sys.executable, "-m", f"distributed.cli.dask_{name}", *words)

    async def __aexit__(self, *_: object) -> None:
        for one in (self.scheduler, *self.workers):
            kill(one.pid)
            await one.wait()


@pytest.mark.skipif(not FULL, reason="minutes: with KODE_TEST_FULL=1")
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_killed_scheduler_is_no_loss(
    tmp_path: Path, rng: Random, part: int, unused_tcp_port_factory: Any
) -> None:
    async with batch_in(tmp_path) as batch:
        for _ in range(KILLS):
            async with Cluster(batch, unused_tcp_port_factory()) as cluster:
                child = await batch.begin("--scheduler", cluster.address)
                assert await batch.a_moment(rng, child)
                kill(cluster.scheduler.pid)
                async with asyncio.timeout(2 * HANG_SECONDS):
                    assert await child.wait() != 0
        async with Cluster(batch, unused_tcp_port_factory()) as cluster:
            await batch.finish("--scheduler", cluster.address)


@pytest.mark.skipif(not FULL, reason="minutes: with KODE_TEST_FULL=1")
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_killed_worker_is_no_loss(
    tmp_path: Path, rng: Random, part: int, unused_tcp_port_factory: Any
) -> None:
    async with batch_in(tmp_path) as batch, Cluster(batch, unused_tcp_port_factory()) as cluster:
        child = await batch.begin("--scheduler", cluster.address)
        for _ in range(KILLS):
            assert await batch.a_moment(rng, child)
            lost = cluster.workers.pop(0)
            kill(lost.pid)
            await lost.wait()
            cluster.workers.append(await cluster.worker())
        async with asyncio.timeout(20 * HANG_SECONDS):
            assert await child.wait() == 0
        await batch.check()


@pytest.mark.skipif(not FULL, reason="minutes: with KODE_TEST_FULL=1")
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_killed_batch_on_a_cluster_is_resumed(
    tmp_path: Path, rng: Random, part: int, unused_tcp_port_factory: Any
) -> None:
    async with batch_in(tmp_path) as batch, Cluster(batch, unused_tcp_port_factory()) as cluster:
        for _ in range(KILLS):
            child = await batch.begin("--scheduler", cluster.address)
            assert await batch.a_moment(rng, child)
            kill(child.pid)
            await child.wait()
        await batch.finish("--scheduler", cluster.address)
