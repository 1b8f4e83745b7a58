"""The report tells people and programs the same; nothing of a task gets out of its place. F10"""

import asyncio
import json
import time
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from kode_sidecar.core.domain.message import Cost
from kode_sidecar.jobs.batch import make_report, report_text, try_again, write_report
from kode_sidecar.jobs.batch.engine import Job
from kode_sidecar.jobs.batch.progress import BatchProgress
from kode_sidecar.jobs.batch.report_page import amount
from kode_sidecar.jobs.batch.task_log import Again, Claimed
from tests.conftest import FULL
from tests.support.batch_world import (
    NOW,
    BatchWorld,
    ScriptedEngine,
    cost,
    put_record,
    refused,
)

HOSTILE = '</script><script>alert(1)</script> ]]> & "quoted" \x1b[2J'


async def worked(world: BatchWorld, tasks: int, rng: Random) -> ScriptedEngine:
    """A batch that was done: some of its tasks failed, each run in no time."""

    async def do(job: Job) -> None:
        drawn = rng.random()
        if drawn < 0.1:
            put_record(job, "failed", **refused("RunTimedOut"), **cost(0.25))
        elif drawn < 0.2:
            put_record(job, "incomplete", **refused("DeliverableMissing"))
        else:
            put_record(job, **cost(0.5))

    names = ("kimi-k2.6", "other")
    world.write_tasks(*({"id": f"t{n}", "set": {"model.name": names[n % 2]}} for n in range(tasks)))
    engine = ScriptedEngine(do)
    await world.work(world.open(jobs=4), engine)
    return engine


async def test_all_forms_tell_the_same(tmp_path: Path, rng: Random) -> None:
    world = BatchWorld(tmp_path)
    await worked(world, 60, rng)
    report = write_report(world.out)
    reported = json.loads((world.out / "report.json").read_bytes())
    assert reported["states"] == report.states
    assert sum(report.states.values()) == 60
    done, failed = report.states["completed"], report.states.get("failed", 0)
    assert report.costs[0].amount == pytest.approx(done * 0.5 + failed * 0.25)
    assert [(one.model, one.tasks) for one in report.models] == [("kimi-k2.6", 30), ("other", 30)]
    suite = ElementTree.parse(world.out / "report.xml").getroot()
    assert suite.tag == "testsuites"
    cases = list(suite.iter("testcase"))
    assert len(cases) == int(suite.get("tests", "")) == 60
    assert len(list(suite.iter("error"))) == failed == int(suite.get("errors", ""))
    missing = report.states.get("incomplete", 0)
    assert len(list(suite.iter("failure"))) == missing == int(suite.get("failures", ""))
    text = (world.out / "report.md").read_text(encoding="utf-8")
    assert f"{done} completed" in text
    assert text.count("transcript.md)") == 60 - done
    page = (world.out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "http" not in page.replace("http-equiv", ""), "no network"


async def test_each_run_that_was_begun_counts_for_its_task(tmp_path: Path) -> None:
    """Cut, failed and repeated, still running: in the lines as in the sums."""
    world = BatchWorld(tmp_path)
    world.write_tasks({"id": "a"}, {"id": "b"})
    ends = ["Cancelled", "Network"]

    async def do(job: Job) -> None:
        if job.task.id == "a" and ends:
            put_record(job, "failed", **refused(ends.pop(0)), **cost(0.25))
        else:
            put_record(job, **cost(0.5))

    await world.work(world.open(), ScriptedEngine(do))
    folder = world.reopen()
    assert try_again(folder, world.clock) == 1
    await world.work(folder, ScriptedEngine(do))
    report = make_report(world.out)
    assert [(one.id, one.runs, one.folder) for one in report.rows] == [
        ("a", 3, "runs/a/3"),
        ("b", 1, "runs/b/1"),
    ]
    assert [one.costs[0].amount for one in report.rows] == [1.0, 0.5]
    assert (report.runs, report.costs, report.models[0].costs) == (
        4,
        (Cost(1.5, "CNY"),),
        (Cost(1.5, "CNY"),),
    )
    folder = world.reopen()
    folder.log.add(Again(at=NOW, id="b"))
    folder.log.add(Claimed(at=NOW, id="b", attempt=2))
    folder.close()
    assert [(one.state, one.runs) for one in make_report(world.out).rows] == [
        ("completed", 3),
        ("running", 2),
    ]
    assert make_report(world.out).runs == 5


async def test_a_small_amount_is_not_shown_as_nothing(tmp_path: Path) -> None:
    world = BatchWorld(tmp_path)
    world.write_tasks({"id": "a"})

    async def do(job: Job) -> None:
        put_record(job, **cost(0.0000525))

    await world.work(world.open(budget=Cost(20, "CNY")), ScriptedEngine(do))
    text = report_text(write_report(world.out))
    for reported in (
        text,
        *((world.out / f"report.{kind}").read_text() for kind in ("md", "html")),
    ):
        assert "0.000053 CNY" in reported
    assert "cost of 20.00 CNY" in (world.out / "report.html").read_text()
    reported = [amount(one) for one in (0, 0.00525, 0.5, 1, 1234.567)]
    assert reported == ["0.00", "0.0053", "0.5000", "1.00", "1,234.57"]


async def test_what_a_task_says_stays_text(tmp_path: Path) -> None:
    world = BatchWorld(tmp_path)
    world.write_tasks({"id": "a"})

    async def do(job: Job) -> None:
        fields = refused("Network")
        error = fields["error"]
        fields["error"] = type(error)(
            code="Network", message=HOSTILE, category="network", retryable=True
        )
        put_record(job, "failed", **fields)

    await world.work(world.open(), ScriptedEngine(do))
    write_report(world.out)
    page = (world.out / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert page.count("<script") == page.count("</script>") == 2
    case = ElementTree.parse(world.out / "report.xml").getroot().find(".//error")
    assert case is not None
    assert "<script>alert(1)" in str(case.get("message"))


async def test_progress_counts_what_was_done_before(tmp_path: Path, rng: Random) -> None:
    class Screen:
        written = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.written += text
            return len(text)

        def flush(self) -> None:
            return None

    world = BatchWorld(tmp_path)
    await worked(world, 5, rng)
    world.write_tasks(*({"id": f"t{n}", "set": {"model.name": "x"}} for n in range(3)), {"id": "n"})
    folder = world.open()
    screen = Screen()
    progress = BatchProgress(folder.log, screen, lambda: 0.0)  # type: ignore[arg-type]
    assert progress.line().startswith("0/4 done · 0 running · ")
    assert "CNY" in progress.line(), "what was paid before counts"
    progress.end()
    assert screen.written == f"\r{progress.line()}\n", "not every Windows console knows sequences"
    folder.close()


async def test_many_tasks_cost_little(tmp_path: Path, rng: Random) -> None:
    """10,000 with KODE_TEST_FULL=1: under 30 s of this process."""
    count = 10_000 if FULL else 300
    world = BatchWorld(tmp_path)
    begun = time.process_time()
    engine = await worked(world, count, rng)
    report = await asyncio.to_thread(write_report, world.out)
    took = time.process_time() - begun
    assert report.tasks == len(engine.begun) == count
    assert make_report(world.out, rows=False).states == report.states
    assert took < max(5.0, 30.0 * count / 10_000)
