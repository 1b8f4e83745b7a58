"""The batches in `examples`, run as their READMEs say, against a model that plays its part. F10"""

import asyncio
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from kode_sidecar.core.text.yaml_text import read_yaml
from kode_sidecar.devtools.demo.model_server import ModelServer, RecordedResponse, Recording
from kode_sidecar.jobs.run.run_config import read_run_config
from kode_sidecar.terminal.cli.parser import make_parser
from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

EXAMPLES = ROOT / "examples"
REPORT = "deliverables/report.md"


async def run(folder: Path, model: ModelServer, *argv: str) -> tuple[int | None, str]:
    """A command of a README: its exit code, and what it said."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "KIMI_API_KEY": "recorded",
        "KIMI_BASE_URL": model.base_url,
        "PATH": os.pathsep.join([str(folder.parent), os.environ["PATH"]]),
    }
    child = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(HANG_SECONDS):
        out, err = await child.communicate()
    return child.returncode, out.decode() or err.decode()


def delivers(path: str) -> list[RecordedResponse]:
    made = tool_call("write_artifact", {"path": path, "content": "All is well.\n"})
    return [answer(made), answer(text("Done."))]


@pytest.mark.program
async def test_a_matrix_over_models_ends_in_one_table(tmp_path: Path) -> None:
    for name in ("model-matrix", "review-a-diff"):
        shutil.copytree(EXAMPLES / name, tmp_path / name)
    folder, job = tmp_path / "model-matrix", tmp_path / "review-a-diff"
    findings = tool_call(
        "write_artifact", {"path": "deliverables/findings.json", "content": "[]\n"}
    )
    one = [answer(findings), *delivers("deliverables/review.md")]
    names = ("kimi-k2.6", "kimi-k3")
    async with ModelServer(Recording((*one, *one), names), paced=False) as model:
        made = (sys.executable, "matrix.py", str(job / "project"), "--models")
        code, lines = await run(folder, model, *made, "kimi-k2.6", "kimi-k3")
        assert code == 0, lines
        (folder / "tasks.jsonl").write_text(lines, encoding="utf-8")
        assert [json.loads(line)["id"] for line in lines.splitlines()] == [
            "project-kimi-k2.6",
            "project-kimi-k3",
        ]
        words = ("--config", str(job / "review.yaml"), "--prompt-file", str(job / "task.md"))
        more = ("--tasks", "tasks.jsonl", "--out", "out", "--jobs", "1")
        code, reported = await run(folder, model, *PROGRAM, "batch", *words, *more)
        assert code == 0, reported
        assert {chat.body["model"] for chat in model.chats} == {"kimi-k2.6", "kimi-k3"}
    table = (folder / "out" / "report.md").read_text(encoding="utf-8")
    for name in ("kimi-k2.6", "kimi-k3"):
        assert f"| {name} | 1 | 1 |" in table


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
async def test_the_nightly_batch_begins_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "nightly-batch"
    shutil.copytree(EXAMPLES / "nightly-batch", folder)
    write(tmp_path, {"repositories/one/a.py": "1\n"})
    started = tmp_path / "kode-sidecar"
    started.write_text(f'#!/bin/sh\nexec {" ".join(map(str, PROGRAM))} "$@"\n', encoding="utf-8")
    started.chmod(0o755)
    async with ModelServer(Recording(tuple(delivers(REPORT))), paced=False) as model:
        for _ in range(2):
            words = (str(tmp_path / "repositories"), str(tmp_path / "batches"))
            code, reported = await run(folder, model, "./nightly.sh", *words)
            assert code == 0, reported
        assert len(model.chats) == 2, "the second time there was nothing to do"
    assert len(list(tmp_path.glob(f"batches/*/runs/one/1/{REPORT}"))) == 1


def test_the_job_and_the_workflow_can_be_read() -> None:
    assert read_run_config(EXAMPLES / "nightly-batch" / "job.yaml").profile.id == "nightly-tests"
    flow = (EXAMPLES / "pull-request-review" / "review.yml").read_text(encoding="utf-8")
    value = read_yaml(flow, only_text=True).value
    assert isinstance(value, dict)
    steps = [one.get("run", "") for one in value["jobs"]["review"]["steps"]]  # type: ignore[index]
    (command,) = (one for one in steps if one.startswith("kode-sidecar review"))
    words = shlex.split(command)[1:]
    options = make_parser(words).parse_args(words)
    assert (options.command, options.range, options.format) == (
        "review",
        "origin/$BASE...HEAD",
        "github",
    )
    assert options.fail_on == "error"
    assert value["permissions"]["contents"] == "read"  # type: ignore[index]
