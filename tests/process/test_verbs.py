"""Verbs over the real process: which there are, what a prompt `/name` comes to (F15)."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from tests.support.sidecar import HANG_SECONDS, World, sidecar

pytestmark = pytest.mark.program

BUILT_IN = ["ask", "commit", "doc", "explain", "fix", "init", "refactor", "review", "tests"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, of which the verbs of other tools are read."""
    path = tmp_path / "user"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("USERPROFILE", str(path))
    return path


async def verbs(world: World) -> dict[str, Any]:
    return await world.client.request("kode/verbs/list", {}, HANG_SECONDS)


def names(listed: dict[str, Any]) -> list[str]:
    return [verb["name"] for verb in listed["verbs"]]


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_projects_verbs_are_there_once_it_is_trusted(
    home: Path, tmp_path: Path, trusted: bool
) -> None:  # W12
    project = tmp_path / "app"
    write(
        project,
        {
            ".kode/commands/ship.md": "Ship it",
            ".agents/commands/check.md": "---\nmode: plan\n---\nCheck it",
            ".claude/commands/pr.md": "A PR",
            ".github/prompts/test.prompt.md": "Test it",
            ".gemini/commands/git/log.toml": 'prompt = "Log"',
            ".kode/commands/bad.md": "---\nmode: auto\n---\nGo",
        },
    )
    write(Path(os.environ["KODE_HOME"]), {"commands/mine.md": "Mine"})
    write(home, {".agents/commands/shared.md": "Shared", ".codex/prompts/old.md": "Old"})
    async with sidecar([], roots=[project], handshake={"trusted": trusted}) as world:
        listed = await verbs(world)
        theirs = ["check", "git:log", "pr", "ship", "test"] if trusted else []
        assert names(listed) == sorted([*BUILT_IN, "mine", "old", "shared", *theirs])
        assert listed["projectTrusted"] is trusted
        assert [problem.get("line") for problem in listed["problems"]] == [2] * trusted
        await world.client.request("kode/workspace/setTrust", {"trusted": True}, HANG_SECONDS)
        assert "ship" in names(await verbs(world))
        one = next(verb for verb in (await verbs(world))["verbs"] if verb["name"] == "check")
        assert one == {
            "name": "check",
            "title": "check",
            "description": "Check it",
            "source": "project",
            "mode": "plan",
            "uri": (project / ".agents/commands/check.md").resolve().as_uri(),
        }


async def test_the_list_speaks_the_users_language(tmp_path: Path) -> None:
    async with sidecar([], roots=[tmp_path], handshake={"locale": "zh"}) as world:
        titles = {verb["name"]: verb["title"] for verb in (await verbs(world))["verbs"]}
        assert titles["explain"] == "解释"
