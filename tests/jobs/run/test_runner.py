"""A run and its records, whatever becomes of it (B4-B7, B11, B13)."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.domain.run import RunEvent
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.run_records import RunRecords, list_runs, read_run
from tests.support.headless_world import HEAD, KEY, SCRIPTED, HeadlessWorld, RunFiles, call
from tests.support.turn_world import ScriptedModel, says

STEPS = (
    "config",
    "ids",
    "sandbox",
    "records",
    "skills",
    "memory",
    "prompt",
    "tools",
    "engine",
    "deliverables",
    "final",
)
ALWAYS = {"run.json", "events.jsonl", "transcript.md"}


@pytest.fixture
def world(tmp_path: Path) -> HeadlessWorld:
    return HeadlessWorld(tmp_path)


# B5 B13
async def test_a_run_leaves_all_its_records(world: HeadlessWorld) -> None:
    look = {"say": "Looking.", "calls": [call("list_files", directory="workspace")]}
    world.write(SCRIPTED, [look, {"say": "Nothing to do."}])
    result = await world.run("Look around.", session_id="s-1", task_id="t-1", run_id="r-1")
    assert (result.status, result.governance, result.exit_code) == ("completed", "passed", 0)
    assert result.final_text == "Nothing to do."
    files = RunFiles(result.sandbox_root)
    assert files.folder == world.services.storage_root / "runs" / "r-1"
    record = files.run
    assert (record["status"], record["step"], record["error"]) == ("completed", "final", None)
    assert (record["session_id"], record["task_id"]) == ("s-1", "t-1")
    assert record["profile_id"] == "tester"
    assert record["created_at"] <= record["started_at"] <= record["completed_at"]
    assert files.text("prompt.md") == "Look around."
    assert "You test things." in files.text("effective-prompt.md")
    assert files.text("config.yaml").startswith("kgent:\n  schema_version: 1\n")
    events = files.events
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert {(e["run_id"], e["session_id"], e["task_id"]) for e in events} == {("r-1", "s-1", "t-1")}
    done = [event["correlation_id"] for event in events if event["type"] == "step.completed"]
    assert tuple(done) == STEPS
    assert files.types()[-2:] == ["governance.decided", "run.completed"]
    (tool,) = files.lines("logs/tools.jsonl")
    assert (tool["tool_name"], tool["action"], tool["status"]) == ("list_files", "workspace", "ok")
    transcript = files.text("transcript.md")
    parts = ["# Run r-1", "## Prompt", "## Conversation", "## Tool calls", "## Deliverables"]
    places = [transcript.index(part) for part in [*parts, "## Outcome"]]
    assert places == sorted(places)
    assert files.lines("logs/errors.jsonl") == []
    assert world.bugs == []


# B4
async def test_the_manifests_tell_zones_and_artifacts(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}deliverables: [{{path: workspace/notes.md, required: false}}]\n", [])
    run = world.make()
    (Path(run.record.sandbox_root) / "workspace").mkdir()
    (Path(run.record.sandbox_root) / "workspace" / "notes.md").write_text("x")
    files = RunFiles((await run.run()).sandbox_root)
    sandbox = json.loads(files.text("sandbox-manifest.json"))
    assert sandbox["root"] == str(files.folder)
    assert sandbox["writable"] == ["workspace", "deliverables"]
    assert sandbox["readonly"] == ["archive"]
    assert "run.json" in sandbox["forbidden"]
    (artifact,) = json.loads(files.text("artifact-manifest.json"))["artifacts"]
    assert (artifact["path"], artifact["required"]) == ("workspace/notes.md", False)


# B11
async def test_a_missing_deliverable_is_incomplete(world: HeadlessWorld) -> None:
    wanted = (
        "deliverables:\n- path: deliverables/a.md\n- path: deliverables/b.md\n  required: false\n"
    )
    world.write(f"{SCRIPTED}{wanted}", [{"say": "Done."}])
    result = await world.run()
    assert (result.status, result.governance, result.exit_code) == ("incomplete", "incomplete", 3)
    files = RunFiles(result.sandbox_root)
    assert files.run["failure_reason"] == "DeliverableMissing"
    assert files.run["error"]["details"] == {"paths": ["deliverables/a.md"]}
    assert [e["error"]["code"] for e in files.lines("logs/errors.jsonl")] == ["DeliverableMissing"]
    assert "deliverables/b.md | no | is missing" in files.text("transcript.md")


# B11
@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
async def test_a_deliverable_that_leads_elsewhere_is_none(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}deliverables: [{{path: deliverables/a.md}}]\n", [])
    run = world.make()
    folder = Path(run.record.sandbox_root) / "deliverables"
    folder.mkdir()
    (folder / "a.md").symlink_to(world.folder / "job.yaml")
    result = await run.run()
    assert (result.status, result.exit_code) == ("incomplete", 3)
    assert "path.refused" in RunFiles(result.sandbox_root).types()


# B11 B13 W11
@pytest.mark.parametrize(
    ("config", "code", "step"),
    [
        ("profile: {id: a, role: b}\n", "ConfigInvalid", "config"),
        (f"{SCRIPTED}deliverables: [{{path: ../a.md}}]\n", "PathOutsideRoots", "config"),
        (f"{SCRIPTED}skills: {{folders: ['//host/x']}}\n", "PathOutsideRoots", "skills"),
        (f"{HEAD}runtime: {{engine: scripted, script: ../s.yaml}}\n", "PathOutsideRoots", "tools"),
        (f"{HEAD}runtime: {{engine: scripted, script: no.yaml}}\n", "ConfigInvalid", "tools"),
    ],
)
async def test_what_is_wrong_before_the_engine_blocks(
    world: HeadlessWorld, config: str, code: str, step: str
) -> None:
    world.write(config, [{"say": "never"}])
    result = await world.run()
    assert (result.status, result.governance, result.exit_code) == ("failed", "blocked", 4)
    files = RunFiles(result.sandbox_root)
    assert (files.run["failure_reason"], files.run["step"]) == (code, step)
    assert {path.name for path in files.folder.iterdir()} >= ALWAYS
    (error,) = files.lines("logs/errors.jsonl")
    assert (error["where"], error["error"]["code"]) == (step, code)
    assert ("path.refused" in files.types()) == (code == "PathOutsideRoots")
    assert "model.asked" not in files.types()
    assert files.text("transcript.md").count("## Outcome") == 1


# B8
async def test_an_enabled_skill_that_is_missing_fails(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}skills: {{enabled: [nowhere]}}\n")
    result = await world.run()
    assert (result.status, result.governance, result.exit_code) == ("failed", "failed", 1)
    assert RunFiles(result.sandbox_root).run["failure_reason"] == "SkillNotFound"


# B13 W11
@pytest.mark.parametrize("bad", ["../up", "CON", "a/b", "a:b", "x.", "-a", "a" * 129])
async def test_an_unsafe_id_names_no_folder(world: HeadlessWorld, bad: str) -> None:
    world.write(SCRIPTED)
    result = await world.run(run_id=bad, session_id="fine")
    assert (result.exit_code, result.session_id) == (4, "fine")
    assert result.run_id != bad
    files = RunFiles(result.sandbox_root)
    assert (files.folder.parent, files.run["step"]) == (world.folder / "home" / "runs", "ids")
    assert files.types().count("path.refused") == 1


# B11
async def test_a_failing_engine_fails_the_run(world: HeadlessWorld) -> None:
    world.write(SCRIPTED, [{"say": "Hm.", "calls": [call("nothing")]}, {"fail": "no more"}])
    result = await world.run()
    assert (result.status, result.governance, result.exit_code) == ("failed", "failed", 1)
    files = RunFiles(result.sandbox_root)
    assert files.run["step"] == "engine"
    codes = [line["error"]["code"] for line in files.lines("logs/errors.jsonl")]
    assert codes == ["UnknownTool", "Provider"]


# B9
async def test_a_refused_call_is_recorded_and_the_run_goes_on(world: HeadlessWorld) -> None:
    reading = {"calls": [call("read_file", path="../../etc/passwd")]}
    world.write(SCRIPTED, [reading, {"say": "Went on."}])
    result = await world.run()
    assert (result.status, result.final_text) == ("completed", "Went on.")
    files = RunFiles(result.sandbox_root)
    (line,) = files.lines("logs/tools.jsonl")
    assert (line["status"], line["error"]["code"]) == ("denied", "PathOutsideRoots")
    refused = [e for e in files.events if e["type"] in ("tool.refused", "path.refused")]
    assert [e["correlation_id"] for e in refused] == ["call-1-1"] * 2


# B12
async def test_steps_are_limited(world: HeadlessWorld) -> None:
    steps: list[Any] = [
        {"say": f"{n}", "calls": [call("list_files", directory=".")]} for n in range(9)
    ]
    world.write(SCRIPTED, steps)
    result = await world.run(max_steps=3)
    assert (result.status, result.final_text) == ("completed", "2")
    assert RunFiles(result.sandbox_root).types().count("model.asked") == 3


# B1
async def test_a_dry_run_stops_before_the_engine(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}deliverables: [{{path: deliverables/a.md}}]\n", [{"say": "never"}])
    result = await world.run(dry_run=True)
    assert (result.status, result.exit_code) == ("pending", 0)
    files = RunFiles(result.sandbox_root)
    assert "You test things." in files.text("effective-prompt.md")
    assert "model.asked" not in files.types()
    assert read_run(files.folder).status == "pending"


async def test_the_prompt_may_be_a_file_and_must_say_something(world: HeadlessWorld) -> None:
    world.write(SCRIPTED)
    (world.folder / "task.md").write_text("Do this.", encoding="utf-8")
    assert (await world.run(world.folder / "task.md")).status == "completed"
    for prompt in (" \n", world.folder / "none.md"):
        result = await world.run(prompt)
        assert (result.exit_code, result.error.code if result.error else "") == (4, "ConfigInvalid")


# B1 B7
async def test_a_cancelled_run_says_so(world: HeadlessWorld) -> None:
    world.write(SCRIPTED, [{"calls": [call("list_files", directory=".")]}] * 50)

    def watch(event: Any) -> None:
        if isinstance(event, RunEvent) and event.type == "model.asked":
            run.cancelled.set()

    run = world.make(watch=watch)
    result = await run.run()
    assert (result.status, result.governance, result.exit_code) == ("cancelled", None, 130)
    files = RunFiles(result.sandbox_root)
    assert files.run["failure_reason"] == "Cancelled"
    assert files.types()[-1] == "run.cancelled"


async def test_a_cancelled_task_leaves_a_true_record(world: HeadlessWorld) -> None:
    world.write(SCRIPTED, [{"calls": [call("list_files", directory=".")]}] * 50)
    begun = asyncio.Event()
    run = world.make(watch=lambda _: begun.set())
    task = asyncio.create_task(run.run())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read_run(Path(run.record.sandbox_root)).status == "cancelled"


# B5 W14 W20
async def test_a_large_value_becomes_an_artifact_and_a_secret_is_nowhere(
    world: HeadlessWorld,
) -> None:
    token = "ghp_" + "a1B2" * 10
    long = "many words " * 1_000
    asked = [call("search_code", query=long), call("search_code", query=f"x {token}")]
    world.write(SCRIPTED, [{"say": f"{KEY} and {token}", "calls": asked}, {"say": "Bye."}])
    result = await world.run(f"Use {KEY}.")
    files = RunFiles(result.sandbox_root)
    assert KEY not in files.all_text()
    assert token not in files.all_text()
    for name in ("events.jsonl", "transcript.md", "run.json", "logs/tools.jsonl"):
        assert long not in files.text(name), name
    started = [event for event in files.events if event["type"] == "tool.started"]
    moved = [event["data"]["arguments"]["query"] for event in started]
    assert files.text(moved[0]["artifact"]) == long
    assert moved[1] == "x [a GitHub token]"
    named = json.loads(files.text("artifact-manifest.json"))["artifacts"]
    assert {one["path"] for one in named} >= {moved[0]["artifact"]}
    assert all(len(line) < 12_000 for line in files.text("events.jsonl").splitlines())


# B4
async def test_everything_delivered_is_in_the_manifest(world: HeadlessWorld) -> None:
    """Who made it is kept, and what was made without being asked for is noted, too."""
    wanted = "deliverables: [{path: deliverables/a.md, content_type: text/x-report}]\n"
    writes = [
        call("write_artifact", path=f"deliverables/{n}", content="x") for n in ("a.md", "b.md")
    ]
    world.write(f"{SCRIPTED}{wanted}", [{"calls": writes}, {"say": "Done."}])
    run = world.make()
    (Path(run.record.sandbox_root) / "deliverables").mkdir()
    (Path(run.record.sandbox_root) / "deliverables" / "c.bin").write_bytes(b"x")
    result = await run.run()
    assert result.status == "completed"
    found = json.loads(RunFiles(result.sandbox_root).text("artifact-manifest.json"))["artifacts"]
    assert [(one["path"], one["created_by"], one["required"]) for one in found] == [
        ("deliverables/a.md", "write_artifact", True),
        ("deliverables/b.md", "write_artifact", False),
        ("deliverables/c.bin", "unknown", False),
    ]
    assert found[0]["content_type"] == "text/x-report"
    assert [one["content_type"] for one in found[1:]] == ["text/markdown", None]  # B5: null, not ""


# W14
async def test_a_credential_is_taken_out_of_a_text_and_the_rest_stays(
    world: HeadlessWorld,
) -> None:
    kind = "RSA PRIVATE KEY-----"
    key = f"-----BEGIN {kind}\n{'QUJD' * 20}\n{'REVG' * 20}\n-----END {kind}"
    world.write(SCRIPTED, [{"say": f"Before {key} after, and AKIA{'Z7' * 8} too."}])
    result = await world.run()
    assert result.final_text == "Before [a private key] after, and [an AWS access key] too."
    files = RunFiles(result.sandbox_root)
    assert "REVG" not in files.text("transcript.md") + files.text("run.json")


# B5 B13
async def test_a_folder_holds_one_run(world: HeadlessWorld) -> None:
    world.write(SCRIPTED)
    result = await world.run(sandbox=world.folder / "box")
    assert result.sandbox_root == os.path.realpath(world.folder / "box")
    before = RunFiles(result.sandbox_root).text("run.json")
    with pytest.raises(KodeError, match="There is a run in this folder already") as refused:
        world.make(sandbox=world.folder / "box")
    assert refused.value.code == "ReadOnly"
    assert RunFiles(result.sandbox_root).text("run.json") == before


# B5
async def test_a_run_without_its_process_has_failed(world: HeadlessWorld) -> None:
    world.write(SCRIPTED)
    run = world.make(run_id="r-1")
    folder = Path(run.record.sandbox_root)
    assert read_run(folder).status == "pending", "it holds its lock"
    run._records.close()  # as the system does when the process is gone
    found = read_run(folder)
    assert (found.status, found.failure_reason) == ("failed", "RunDied")
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "run.json").write_text("{")
    listed = list(list_runs(folder.parent))
    assert [getattr(one, "run_id", "") for one in listed] == ["r-1", ""]
    assert isinstance(listed[1], KodeError)
    with pytest.raises(KodeError) as missing:
        read_run(folder.parent / "none")
    assert missing.value.code == "RunNotFound"


# B5 B13
@pytest.mark.parametrize("after", range(0, 12, 3))
async def test_a_failing_disk_is_no_success(
    world: HeadlessWorld, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of events cannot be written any more, at any place; run.json still can."""
    world.write(SCRIPTED, [{"say": "a", "calls": [call("list_files", directory=".")]}] * 3)
    append, count = RunRecords.append, [0]

    def failing(self: RunRecords, name: str, line: Any) -> None:
        count[0] += 1
        if count[0] > 20 + after:
            raise KodeError("Storage", "not saved: events.jsonl: no space")
        append(self, name, line)

    monkeypatch.setattr(RunRecords, "append", failing)
    result = await world.run()
    assert (result.status, result.error.code if result.error else "") == ("failed", "Storage")
    assert RunFiles(result.sandbox_root).run["status"] == "failed"


async def test_a_run_costs_no_more_than_its_budget(world: HeadlessWorld) -> None:
    """What could go beyond it is not sent; the world's prices are one for a million tokens."""
    model = ScriptedModel(says("Fine."), says("Fine."))
    world.answer_with(model)
    world.write(f"{HEAD}runtime: {{budget: 1CNY}}\n")
    assert (await world.run()).status == "completed"
    result = await world.run(fields={"runtime.budget": "0.0001 cny"})
    assert (result.status, result.error.code if result.error else "") == ("failed", "BudgetReached")
    assert result.error is not None
    assert "raise `runtime.budget` in " in result.error.message
    assert RunFiles(result.sandbox_root).run["config_path"] in result.error.message
    assert len(model.requests) == 1
    for wrong in ("lots", "20", 5):
        refused = await world.run(fields={"runtime.budget": wrong})
        assert refused.error is not None
        assert refused.error.code == "ConfigInvalid"
    refused = await world.run(fields={"runtime.budget": "1CNY", "runtime.engine": "pydantic-ai"})
    assert refused.error is not None
    assert refused.error.code == "ConfigInvalid"
