"""Nothing lost, nothing twice: what becomes of tasks whatever becomes of their runs. F10"""

import asyncio
from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.run_records import RunRecords
from kode_sidecar.jobs.batch import Dispatcher, make_report, read_budget, try_again
from kode_sidecar.jobs.batch.engine import Job
from kode_sidecar.jobs.batch.task_log import Claimed
from tests.support.batch_world import (
    BatchWorld,
    ScriptedEngine,
    cost,
    held_run,
    put_record,
    refused,
    run_record,
)
from tests.support.sidecar import HANG_SECONDS


@pytest.fixture
def world(tmp_path: Path) -> BatchWorld:
    made = BatchWorld(tmp_path)
    made.write_tasks(*({"id": f"t{number}"} for number in range(6)))
    return made


async def test_every_task_is_run_once_and_as_many_as_asked_at_a_time(world: BatchWorld) -> None:
    async def do(job: Job) -> None:
        await asyncio.sleep(0)
        put_record(job, **cost(0.5))

    engine = ScriptedEngine(do)
    assert await world.work(world.open(jobs=3), engine) == ""
    assert len(engine.begun) == len(set(engine.begun)) == 6
    assert engine.most == 3
    report = make_report(world.out)
    assert report.states == {"completed": 6}
    assert report.costs[0].amount == pytest.approx(3.0)
    again = ScriptedEngine()
    assert await world.work(world.reopen(), again) == ""
    assert again.begun == []


async def test_a_run_that_dies_is_repeated_up_to_the_limit_and_told(world: BatchWorld) -> None:
    async def do(job: Job) -> None:
        if job.task.id == "t2":
            held_run(job, **cost(1.0)).close()  # killed: never finished, nobody holds it
        elif job.task.id != "t3":
            put_record(job)

    engine = ScriptedEngine(do)
    await world.work(world.open(attempts=3), engine)
    report = make_report(world.out)
    assert report.states == {"completed": 4, "failed": 2}
    rows = {row.id: row for row in report.rows}
    assert (rows["t2"].runs, rows["t2"].code) == (3, "RunDied")
    assert (rows["t3"].runs, rows["t3"].code) == (3, "RunDied")
    assert report.costs[0].amount == pytest.approx(3.0), "what was cut is paid all the same"


async def test_a_cancelled_batch_goes_on_where_it_was(world: BatchWorld) -> None:
    held = asyncio.Event()

    async def do(job: Job) -> None:
        if job.task.id == "t1":
            records = held_run(job)
            held.set()
            try:
                await asyncio.Event().wait()
            finally:
                records.close()
        put_record(job)

    folder = world.open(jobs=1)
    dispatcher = Dispatcher(folder, folder.record, ScriptedEngine(do), world.clock, lambda _: None)
    working = asyncio.create_task(dispatcher.run())
    await held.wait()
    dispatcher.cancelled.set()
    assert await working == "cancelled"
    folder.close()
    assert make_report(world.out).states == {"completed": 1, "cut": 1, "pending": 4}
    engine = ScriptedEngine()
    assert await world.work(world.reopen(), engine) == ""
    assert sorted(engine.begun)[0].endswith("t1-2"), "a new folder for a new run"
    assert make_report(world.out).states == {"completed": 6}


@pytest.mark.parametrize("ends", ["completed", "dies", "lives"])
async def test_what_a_killed_batch_left_is_looked_after(world: BatchWorld, ends: str) -> None:
    """The line that claims a task is there, or was lost with a power cut; the folder tells."""
    folder = world.open()
    jobs = [folder.job(folder.log.tasks[name].task, 1, folder.record) for name in ("t0", "t1")]
    folder.lay_out(jobs[0])
    folder.log.add(Claimed(at=world.clock.timestamp(), id="t0", attempt=1))
    folder.close()
    alive: list[RunRecords] = []
    for job in jobs:
        if ends == "completed":
            put_record(job)
        else:
            alive.append(held_run(job))
    engine = ScriptedEngine()
    if ends == "dies":
        for one in alive:
            one.close()
    working = asyncio.create_task(world.work(world.reopen(jobs=6), engine))
    if ends == "lives":
        async with asyncio.timeout(HANG_SECONDS), engine.changed:
            await engine.changed.wait_for(lambda: len(engine.begun) == 4)
        for one, job in zip(alive, jobs, strict=True):
            one.write(run_record(job), durable=False)
            one.close()
    assert await working == ""
    assert make_report(world.out).states == {"completed": 6}
    begun = {run.partition("-t")[2] for run in engine.begun}
    again = {"0-2", "1-2"} if ends == "dies" else set[str]()
    assert begun == {"2-1", "3-1", "4-1", "5-1"} | again


async def test_a_budget_is_kept_and_can_be_raised(world: BatchWorld) -> None:
    async def do(job: Job) -> None:
        put_record(job, **cost(1.0))

    engine = ScriptedEngine(do)
    stopped = await world.work(world.open(jobs=4, budget=read_budget("3.5 cny")), engine)
    assert "budget of 3.5 CNY is used up" in stopped
    assert len(engine.begun) == 3
    assert make_report(world.out).stopped == stopped
    assert await world.work(world.reopen(budget=read_budget("10CNY")), engine) == ""
    assert len(engine.begun) == 6


async def test_a_budget_without_a_price_begins_one_and_no_more(world: BatchWorld) -> None:
    async def do(job: Job) -> None:
        put_record(job, **cost(1.0, "EUR"))

    engine = ScriptedEngine(do)
    stopped = await world.work(world.open(jobs=4, budget=read_budget("5CNY")), engine)
    assert stopped.endswith("billed in EUR, so a budget in CNY cannot be kept: give one in EUR")
    assert len(engine.begun) == 1
    assert await world.work(world.reopen(budget=read_budget("50EUR")), engine) == ""
    assert len(engine.begun) == 6


async def test_failures_end_it_and_are_repeated_where_asked(world: BatchWorld) -> None:
    async def do(job: Job) -> None:
        put_record(job, "failed", **refused("Network"))

    engine = ScriptedEngine(do)
    stopped = await world.work(world.open(jobs=1, max_failures=2), engine)
    assert stopped == "2 tasks failed"
    assert len(engine.begun) == 2
    folder = world.reopen()
    assert try_again(folder, world.clock) == 2
    assert await world.work(folder, ScriptedEngine()) == ""
    report = make_report(world.out)
    assert (report.states, report.runs) == ({"completed": 6}, 8)


async def test_a_rate_limit_slows_the_batch_and_fails_no_task(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kode_sidecar.jobs.batch.limits._FIRST_PAUSE", 0.05)
    seen: list[str] = []

    async def do(job: Job) -> None:
        seen.append(job.task.id)
        if len(seen) in (3, 4):
            put_record(job, "failed", **refused("RateLimited"))
        else:
            put_record(job)

    assert await world.work(world.open(jobs=4), ScriptedEngine(do)) == ""
    report = make_report(world.out)
    assert (report.states, report.runs) == ({"completed": 6}, 8)


async def test_only_tasks_that_changed_are_done_again(world: BatchWorld) -> None:
    await world.work(world.open(), ScriptedEngine())
    world.write_tasks({"id": "t0"}, {"id": "t1", "prompt": "Do more."}, {"id": "new"})
    engine = ScriptedEngine()
    await world.work(world.open(), engine)
    begun = {run.rsplit("-", 2)[1] for run in engine.begun}
    assert begun == {"t1", "new"}
    report = make_report(world.out)
    assert (report.tasks, report.states) == (3, {"completed": 3})


async def test_two_cannot_work_on_one_batch(world: BatchWorld) -> None:
    folder = world.open()
    with pytest.raises(KodeError, match="Another process"):
        world.reopen()
    folder.close()


async def test_a_failing_engine_ends_the_batch_with_its_error(world: BatchWorld) -> None:
    async def do(_job: Job) -> None:
        raise KodeError("ToolFailed", "there is no such program")

    with pytest.raises(KodeError, match="no such program"):
        await world.work(world.open(), ScriptedEngine(do))
    assert set(make_report(world.out).states) <= {"pending", "running", "cut"}
