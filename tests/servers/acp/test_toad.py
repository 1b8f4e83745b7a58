"""toad, a client that is not ours, holds a conversation at a pseudo-terminal."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.acp_schema import check
from tests.support.chat_program import Screen, on_screen
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.toad import Toad, toad

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="toad runs on Debian's Python here")

SIZE = (120, 90)
ESCAPE, CTRL_Q, CTRL_R = "\x1b", "\x11", "\x12"
READY = "How can I help you"


def edit(old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": "app.py", "edits": [{"old": old, "new": new}]})


async def ask(screen: Screen, prompt: str) -> None:
    """Enter right behind a text is a line of it, so the text is waited for."""
    screen.type(prompt)
    await screen.shows(prompt)
    screen.type("\n")


async def leave(screen: Screen) -> None:
    screen.type(CTRL_Q)
    assert await screen.left() == 0


@pytest.mark.program
async def test_toad_holds_a_conversation_and_goes_on_with_it_later(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "config.yaml").write_text("commands: {run: list, allow: [echo]}\n")
    responses = (
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(edit("two", "zwei")),
        answer(edit("three", "drei")),
        answer(text("It is done.")),
        answer(thinking("hm"), text("Once upon"), hold("never")),
        answer(text("Here I am.")),
        answer(tool_call("run_command", {"argv": ["echo", "said-there"]})),
        answer(text("After all.")),
    )
    async with ModelServer(Recording(responses), paced=False) as model:
        agent = {
            "KODE_HOME": str(tmp_path / "kode"),
            "KODE_CONFIG": str(tmp_path / "config.yaml"),
            "KIMI_BASE_URL": model.base_url,
            "KIMI_API_KEY": "sk-test-key-000",
        }
        user = toad(tmp_path, agent)
        first = [*user.command, "run", "-a", "kode", str(project)]
        async with on_screen(first, user.environment, model, SIZE) as screen:
            await screen.shows(READY, "Ask")  # the mode is the agent's
            await ask(screen, "Change both")
            await screen.shows("Approval request", "zwei")
            assert (project / "app.py").read_text() == "one\ntwo\nthree\n"
            screen.type("a")
            await screen.shows("Approval request", "drei")
            screen.type("r")
            await screen.shows("It is done.", "failed")
            assert (project / "app.py").read_text() == "one\nzwei\nthree\n"
            await ask(screen, "A story")
            await screen.shows("Once upon")
            screen.type(ESCAPE)
            await screen.shows("again to cancel")
            screen.type(ESCAPE)
            await screen.shows("Turn cancelled")
            await ask(screen, "Are you there?")
            await screen.shows("Here I am.")
            await leave(screen)
        spoken(user, "session/new", "session/request_permission", "session/cancel")
        assert '"stopReason":"cancelled"' in user.log.read_text()
        async with on_screen(
            [*user.command, str(project)], user.environment, model, SIZE
        ) as screen:
            await screen.shows("Choose your fighter")
            screen.type(CTRL_R)
            await screen.shows("Pick a session", "Kode", "New Session")
            screen.type("\n")
            await screen.shows("Here I am.", "Ask")  # what is above may be scrolled away
            await ask(screen, "Say it")
            await screen.shows("/usr/bin/echo said-there", "After all.")
            await leave(screen)
        terminal = [f"terminal/{verb}" for verb in ("create", "wait_for_exit", "output", "release")]
        spoken(user, "session/load", *terminal)
        assert all(one in user.log.read_text() for one in ("It is done.", "Once upon"))


def spoken(user: Toad, *methods: str) -> None:
    """Every message is as the schema has it, and these methods were among them."""
    received: set[str] = set()
    for message in messages(user.log):
        if "method" in message:
            received.add(message["method"])
            if not message["method"].startswith("$/"):
                check(message["method"], "params", message["params"])
    assert set(methods) <= received


def messages(log: Path) -> Iterator[dict[str, Any]]:
    """It logs its own as Python writes them."""
    for line in log.read_text(encoding="utf-8").splitlines():
        who, _, body = line.partition(" ")
        if who == "[agent]":
            yield json.loads(body)
        elif who == "[client]":
            yield ast.literal_eval(body)
