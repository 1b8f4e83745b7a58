"""Skills and memory of a run (B8, B9, B10)."""

import json
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.headless_world import KEY, SCRIPTED, HeadlessWorld, Json, RunFiles, call
from tests.support.raw_http import Never, RawHttpServer
from tests.support.skill_files import write_skill

LEARN = [
    {"calls": [call("load_skill", id="review")]},
    {"calls": [call("load_skill", id="review", file="references/style.md")]},
    {"calls": [call("write_memory", content="茶铺用 pytest。", tags=["tests"])]},
    {"say": "Done."},
]


@pytest.fixture
def world(tmp_path: Path) -> HeadlessWorld:
    return HeadlessWorld(tmp_path)


def tool_lines(files: RunFiles) -> list[tuple[str, str]]:
    return [(line["tool_name"], line["status"]) for line in files.lines("logs/tools.jsonl")]


async def test_a_skill_is_loaded_and_a_candidate_is_kept(world: HeadlessWorld) -> None:
    folder = write_skill(
        world.folder / "team", "review", "Look twice.\n", permissions="[run_command]"
    )
    write(folder, {"references/style.md": "# Style\n"})
    write_skill(world.services.storage_root / "skills", "review", description="the user's own")
    write_skill(world.services.storage_root / "skills", "other")
    world.write(f"{SCRIPTED}skills: {{enabled: [review], folders: [team]}}\n", LEARN)
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    assert result.status == "completed"
    assert tool_lines(files) == [("load_skill", "ok"), ("load_skill", "ok"), ("write_memory", "ok")]
    prompt = files.text("effective-prompt.md")
    assert "- `review` (Review): About review." in prompt
    assert "`other`" not in prompt
    (enabled,) = [event for event in files.events if event["type"] == "skill.enabled"]
    assert enabled["data"]["declared_permissions"] == ["run_command"]
    assert "run_command" not in prompt  # B9: it is told of as a declaration, when it is loaded
    (line,) = files.lines("archive/candidate-memory.jsonl")
    assert (line["content"], line["scope"], line["state"]) == (
        "茶铺用 pytest。",
        "default",
        "candidate",
    )
    artifacts = json.loads(files.text("artifact-manifest.json"))["artifacts"]
    assert "archive/candidate-memory.jsonl" in [artifact["path"] for artifact in artifacts]


@pytest.mark.parametrize(
    ("text", "code", "reported"),
    [
        ("---\nid: review\nname: R\n---\n", "SkillInvalid", "line 2: `description`: is missing"),
        ("---\nid: revue\nname: R\ndescription: d\n---\n", "SkillNotFound", "did you mean revue"),
    ],
)
async def test_a_malformed_or_missing_skill_fails_the_run_clearly(
    world: HeadlessWorld, text: str, code: str, reported: str
) -> None:
    write(world.folder, {"team/review/SKILL.md": text})
    world.write(f"{SCRIPTED}skills: {{enabled: [review], folders: [team]}}\n", LEARN)
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    assert (result.status, files.run["failure_reason"]) == ("failed", code)
    assert reported in str(files.run["error"])
    assert files.run["step"] == "skills"
    (error,) = files.lines("logs/errors.jsonl")
    assert error["error"]["category"] == "skill"


async def test_a_hostile_path_into_a_skill_is_refused_and_recorded(
    world: HeadlessWorld,
) -> None:  # W11
    write_skill(world.folder / "team", "review")
    write(world.folder, {"team/secret.txt": "secret words"})
    hostile = ["../secret.txt", "/etc/passwd", "CON", "SKILL.md:x", "references/../../secret.txt"]
    calls = [call("load_skill", id="review", file=path) for path in hostile]
    skills = "skills: {enabled: [review], folders: [team]}\n"
    world.write(SCRIPTED + skills, [{"calls": calls}, {"say": "Done."}])
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    assert result.status == "completed"  # refused, and the run goes on
    assert files.types().count("path.refused") == len(hostile)
    errors = files.lines("logs/errors.jsonl")
    assert [error["error"]["code"] for error in errors] == ["PathOutsideRoots"] * len(hostile)
    assert "secret words" not in files.all_text()


async def test_the_budget_of_the_configuration_holds(world: HeadlessWorld) -> None:
    write_skill(world.folder / "team", "review", "x" * 2_000)
    skills = "skills: {enabled: [review], folders: [team], max_bytes: 1000}\n"
    world.write(SCRIPTED + skills, LEARN[:1])
    files = RunFiles((await world.run()).sandbox_root)
    assert tool_lines(files) == [("load_skill", "error")]
    assert "the limit is 1,000" in files.all_text()


async def test_memory_that_is_off_is_not_offered(world: HeadlessWorld) -> None:
    world.write(f"{SCRIPTED}memory: {{write_mode: disabled}}\n", LEARN[2:])
    files = RunFiles((await world.run()).sandbox_root)
    assert [status for _, status in tool_lines(files)] in ([], ["error"], ["denied"])
    assert not (files.folder / "archive" / "candidate-memory.jsonl").exists()
    assert "UnknownTool" in files.all_text() or "no tool named" in files.all_text()


def answered(body: Json, status: str = "200 OK") -> list[bytes]:
    data = json.dumps(body).encode()
    return [f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data]


def external(url: str, **more: object) -> str:
    service = {"url": url, "token_env": "MEMORY_TOKEN", **more}
    memory = {"write_mode": "external", "scope": "team", "recall_limit": 3, "external": service}
    return f"{SCRIPTED}memory: {json.dumps(memory)}\n"


async def test_a_service_recalls_and_keeps(world: HeadlessWorld) -> None:
    known = {"memories": [{"id": "7", "content": "Use tabs.", "scope": "team"}]}
    service = RawHttpServer(answered(known), answered({"memories": []}), answered({"id": "8"}))
    async with service:
        world.write(external(service.url), LEARN[2:])
        result = await world.run("Write it.")
    files = RunFiles(result.sandbox_root)
    assert result.status == "completed"
    assert tool_lines(files) == [("write_memory", "ok")]
    assert "not instructions" in files.text("effective-prompt.md")
    assert "- Use tabs." in files.text("effective-prompt.md")
    asked = [(request.target, request.json) for request in service.requests]
    assert asked == [
        ("/v1/recall", {"query": "Write it.", "scope": "team", "limit": 3}),
        ("/v1/recall", {"query": "Write it.", "scope": "user", "limit": 2}),
        ("/v1/write", {"content": "茶铺用 pytest。", "scope": "team", "tags": ["tests"]}),
    ]
    assert {request.headers["authorization"] for request in service.requests} == {f"Bearer {KEY}"}
    assert KEY not in files.all_text()  # W14
    assert not (files.folder / "archive" / "candidate-memory.jsonl").exists()


@pytest.mark.parametrize("broken", ["refusing", "silent", "unset"])
async def test_a_service_that_fails_ends_the_run_with_its_reason(
    world: HeadlessWorld, broken: str
) -> None:
    service = RawHttpServer([Never()] if broken == "silent" else answered({}, "401 No"))
    async with service:
        seconds = 0.2 if broken == "silent" else 20
        world.write(external(service.url, timeout_seconds=seconds), LEARN[2:])
        if broken == "unset":
            world.set_environ({})
        result = await world.run()
    files = RunFiles(result.sandbox_root)
    codes = {"silent": "MemoryUnavailable", "refusing": "MemoryRefused", "unset": "ConfigInvalid"}
    assert (result.status, files.run["failure_reason"]) == ("failed", codes[broken])
    assert files.run["step"] == "memory"
    assert "MEMORY_TOKEN" in str(files.run["error"]) or broken == "silent"
