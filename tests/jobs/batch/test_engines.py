"""One suite over all engines: the same tasks, the same deliverables, the same report. F10"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.jobs.batch import make_report
from tests.conftest import FULL
from tests.support.files import write
from tests.support.program import BUILT, PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.program

JOB = """\
kgent: {schema_version: 1}
profile: {id: tester, role: You test things.}
deliverables: [{path: deliverables/report.md}]
runtime: {engine: scripted, script: scripts/script.yaml}
"""
REPORT = {"path": "deliverables/report.md", "content": "All is well. 茶\n"}
EDIT = {"path": "workspace/a.txt", "edits": [{"old": "one", "new": "two"}]}
STEPS = [
    {
        "calls": [
            {"tool": "write_artifact", "arguments": REPORT},
            {"tool": "read_file", "arguments": {"path": "workspace/a.txt"}},
            {"tool": "propose_edit", "arguments": EDIT},
        ]
    },
    {"say": "Done."},
]
TASKS = 200 if FULL else 3


def write_job(folder: Path, tasks: int = 3) -> None:
    script = {"scripts/script.yaml": json.dumps({"steps": STEPS}), "job.yaml": JOB}
    projects = {f"repos/r{number}/a.txt": "one\r\n" for number in range(tasks)}
    write(folder, {**script, **projects})


async def batch(
    folder: Path, *words: str, without: str = "", **options: Any
) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    environment.pop(without, None)
    return await asyncio.create_subprocess_exec(
        *(*PROGRAM, "batch", *words),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


NEW = ("--config", "job.yaml", "--tasks", "repos", "--prompt", "Do it.", "--out", "out")


async def ended(
    child: asyncio.subprocess.Process, seconds: float = HANG_SECONDS
) -> tuple[int | None, str, str]:
    async with asyncio.timeout(max(seconds, HANG_SECONDS)):
        out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()


async def test_nothing_is_begun_while_a_key_is_missing(tmp_path: Path) -> None:
    """What would fail for every task is told once, with the exit code of a batch not begun."""
    write_job(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB.partition("runtime:")[0], encoding="utf-8")
    for words in (NEW, ("resume", "out")):
        child = await batch(tmp_path, *words, without="KIMI_API_KEY")
        code, reported, said = await ended(child)
        assert (code, reported) == (1, "")
        assert "set KIMI_API_KEY" in said
    assert make_report(tmp_path / "out").states == {"pending": 3}


def delivered(folder: Path) -> dict[str, bytes]:
    """All deliverables of a batch, by their paths."""
    found = sorted((folder / "out" / "runs").glob("*/*/deliverables/*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def plain_report(folder: Path) -> Any:
    """The report without what no two runs have in common."""
    report = json.loads((folder / "out" / "report.json").read_bytes())
    for name in ("batch_id", "created_at", "config_path", "seconds"):
        del report[name]
    for row in (*report["rows"], *report["models"]):
        for name in ("seconds", "started_at", "worker"):
            row.pop(name, None)
    return report


@pytest.mark.skipif(BUILT is not None, reason="the built program leaves the extra `dask` out")
async def test_all_engines_deliver_and_report_the_same(tmp_path: Path) -> None:
    seen: list[tuple[Any, Any]] = []
    for name, words in (
        ("local", ()),
        ("archives", ("--dask", "local", "--archives")),
    ):
        folder = tmp_path / name
        write_job(folder, TASKS)
        code, out, err = await ended(await batch(folder, *NEW, "--json", *words), 20 * TASKS)
        assert code == 0, err
        assert json.loads(out)["states"] == {"completed": TASKS}
        reported = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
        assert [line["done"] for line in reported] == list(range(1, TASKS + 1)), err
        seen.append((delivered(folder), plain_report(folder)))
    assert len(seen[0][0]) == 2 * TASKS
    assert seen[0] == seen[1]
    assert b"-one\r\n+two\r\n" in seen[0][0]["out/runs/r0/1/deliverables/changes.patch"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
async def test_ctrl_c_ends_it_and_resume_goes_on(tmp_path: Path) -> None:
    write_job(tmp_path)
    child = await batch(tmp_path, *NEW, "--jobs", "1")
    assert child.stderr is not None
    async with asyncio.timeout(HANG_SECONDS):
        await child.stderr.readline()  # one is done
    child.send_signal(signal.SIGINT)
    code, _, _ = await ended(child)
    assert code == 130
    status = await ended(await batch(tmp_path, "status", "out", "--json"))
    assert status[0] == 3
    assert json.loads(status[1])["stopped"] == "cancelled"
    code, out, err = await ended(await batch(tmp_path, "resume", "out"))
    assert code == 0, err
    assert "3 tasks: 3 completed" in out
    assert len(delivered(tmp_path)) == 6, "nothing twice: what was cut delivered nothing"
    shutil.rmtree(tmp_path / "out" / "runs")
    assert (await ended(await batch(tmp_path, "report", "out")))[1].strip() == "out/report.html"
    assert make_report(tmp_path / "out").states == {"completed": 3}


async def test_a_dry_run_says_what_is_missing_and_makes_nothing(tmp_path: Path) -> None:
    write_job(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB.replace("runtime:", "# runtime:"), encoding="utf-8")
    code, out, _ = await ended(await batch(tmp_path, *NEW, "--dry-run"))
    assert code == 1
    assert "3 tasks with ide-chat" in out
    assert "KIMI_API_KEY" in out
    assert not (tmp_path / "out").exists()
    assert (await ended(await batch(tmp_path, "--config", "job.yaml")))[0] == 2
    code, _, err = await ended(await batch(tmp_path, *NEW, "--budget", "lots"))
    assert (code, "such as 20CNY" in err) == (1, True)
