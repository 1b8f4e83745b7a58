"""MCP servers at the prompt: listed, started, their prompts and resources typed (F5)."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.mcp.test_stdio_servers import until
from tests.support.chat_program import CTRL_C, at_terminal, by_lines
from tests.support.model_script import answer, text
from tests.support.program import ROOT

pytestmark = pytest.mark.program
RAW = ROOT / "tests" / "support" / "mcp_server.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder; the user has one server, the project names another."""
    own = {"command": [sys.executable, str(RAW), "offers"]}
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(json.dumps({"mcp": {"raw": own}}), encoding="utf-8")
    root = tmp_path / "shop"
    root.mkdir()
    theirs = {"command": sys.executable, "args": [str(RAW), "plain"]}
    named = {"mcpServers": {"theirs": theirs}}
    (root / ".mcp.json").write_text(json.dumps(named), encoding="utf-8")
    return root


def asked(screen: Any) -> str:
    return str(
        [m["content"] for m in screen.model.chats[-1].body["messages"] if m["role"] == "user"]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
async def test_prompts_and_resources_are_completed_and_sent(project: Path) -> None:
    async with at_terminal(project, [answer(text("seen")), answer(text("kept"))]) as screen:
        screen.type("/mcp\n")
        await screen.until("raw · not started")
        screen.type("/mcp start raw\n")
        await screen.until("raw · runs")
        screen.type("/raw:re")
        await screen.shows("[branch] [look_at] Review a branch")
        screen.type("\t")
        await screen.shows("you › /raw:review")
        screen.type(" main parser\n")
        await screen.until("seen")
        assert "Review main; look at parser." in asked(screen)
        await screen.idle()
        screen.type("keep to @rul")
        await screen.shows("raw:shop://rules")
        screen.type("\t")
        await screen.shows("you › keep to @raw:shop://rules")
        screen.type(" please\n")
        await screen.until("kept")
        assert "只卖苹果" in asked(screen)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
async def test_ctrl_c_gives_up_a_server_that_does_not_start(project: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    slow = {"command": [sys.executable, str(RAW), "no_start", str(starts)]}
    home = Path(os.environ["KODE_HOME"])
    (home / "config.yaml").write_text(json.dumps({"mcp": {"slow": slow}}), encoding="utf-8")
    async with at_terminal(project, [answer(text("fine"))]) as screen:
        screen.type("read @slow:shop://rules\n")
        await until(starts.exists)
        screen.type(CTRL_C)
        await screen.until("Ctrl-C once more")
        await screen.idle()
        assert screen.model.chats == []
        screen.type("without it\n")
        await screen.until("fine")
        assert "without it" in asked(screen)


async def test_a_pipe_decides_on_a_projects_server_and_uses_its_own(project: Path) -> None:
    lines = (
        "/mcp allow theirs\n/mcp refuse theirs\n/raw:review\n/raw:review x\nread @raw:shop://none\n"
    )
    responses = [answer(text("seen")), answer(text("again"))]
    done = await by_lines(project, lines, responses, "--trust")
    assert "theirs · not started" in done.out
    assert "theirs · refused by you" in done.out
    assert "The prompt review needs branch" in done.out
    assert "│ Review x; look at all." in done.out
    assert "has nothing to read at shop://none" in done.out
    assert "again" in done.out, "what cannot be read is told, and the prompt goes without it"
