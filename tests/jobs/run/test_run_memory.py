"""What a run is reminded of, and where its notes go (B10)."""

import json
from pathlib import Path

import pytest

from tests.support.headless_world import KEY, SCRIPTED, HeadlessWorld, RunFiles, call
from tests.support.raw_http import RawHttpServer

NOTE = {"say": "Noting.", "calls": [call("write_memory", content="Totals keep the jiao.")]}
DONE = {"say": "Done."}


@pytest.fixture
def world(tmp_path: Path) -> HeadlessWorld:
    return HeadlessWorld(tmp_path)


def http(status: str, **body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return f"{head}\r\n\r\n".encode() + data


def external(url: str, token: str = "MEMORY_TOKEN") -> str:
    service = f"{{url: {url}, token_env: {token}}}"
    return f"{SCRIPTED}memory: {{write_mode: external, scope: tea, external: {service}}}\n"


async def test_candidates_wait_in_the_archive(world: HeadlessWorld) -> None:
    world.write(SCRIPTED, [NOTE, DONE])
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    (candidate,) = files.lines("archive/candidate-memory.jsonl")
    assert (candidate["content"], candidate["state"]) == ("Totals keep the jiao.", "candidate")
    (artifact,) = json.loads(files.text("artifact-manifest.json"))["artifacts"]
    assert (artifact["kind"], artifact["created_by"]) == ("memory", "write_memory")


async def test_memory_that_is_off_is_not_offered(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}memory: {{write_mode: disabled}}\n", [NOTE, DONE])
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    (offered,) = [event for event in files.events if event["type"] == "tools.offered"]
    assert "write_memory" not in offered["data"]["tools"]
    assert [line["error"]["code"] for line in files.lines("logs/errors.jsonl")] == ["UnknownTool"]
    assert not (files.folder / "archive" / "candidate-memory.jsonl").exists()


async def test_a_service_reminds_and_keeps(world: HeadlessWorld) -> None:
    known = {"id": "m1", "content": "Nothing is rounded.", "scope": "tea"}
    answers = [
        http("200 OK", memories=[known]),
        http("200 OK", memories=[]),
        http("200 OK", id="m2"),
    ]
    async with RawHttpServer(*([one] for one in answers)) as service:
        world.write(external(service.url), [NOTE, DONE])
        result = await world.run("About totals.")
        asked = service.requests
    assert result.status == "completed"
    files = RunFiles(result.sandbox_root)
    assert "- Nothing is rounded." in files.text("effective-prompt.md")
    assert [request.target for request in asked] == ["/v1/recall", "/v1/recall", "/v1/write"]
    assert asked[0].json["query"] == "About totals."
    assert asked[2].json["content"] == "Totals keep the jiao."
    assert asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in files.all_text()


async def test_a_service_that_is_down_fails_the_run(world: HeadlessWorld) -> None:
    async with RawHttpServer([http("503 Busy")]) as service:
        world.write(external(service.url), [DONE])
        result = await world.run()
    assert (result.status, result.governance) == ("failed", "failed")
    files = RunFiles(result.sandbox_root)
    assert (files.run["step"], files.run["failure_reason"]) == ("memory", "MemoryUnavailable")
    assert files.run["error"]["retryable"] is True


async def test_a_key_that_is_missing_blocks(world: HeadlessWorld) -> None:
    world.write(external("http://127.0.0.1:9", "NO_SUCH_TOKEN"), [DONE])
    result = await world.run()
    assert (result.governance, result.exit_code) == ("blocked", 4)
    assert result.error is not None
    assert "NO_SUCH_TOKEN is not set" in result.error.message
