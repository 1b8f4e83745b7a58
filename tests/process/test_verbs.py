"""Verbs over the real process: which there are, what a prompt `/name` comes to (F15)."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from kode_sidecar.terminal.chat.commands import ChatCommands
from kode_sidecar.terminal.chat.completion import PromptCompleter
from kode_sidecar.terminal.chat.words import ENGLISH
from kode_sidecar.terminal.client import RpcError
from tests.support.files import write
from tests.support.model_script import answer, text
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.skill_files import write_skill

pytestmark = pytest.mark.program

BUILT_IN = ["ask", "commit", "doc", "explain", "fix", "goal", "init", "refactor", "review", "tests"]


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


def prompts(asked: dict[str, Any]) -> list[str]:
    """Return what the model got as the user's words, reminders too, of the newest prompt."""
    texts: list[str] = []
    for message in reversed(asked["messages"]):
        if message["role"] != "user":
            break
        texts.insert(0, message["content"])
    return texts


async def test_a_prompt_calls_a_verb_with_words_and_files(tmp_path: Path) -> None:
    project = tmp_path / "app"
    write(
        project,
        {
            ".kode/commands/port.md": "---\nmode: plan\n---\nPort $1 to $2: $ARGUMENTS.\n"
            "See @a.py, ask me@b.py or @nobody, and !`rm -rf /`.",
            "a.py": "a = 1\n",
            "b.py": "b = 2\n",
            ".env": "KEY=secret-thing\n",
        },
    )
    script = [answer(text("ok")) for _ in range(3)]
    async with sidecar(script, roots=[project], handshake={"trusted": True}) as world:
        session = await world.session()
        said = '/port "two words" $2 @b.py @.env'
        await world.turn(session, said)
        reported, prompt = prompts(world.asked())
        assert prompt == said
        assert 'Port two words to $2: "two words" $2 @b.py @.env.' in reported
        assert "a.py:\n     1\ta = 1" in reported
        assert "b.py:\n     1\tb = 2" in reported
        assert ".env is not shown" in reported
        assert "secret-thing" not in reported
        assert "Nothing was run here" in reported
        assert "planning only" in str(world.asked()["messages"])  # mode: plan, for this turn
        await world.turn(session, "/usr/bin is not a verb")
        *changed, prompt = prompts(world.asked())
        assert prompt == "/usr/bin is not a verb"
        assert "planning only" not in str(changed)
        await world.turn(session, "/nothing here")
        assert prompts(world.asked()) == ["/nothing here"]


async def test_a_projects_verb_does_nothing_before_trust(tmp_path: Path) -> None:  # W12
    write(tmp_path / "app", {".kode/commands/ship.md": "Send everything"})
    roots, untrusted = [tmp_path / "app"], {"trusted": False}
    async with sidecar([answer(text("ok"))], roots=roots, handshake=untrusted) as world:
        await world.turn(await world.session(), "/ship now")
        assert prompts(world.asked()) == ["/ship now"]
        assert "Send everything" not in str(world.asked())


async def test_a_verb_that_cannot_be_used_is_an_error_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, {".kode/commands/bad.md": "---\ntitle: a\nmode: fast\n---\nGo"})
    async with sidecar([], roots=[tmp_path], handshake={"trusted": True}) as world:
        session = await world.session()
        with pytest.raises(RpcError, match=r"bad\.md, line 3: `mode`: 'fast' is not known"):
            await world.start(session, "/bad")


async def test_a_verb_gets_the_selection_of_the_editor(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "one = 1\ntwo = 2\nthree = 3\n"})
    script = [answer(text("ok")) for _ in range(3)]
    async with sidecar(script, roots=[tmp_path], handshake={"trusted": True}) as world:
        session, uri = await world.session(), (tmp_path / "a.py").as_uri()
        chosen = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
        world.client.notify("kode/editor/didChangeContext", {"uri": uri, "selection": chosen})
        await world.turn(session, "/explain why")
        reported, _ = prompts(world.asked())
        assert "The user's selection, a.py, lines 2 to 2:\n     2\ttwo = 2" in reported
        assert "Explain this code" in reported
        cursor = {"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 1}}
        world.client.notify("kode/editor/didChangeContext", {"uri": uri, "selection": cursor})
        await world.turn(session, "/explain")
        assert "the symbol at the cursor: a.py, line 3." in prompts(world.asked())[0]
        await world.turn(session, "/commit")
        assert "staged in Git" in prompts(world.asked())[0]


async def test_a_skill_is_called_by_its_name(tmp_path: Path) -> None:
    write_skill(Path(os.environ["KODE_HOME"]) / "skills", "greeting", "Greet $1.\n")
    async with sidecar([answer(text("ok"))], roots=[tmp_path]) as world:
        assert "greeting" in names(await verbs(world))
        await world.turn(await world.session(), "/greeting Lin")
        reported, _ = prompts(world.asked())
        assert "The user called the skill `/greeting`" in reported
        assert "Greet Lin." in reported


async def test_one_new_file_is_in_the_menu_of_every_door(tmp_path: Path) -> None:
    project, state = tmp_path / "app", Path(os.environ["KODE_HOME"])
    project.mkdir()
    write(state, {"commands/fresh.md": "---\ntitle: Fresh\narguments: '[what]'\n---\nFresh $1"})
    async with sidecar([], roots=[project]) as world:
        listed = names(await verbs(world))
        assert "fresh" in listed
        commands = ChatCommands(world.client, cast("Any", None), ENGLISH, {})
        completer = PromptCompleter(project, ENGLISH, list)
        completer.verbs = commands.verbs
        assert await commands.calls("/fresh")
        typed = Document("/")
        menu = [one.text for one in completer.get_completions(typed, CompleteEvent())]
        assert {f"/{name}" for name in listed} <= {*menu}
    asked = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "kode_sidecar", "ask", "--verb", "no-such", "--root", str(project)],
        env={**os.environ, "KIMI_API_KEY": "sk-test"},
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=HANG_SECONDS,
    )
    assert asked.returncode != 0
    assert f"there are: {', '.join(listed)}." in asked.stderr
