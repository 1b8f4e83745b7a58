"""Skills over the real process: what is on offer, what a model gets, and what a project may not."""

import os
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.agent.context.skills import PROJECT_FOLDER
from tests.support.files import write
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.skill_files import write_skill

pytestmark = pytest.mark.program

TRUSTED, UNTRUSTED = {"trusted": True}, {"trusted": False}


@pytest.fixture
def home() -> Path:
    path = Path(os.environ["KODE_HOME"])
    path.mkdir(parents=True)
    return path


async def skills(world: World) -> dict[str, Any]:
    return await world.client.request("kode/skills/list", {}, HANG_SECONDS)


def tool_names(asked: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in asked["tools"]]


def system(asked: dict[str, Any]) -> str:
    return asked["messages"][0]["content"]


async def test_without_skills_there_is_no_word_of_them(tmp_path: Path) -> None:
    async with sidecar([answer(text("ok"))], roots=[tmp_path]) as world:
        await world.turn(await world.session(), "hello")
        assert "load_skill" not in tool_names(world.asked())
        assert "load_skill" not in system(world.asked())
        assert await skills(world) == {"skills": [], "problems": [], "projectTrusted": True}


async def test_a_model_loads_a_skill_and_one_of_its_files(home: Path, tmp_path: Path) -> None:  # B8
    folder = write_skill(home / "skills", "greeting", "Say 你好.\n", permissions="[run_command]")
    write(folder, {"references/style.md": "# Style\nShort.\n"})
    responses = [
        answer(tool_call("load_skill", {"id": "greeting"})),
        answer(tool_call("load_skill", {"id": "greeting", "file": "references/style.md"})),
        answer(tool_call("load_skill", {"id": "greetings"})),
        answer(text("你好")),
        answer(text("again")),
    ]
    write(tmp_path, {"config.yaml": "commands: {run: 'off'}\n"})
    environment = {"KODE_CONFIG": str(tmp_path / "config.yaml")}
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        await world.turn(session, "hello")
        assert "- `greeting` (Greeting): About greeting." in system(world.asked(0))
        assert "run_command" not in tool_names(world.asked(0))  # B9: a declaration, no grant
        results = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        assert "Say 你好." in results[0]
        assert "run_command, which grants nothing" in results[0]
        assert "- references/style.md: Style (15 bytes)" in results[0]
        assert results[1].endswith("# Style\nShort.\n")
        assert "did you mean greeting?" in results[2]
        # A skill that comes while the process runs is on offer with the next prompt.
        write_skill(home / "skills", "later")
        await world.turn(session, "and now?")
        assert system(world.asked()) == system(world.asked(0))
        reported = [str(message.get("content")) for message in world.asked()["messages"]]
        assert "`later`" in next(
            one for one in reported if one.startswith("What follows has changed")
        )


@pytest.mark.parametrize("trusted", [False, True])
async def test_skills_of_a_project_count_only_where_it_is_trusted(
    home: Path, tmp_path: Path, trusted: bool
) -> None:  # W12
    project, team = tmp_path / "app", tmp_path / "team"
    write_skill(home / "skills", "mine")
    write_skill(team, "ours", tags="[a, b]")
    write_skill(project / PROJECT_FOLDER, "theirs")
    write_skill(project / PROJECT_FOLDER, "mine", description="evil")
    write(
        project, {f"{PROJECT_FOLDER}/broken/SKILL.md": "---\nid: broken\nname: B\ntags: x\n---\n"}
    )
    write(home, {"config.yaml": f"skill_folders: ['{team}']\n"})
    handshake = TRUSTED if trusted else UNTRUSTED
    responses = [answer(text("ok"))]
    async with sidecar(responses, roots=[project], handshake=handshake) as world:
        await world.turn(await world.session(), "hello")
        listed = await skills(world)
        assert listed["projectTrusted"] is trusted
        assert [(one["id"], one["source"]) for one in listed["skills"]] == [
            ("mine", "user"),
            ("ours", "config"),
            *([("theirs", "project")] if trusted else []),
        ]
        assert listed["skills"][1] == {
            "id": "ours",
            "name": "Ours",
            "description": "About ours.",
            "source": "config",
            "uri": (team / "ours" / "SKILL.md").resolve().as_uri(),
            "tags": ["a", "b"],
        }
        assert "evil" not in system(world.asked())
        assert ("`theirs`" in system(world.asked())) is trusted
        problems = {problem["file"]: problem for problem in listed["problems"]}
        if not trusted:
            assert problems == {}
            return
        broken = problems["app/.kode/skills/broken/SKILL.md"]
        assert (broken["source"], broken["line"], broken["field"]) == ("project", 2, "description")
        assert (
            "taken by skills/mine/SKILL.md" in problems["app/.kode/skills/mine/SKILL.md"]["message"]
        )
        doctor = await world.client.request("kode/doctor", {}, HANG_SECONDS)
        checks = [check for check in doctor["checks"] if check["name"] == "skills"]
        assert [check["ok"] for check in checks] == [False, False, True]
        assert checks[2]["message"] == "Skills on offer: mine, ours, theirs."


async def test_a_project_names_no_folders_and_scouts_load_nothing(
    home: Path, tmp_path: Path
) -> None:  # W12 D1
    write_skill(tmp_path / "evil", "evil")
    write(tmp_path, {"app/config.yaml": f"skill_folders: ['{tmp_path / 'evil'}']\n"})
    write_skill(home / "skills", "mine")
    task = {"title": "t", "question": "q"}
    responses = [
        answer(tool_call("explore", {"tasks": [task]})),
        answer(text("nothing found")),
        answer(text("ok")),
    ]
    root = [tmp_path / "app"]
    async with sidecar(responses, roots=root, handshake=TRUSTED) as world:
        await world.turn(await world.session(), "hello")
        assert [one["id"] for one in (await skills(world))["skills"]] == ["mine"]
        scout = world.asked(1)
        assert "load_skill" not in tool_names(scout)
        assert "load_skill" not in system(scout)
