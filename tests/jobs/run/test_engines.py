"""One suite over all engines: the same job, the same records, the same ends. B9 B12 W11

`native` and `pydantic-ai` ask a real OpenAI-compatible server on loopback.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.domain.agent_event import BlockDelta
from kode_sidecar.core.domain.run import RunResult
from kode_sidecar.devtools.demo.model_server import ModelServer, Piece, RecordedResponse, Recording
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.jobs.run import HeadlessRun
from tests.support.calling_home import STAYS, calling_home
from tests.support.files import write
from tests.support.headless_world import HEAD, KEY, HeadlessWorld, Json, RunFiles, call
from tests.support.model_script import answer, failure, text, tool_call
from tests.support.processes import gone
from tests.support.sidecar import HANG_SECONDS

ENGINES = ("native", "scripted", "pydantic-ai")
ASKING = ("native", "pydantic-ai")
MODEL = "kimi-k2.6"
REPORT = "deliverables: [{path: deliverables/report.md}]\n"
PYTHON = Path(sys.executable)


def step(say: str = "", *calls: Json) -> Json:
    return {"say": say, "calls": list(calls)}


class Job:
    """A job for one engine, and its model, which plays what the test says."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder = folder
        self.engine = engine
        self.server: ModelServer | None = None
        self.chat: ChatClient | None = None
        self.world = HeadlessWorld(folder)

    def make(
        self, steps: Sequence[Json | RecordedResponse], config: str = "", **options: Any
    ) -> HeadlessRun:
        """A run, not yet started. `stream` is an option like others."""
        whole = options.get("stream") is False
        scripted = [one for one in steps if isinstance(one, dict)]
        script = "\n  script: script.yaml" if self.engine == "scripted" else ""
        runtime = f"runtime:\n  engine: {self.engine}{script}\n"
        head = f"{HEAD}model: {MODEL}\n{runtime}"
        if self.server is not None:
            self.server.record([_answer(one, whole=whole) for one in steps])
        self.world.write(f"{head}{config}", scripted)
        return self.world.make(**options)

    async def run(self, *args: Any, **options: Any) -> tuple[RunResult, RunFiles]:
        async with asyncio.timeout(HANG_SECONDS):
            result = await self.make(*args, **options).run()
        assert self.world.bugs == []
        files = RunFiles(result.sandbox_root)
        assert KEY not in files.all_text()
        return result, files

    def reported(self) -> list[str]:
        """What the tools said to the model, where it was asked."""
        assert self.server is not None
        messages = self.server.chats[-1].body["messages"]
        return [m["content"] for m in messages if m["role"] == "tool"]


class Recorder(ModelServer):
    """A server that can be given its answers later."""

    def record(self, answers: Sequence[RecordedResponse]) -> None:
        self._recording = Recording(tuple(answers))


def _answer(one: Json | RecordedResponse, *, whole: bool) -> RecordedResponse:
    if isinstance(one, RecordedResponse):
        return one
    if whole:
        return _whole(one)
    calls = [
        tool_call(made["tool"], made["arguments"], call_id=f"c{number}")
        for number, made in enumerate(one["calls"])
    ]
    return answer(*([text(one["say"])] if one["say"] else []), *calls)


def _whole(one: Json) -> RecordedResponse:
    """An answer that does not stream."""
    calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": made["tool"], "arguments": json.dumps(made["arguments"])},
        }
        for number, made in enumerate(one["calls"])
    ]
    message = {"role": "assistant", "content": one["say"], "tool_calls": calls or None}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    return RecordedResponse((Piece(json.dumps(body).encode()),), content_type="application/json")


async def opened(tmp_path: Path, engine: str) -> AsyncIterator[Job]:
    job = Job(tmp_path, engine)
    if engine == "scripted":
        yield job
        return
    async with Recorder(Recording(()), paced=False) as server:
        job.server = server
        job.world = HeadlessWorld(tmp_path, base_url=server.base_url)
        chat = ChatClient(job.world.registry, HttpClient)
        job.world.answer_with(chat)
        try:
            yield job
        finally:
            await chat.aclose()


@pytest.fixture(params=ENGINES)
async def job(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Job]:
    """All engines."""
    async for one in opened(tmp_path, request.param):
        yield one


@pytest.fixture(params=ASKING)
async def asking(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Job]:
    """The engines that ask a model."""
    async for one in opened(tmp_path, request.param):
        yield one


WORK = [
    step(
        "I look.",
        call("list_files", directory="workspace"),
        call("read_file", path="workspace/a.py"),
    ),
    step("", call("propose_edit", path="workspace/a.py", edits=[{"old": "one", "new": "1"}])),
    step("I report.", call("write_artifact", path="deliverables/report.md", content="# Fine\n")),
    step("All done."),
]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_job_is_done_and_recorded_alike(job: Job, stream: bool) -> None:
    write(job.folder, {"app/a.py": "one\n"})
    config = f"workspace: {{import: app}}\n{REPORT}"
    result, files = await job.run(WORK, config, stream=stream)
    assert (result.status, result.governance) == ("completed", "passed")
    assert result.final_text == "All done."
    assert files.text("deliverables/report.md") == "# Fine\n"
    assert files.text("deliverables/changes.patch").endswith("@@ -1 +1 @@\n-one\n+1\n")
    first = files.lines("events.jsonl")[0]
    assert first["parent_event_id"] is None  # B5
    assert all(isinstance(one["args_summary"], dict) for one in files.lines("logs/tools.jsonl"))
    tools = [(t["tool_name"], t["action"], t["status"]) for t in files.lines("logs/tools.jsonl")]
    assert [*sorted(tools[:2]), *tools[2:]] == [  # what only reads runs side by side
        ("list_files", "workspace", "ok"),
        ("read_file", "workspace/a.py", "ok"),
        ("propose_edit", "workspace/a.py", "ok"),
        ("write_artifact", "deliverables/report.md", "ok"),
    ]
    types = files.types()
    assert types.count("model.asked") == types.count("model.answered") == 4
    grown = [seen.add for seen in job.world.seen if isinstance(seen, BlockDelta)]
    assert ("".join(grown) == "I look.I report.All done.") == stream
    assert bool(grown) == stream
    names = [artifact["path"] for artifact in _artifacts(files)]
    assert names == [
        "archive/workspace-import.zip",
        "deliverables/changes.patch",
        "deliverables/report.md",
    ]


def _artifacts(files: RunFiles) -> list[Json]:
    return json.loads(files.text("artifact-manifest.json"))["artifacts"]


def _notes(files: RunFiles) -> list[str]:
    return [event["data"]["code"] for event in files.events if event["type"] == "engine.note"]


REFUSED: list[tuple[Json, str]] = [
    (call("run_command", argv=["git", "status"]), "Denied"),
    (call("propose_file", action="delete", path="workspace/a.py"), "Denied"),
    (call("read_file", path="../secret"), "PathOutsideRoots"),
    (call("write_artifact", path="/etc/passwd", content="x"), "PathOutsideRoots"),
    (call("write_artifact", path="logs/errors.jsonl", content="x"), "PathOutsideRoots"),
]


@pytest.mark.parametrize(("refused", "code"), REFUSED)
async def test_a_refused_call_is_a_result_and_an_event_and_the_run_goes_on(
    job: Job, refused: Json, code: str
) -> None:
    write(job.folder, {"app/a.py": "one\n"})
    steps = [step("", refused), step("", *WORK[2]["calls"]), step("Done without.")]
    result, files = await job.run(steps, f"workspace: {{import: app}}\n{REPORT}")
    assert (result.status, result.final_text) == ("completed", "Done without.")
    first, second = files.lines("logs/tools.jsonl")
    assert (first["status"], first["error"]["code"]) == ("denied", code)
    assert second["status"] == "ok"
    assert files.types().count("tool.refused") == 1
    (error,) = files.lines("logs/errors.jsonl")
    assert error["error"]["code"] == code
    assert ("path.refused" in files.types()) == (code == "PathOutsideRoots")
    if job.server is not None:
        assert first["error"]["message"] in job.reported()[0]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (call("read_file", lines=[1, 2]), "InvalidArguments"),
        (call("read_file", path="workspace/nothing"), "NotFound"),
    ],
)
async def test_a_failed_call_is_a_result_and_the_run_goes_on(
    job: Job, wrong: Json, code: str
) -> None:
    result, files = await job.run([step("", wrong), step("Done.")])
    assert result.status == "completed"
    (tool,) = files.lines("logs/tools.jsonl")
    assert (tool["status"], tool["error"]["code"]) == ("error", code)


async def test_a_tool_that_there_is_none_of(job: Job) -> None:
    result, files = await job.run([step("", call("fly", to="the moon")), step("Done.")])
    assert (result.status, result.final_text) == ("completed", "Done.")
    if job.server is not None:
        assert "no tool named 'fly'" in job.reported()[0]
        assert "UnknownTool" in _notes(files)


async def test_arguments_that_are_no_json(asking: Job) -> None:
    broken = answer(tool_call("read_file", '{"path": "a', call_id="c0"))
    result, files = await asking.run([broken, step("Done.")])
    assert (result.status, result.final_text) == ("completed", "Done.")
    assert "InvalidArguments" in _notes(files)
    assert files.lines("logs/tools.jsonl") == []


async def test_at_the_step_limit_the_model_sums_up_without_tools(asking: Job) -> None:
    look = step("", call("list_files", directory="workspace"))
    result, files = await asking.run([look, look, step("Summed up.")], max_steps=2)
    assert (result.status, result.final_text) == ("completed", "Summed up.")
    assert len(files.lines("logs/tools.jsonl")) == 2
    assert asking.server is not None
    last = asking.server.chats[-1].body
    assert last["messages"][-1] == {"role": "user", "content": "Sum up."}
    assert not last.get("tools") or last.get("tool_choice") == "none"


async def test_what_a_tool_says_too_much_is_kept(asking: Job) -> None:
    write(asking.folder, {f"app/{n:04}-{'x' * 200}.txt": "" for n in range(400)})
    steps = [step("", call("list_files", directory="workspace")), step("Done.")]
    result, files = await asking.run(steps, "workspace: {import: app}\n")
    assert result.status == "completed"
    assert (
        "characters; the whole output is kept for the user as artifact archive/"
        in (asking.reported()[0])
    )
    (kept,) = [one for one in _artifacts(files) if one["kind"] == "tool_output"]
    assert len(files.text(kept["path"])) > 60_000


async def test_a_host_that_refuses_the_key(asking: Job) -> None:
    refusal = failure(401, "invalid_authentication_error", f"Invalid key {KEY}")
    result, files = await asking.run([refusal])
    assert (result.status, result.governance, result.exit_code) == ("failed", "failed", 1)
    assert files.run["failure_reason"] == "AuthRequired"
    (error,) = files.lines("logs/errors.jsonl")
    assert (error["where"], error["error"]["http_status"]) == ("engine", 401)


async def test_an_answer_that_is_cut_off(asking: Job) -> None:
    result, files = await asking.run([answer(text("It is"), finish="length")])
    assert (result.status, files.run["failure_reason"]) == ("failed", "IncompleteAnswer")


async def test_an_engine_that_fails(job: Job) -> None:
    refusal = failure(400, "invalid_request_error", "no")
    steps: list[Any] = [{"fail": "The engine broke."}] if job.server is None else [refusal]
    result, files = await job.run(steps, REPORT)
    assert (result.status, result.exit_code) == ("failed", 1)
    assert [line["where"] for line in files.lines("logs/errors.jsonl")] == ["engine"]


def _staying(job: Job, port: str) -> tuple[list[Json], str]:
    """A step that runs a program which says that it runs, and stays."""
    shell = "tools: {shell: {enabled: true, timeout_seconds: 600}}\n"
    job.world.set_environ({**os.environ, "PATH": str(PYTHON.parent)})
    stay = call("run_command", argv=[PYTHON.name, "-c", STAYS, port])
    return [step("", stay), step("Done.")], shell


async def test_a_cancelled_run_ends_what_its_tools_started(job: Job) -> None:
    async with calling_home() as (port, called):
        run = job.make(*_staying(job, port))
        running = asyncio.create_task(run.run())
        (process_id,) = await asyncio.wait_for(called, HANG_SECONDS)
        run.cancelled.set()
        result = await asyncio.wait_for(running, HANG_SECONDS)
    assert (result.status, result.exit_code) == ("cancelled", 130)
    assert gone(process_id)
    (tool,) = RunFiles(result.sandbox_root).lines("logs/tools.jsonl")
    assert (tool["tool_name"], tool["status"]) == ("run_command", "cancelled")


async def test_a_run_out_of_time_ends_what_its_tools_started(job: Job) -> None:
    async with calling_home() as (port, called):
        result, files = await job.run(*_staying(job, port), timeout_seconds=4.0)
        assert (result.status, files.run["failure_reason"]) == ("failed", "RunTimedOut")
        (tool,) = files.lines("logs/tools.jsonl")
        assert (tool["tool_name"], tool["status"]) == ("run_command", "cancelled")
        assert not called.done() or gone(called.result()[0])


async def test_without_the_extra_the_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kode_sidecar.jobs.run.pydantic_ai_engine", None)
    async for job in opened(tmp_path, "pydantic-ai"):
        result, files = await job.run([step("Never.")])
        assert (result.status, result.exit_code) == ("failed", 4)
        assert files.run["failure_reason"] == "ConfigInvalid"
        assert 'pip install "kode-sidecar[pydantic-ai]"' in files.run["error"]["message"]
        assert job.server is not None
        assert job.server.requests == []
