"""The demo of governed runs: one delivers, three end as they must (B4-B11)."""

import io
import json
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo import DemoOptions, play_job
from kode_sidecar.devtools.demo.model_server import load_recording
from kode_sidecar.devtools.demo.play_job import CONFIG, DELIVERABLE, DELIVERING_ANSWER
from kode_sidecar.devtools.demo.stage import HERE
from kode_sidecar.jobs.run.run_config import read_run_config
from tests.devtools.demo.test_demo_files import tool_calls


# B1 B4 B8 B10 B11
async def test_the_runs_end_as_they_must(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    out = io.StringIO()
    code = await play_job(DemoOptions(locale="en"), out)
    shown = out.getvalue()
    assert code == 0, shown
    ends = [line for line in shown.splitlines() if line.startswith("→")]
    assert ends == [
        "→ completed, governance passed, exit code 0",
        "→ incomplete, governance incomplete, exit code 3",
        "→ failed, governance blocked, exit code 4",
        "→ failed, governance failed, exit code 1",
    ]
    assert "  skill.enabled       receipt-review: Reviewing receipts" in shown
    runs = sorted(tmp_path.glob("kode-demo-*/home/runs/*"))
    assert len(runs) == 4
    candidates = (runs[0] / "archive" / "candidate-memory.jsonl").read_text("utf-8")
    assert json.loads(candidates)["state"] == "candidate"
    failures = [(run / "logs" / "errors.jsonl").read_text("utf-8") for run in runs[1:]]
    codes = [json.loads(text.splitlines()[-1])["error"]["code"] for text in failures]
    assert codes == ["DeliverableMissing", "PathOutsideRoots", "Provider"]
    assert all(b"sk-demo" not in f.read_bytes() for r in runs for f in r.rglob("*") if f.is_file())


@pytest.mark.parametrize("language", ["zh", "en"])
def test_both_languages_have_the_same_job(language: str) -> None:
    config = read_run_config(HERE / "job" / language / CONFIG)
    assert [one.path for one in config.deliverables] == [DELIVERABLE]
    answers = load_recording(HERE / "job" / language / "recording", 0).responses
    calls = [tool_calls(answer.body) for answer in answers]
    names = [[call["name"] for call in answer] for answer in calls]
    assert names == [
        ["load_skill", "list_files"],
        ["read_file", "read_file"],
        ["write_memory"],
        ["write_artifact"],
        [],
    ]
    (writing,) = calls[DELIVERING_ANSWER]
    assert writing["arguments"]["path"] == DELIVERABLE
