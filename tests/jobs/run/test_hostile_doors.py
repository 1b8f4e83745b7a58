"""One table of hostile paths, tried at every door of a run; each refusal is on record. W11 B4

The doors: all tools, every path of the configuration, skills, deliverables and the manifests.
"""

import itertools
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.artifacts import ARTIFACT_MANIFEST, Artifacts
from kode_sidecar.jobs.run.sandbox import make_sandbox
from tests.conftest import FULL
from tests.infrastructure.workspace.test_paths import ESCAPES, HOSTILE
from tests.support.files import link, write
from tests.support.headless_world import HEAD, SCRIPTED, HeadlessWorld, Json, RunFiles, call

WORD, LEAKED = "findme", "leaked-7f3a"
PYTHON = Path(sys.executable).name
SKILL = "---\nid: helper\nname: Helper\ndescription: Helps.\n---\nHelp.\n"
# The user's own configuration may name any folder of this machine.
ABSOLUTE = ("/", "/etc/passwd", "\\", "c:/windows/win.ini", "C:\\Windows\\win.ini")

TOOLS: dict[str, Callable[[str], Json]] = {
    "read": lambda path: call("read_file", path=path),
    "list": lambda path: call("list_files", directory=path),
    "search": lambda path: call("search_code", path=path, query=WORD),
    "edit": lambda path: call("propose_edit", path=path, edits=[{"old": WORD, "new": "x"}]),
    "create": lambda path: call("propose_file", action="create", path=path, content="x\n"),
    "overwrite": lambda path: call("propose_file", action="overwrite", path=path, content="x\n"),
    "move away": lambda path: call("propose_file", action="move", path=path, to="workspace/new"),
    "move there": lambda path: call("propose_file", action="move", path="a.txt", to=path),
    "delete": lambda path: call("propose_file", action="delete", path=path),
    "artifact": lambda path: call("write_artifact", path=path, content="x\n"),
    "command": lambda path: call("run_command", argv=[PYTHON, "-c", "print(1)"], cwd=path),
    "skill": lambda path: call("load_skill", id="helper", file=path),
}
EVERYTHING = f"""\
{SCRIPTED}skills: {{enabled: [helper], folders: [skills]}}
tools: {{shell: {{enabled: true}}, filesystem: {{delete: true}}}}
"""


@pytest.fixture
def world(tmp_path: Path) -> HeadlessWorld:
    """A job beside files that are nobody's business."""
    write(tmp_path, {"job/skills/helper/SKILL.md": SKILL, "outside.txt": f"{WORD} {LEAKED}\n"})
    world = HeadlessWorld(tmp_path / "job")
    world.set_environ({"PATH": str(Path(sys.executable).parent)})
    return world


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files below a folder, but for what runs and their sessions record."""
    ours = {"runs", "conversations", "logs"}
    paths = (path for path in folder.rglob("*") if ours.isdisjoint(path.parts))
    files = (path for path in paths if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def sample(paths: list[str], rng: random.Random, count: int) -> list[str]:
    return paths if FULL else rng.sample(paths, count)


@pytest.mark.parametrize("door", TOOLS)
async def test_tools(world: HeadlessWorld, door: str) -> None:
    """The run goes on after each of them, and nothing outside of it was touched."""
    world.write(EVERYTHING, [{"calls": [TOOLS[door](path) for path in HOSTILE]}, {"say": "Done."}])
    run = world.make()
    write(Path(run.record.sandbox_root), {"workspace/a.txt": "a\n"})
    before = snapshot(world.folder.parent)
    result = await run.run()
    files = RunFiles(result.sandbox_root)
    assert (result.status, result.final_text) == ("completed", "Done.")
    assert_refused(files, len(HOSTILE))
    assert LEAKED not in files.all_text()
    assert snapshot(world.folder.parent) == before
    assert world.bugs == []
    zones = [path.name for path in (files.folder / "workspace").iterdir()]
    assert (zones, list((files.folder / "deliverables").iterdir())) == (["a.txt"], [])


def assert_refused(files: RunFiles, count: int) -> None:
    """Each call is on record as refused: as a call, as events, and as an error."""
    tools = files.lines("logs/tools.jsonl")
    assert [one["args_summary"] for one in tools if one["status"] != "denied"] == []
    assert {one["error"]["code"] for one in tools} == {"PathOutsideRoots"}
    assert len(tools) == len(files.lines("logs/errors.jsonl")) == count
    types = files.types()
    assert types.count("path.refused") == types.count("tool.refused") == count


@pytest.mark.parametrize("make", ESCAPES)
async def test_tools_behind_links(world: HeadlessWorld, make: Callable[[Path], str]) -> None:
    """Links that a program may have made in the workspace."""
    run = world.make()
    box = Path(run.record.sandbox_root)
    write(box, {"workspace/a.txt": "a\n", "outside.txt": LEAKED, "app-evil/a.txt": LEAKED})
    path = make(box / "workspace")
    doors = {name: door for name, door in TOOLS.items() if name != "skill"}
    named = path if os.path.isabs(path) else f"workspace/{path}"
    world.write(EVERYTHING, [{"calls": [door(named) for door in doors.values()]}, {"say": "Done."}])
    assert (await run.run()).status == "completed"
    files = RunFiles(box)
    assert_refused(files, len(doors))
    assert (files.text("outside.txt"), files.text("app-evil/a.txt")) == (LEAKED, LEAKED)


CONFIG: dict[str, tuple[Callable[[str], str], list[str]]] = {
    "deliverable": (lambda path: f"{SCRIPTED}deliverables: [{{path: {path}}}]\n", HOSTILE),
    "include": (
        lambda path: f"{SCRIPTED}workspace: {{import: skills, include: [{path}]}}\n",
        HOSTILE,
    ),
    "import": (lambda path: f"{SCRIPTED}workspace: {{import: {path}}}\n", []),
    "skills": (lambda path: f"{SCRIPTED}skills: {{folders: [{path}]}}\n", []),
    "script": (lambda path: f"{HEAD}runtime: {{engine: scripted, script: {path}}}\n", []),
}


@pytest.mark.parametrize("door", CONFIG)
async def test_configuration(world: HeadlessWorld, door: str, rng: random.Random) -> None:
    """The run is blocked before its engine, with the refusal on record."""
    config, paths = CONFIG[door]
    paths = paths or [path for path in HOSTILE if path not in ABSOLUTE]
    paths = [path for path in paths if len(path) <= 200]  # longer ones are refused by their type
    before = snapshot(world.folder.parent)
    for path in sample(paths, rng, 8):
        world.write(config(json.dumps(path)), [{"say": "never"}])
        result = await world.run()
        files = RunFiles(result.sandbox_root)
        assert (result.governance, result.exit_code) == ("blocked", 4), path
        assert files.run["failure_reason"] == "PathOutsideRoots", path
        (error,) = files.lines("logs/errors.jsonl")
        assert error["error"]["category"] == "sandbox"
        types = files.types()
        assert types.count("path.refused") == 1
        assert "model.asked" not in types
    assert {**snapshot(world.folder.parent), **before} == snapshot(world.folder.parent)


async def test_skills_behind_links(world: HeadlessWorld) -> None:
    """Neither a skill nor what belongs to one is read from elsewhere."""
    outside = world.folder.parent / "elsewhere"
    write(outside, {"helper2/SKILL.md": SKILL.replace("helper", "helper2"), "ref.md": LEAKED})
    link(world.folder / "skills" / "helper2", outside / "helper2")
    (world.folder / "skills" / "helper" / "references").mkdir()
    link(world.folder / "skills" / "helper" / "references" / "ref.md", outside / "ref.md")
    look = call("load_skill", id="helper", file="references/ref.md")
    steps: list[Json] = [{"calls": [call("load_skill", id="helper"), look]}, {"say": "Done."}]
    world.write(EVERYTHING, steps)
    result = await world.run()
    files = RunFiles(result.sandbox_root)
    assert result.status == "completed"
    assert LEAKED not in files.all_text()
    ended = files.lines("logs/tools.jsonl")  # in the order in which they ended
    of_file = {"file" in call["args_summary"]: call["status"] for call in ended}
    assert (of_file, len(ended)) == ({False: "ok", True: "denied"}, 2)
    assert "path.refused" in files.types()
    world.write(EVERYTHING.replace("[helper]", "[helper2]"), [])
    assert (await world.run()).exit_code != 0


def hard_link(target: Path, path: Path) -> None:
    os.link(target, path)


def soft_link(target: Path, path: Path) -> None:
    link(path, target)


@pytest.mark.parametrize("make", [hard_link, soft_link])
async def test_deliverables_behind_links(
    world: HeadlessWorld, make: Callable[[Path, Path], None]
) -> None:
    """A link is not delivered, and no tool writes through one."""
    outside = world.folder.parent / "outside.txt"
    write_it = call("write_artifact", path="deliverables/a.md", content="x\n", append=True)
    config = f"{SCRIPTED}deliverables: [{{path: deliverables/a.md}}]\n"
    world.write(config, [{"calls": [write_it]}, {"say": "Done."}])
    run = world.make()
    box = Path(run.record.sandbox_root)
    (box / "deliverables").mkdir()
    make(outside, box / "deliverables" / "a.md")
    result = await run.run()
    files = RunFiles(box)
    assert (result.status, result.exit_code) == ("incomplete", 3)
    assert outside.read_text() == f"{WORD} {LEAKED}\n"
    (tool,) = files.lines("logs/tools.jsonl")
    assert tool["status"] == "denied"
    assert "deliverables/a.md" not in [one["path"] for one in artifacts(files)]


def artifacts(files: RunFiles) -> list[Json]:
    return json.loads(files.text(ARTIFACT_MANIFEST))["artifacts"]


def test_manifests(tmp_path: Path) -> None:
    times = itertools.count()
    register = Artifacts(make_sandbox(tmp_path), lambda: str(next(times)))
    for path in (*HOSTILE, "run.json", "elsewhere/a.md"):
        more: dict[str, Any] = {"kind": "deliverable", "created_by": "write_artifact"}
        with pytest.raises(KodeError) as refused:
            register.add(path, **more)
        assert refused.value.code == "PathOutsideRoots", path
    assert artifacts(RunFiles(tmp_path)) == []
