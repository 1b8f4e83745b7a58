"""Every tool stands behind the one guard: no hostile path reads, lists, searches or edits. W11"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.tools.contracts import Proposed
from kode_sidecar.tools.list_files import list_files_tool
from kode_sidecar.tools.propose_edit import propose_edit_tool
from kode_sidecar.tools.read_file import read_file_tool
from kode_sidecar.tools.search_code import search_code_tool
from kode_sidecar.workspace.ripgrep import Ripgrep, find_ripgrep
from tests.support.edit_editor import Desk
from tests.support.files import call, link, write
from tests.workspace.test_paths import ESCAPES, HOSTILE

WORD, SECRET = "findme", "leaked"
URIS = (
    "file:///etc/passwd",
    "file://server/share/outside.txt",
    "file:///C:/Windows/win.ini",
    "file:///%2e%2e/outside.txt",
    "FILE:///etc/passwd",
    "file:",
)
Call = Callable[[str], Awaitable[ToolOutcome | Proposed]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A project beside files that are nobody's business."""
    write(
        tmp_path,
        {
            "app/src/main.py": "main\n",
            "outside.txt": f"{WORD} {SECRET}\n",
            "app-evil/a.txt": f"{WORD} {SECRET}\n",
        },
    )
    return Desk(tmp_path / "app")


def calls(desk: Desk) -> dict[str, Call]:
    """Each tool with a path as its only argument."""
    space, ripgrep = desk.workspace, Ripgrep(find_ripgrep())
    edits = [{"old": WORD, "new": "x"}]
    made: dict[str, tuple[Tool, str, dict[str, Any]]] = {
        "read": (read_file_tool(space), "path", {}),
        "list": (list_files_tool(space), "directory", {}),
        "search": (search_code_tool(space, ripgrep), "path", {"query": WORD}),
        "edit": (propose_edit_tool(desk.sets.proposals), "path", {"edits": edits}),
    }
    by_tool: dict[str, Call] = {
        name: lambda path, tool=tool, field=field, more=more: call(tool, **{field: path}, **more)
        for name, (tool, field, more) in made.items()
    }
    use = ToolCall("use", "propose_file", "s-1", "t-1", "m-1")
    proposals = desk.sets.proposals
    return by_tool | {
        "create": lambda path: proposals.propose_create(path, "x\n", use),
        "move away": lambda path: proposals.propose_move(path, "new.py", use),
        "move there": lambda path: proposals.propose_move("src/main.py", path, use),
        "delete": lambda path: proposals.propose_delete(path, use),
    }


TOOLS = ("read", "list", "search", "edit", "create", "move away", "move there", "delete")


async def result(run: Call, path: str) -> str:
    """The error's code, or what the model got to see."""
    try:
        outcome = await run(path)
        shown = outcome.content if isinstance(outcome, ToolOutcome) else repr(outcome)
        code = ""
    except KodeError as error:
        shown, code = error.message, error.code
    assert SECRET not in shown
    return code or shown


@pytest.mark.parametrize("tool", TOOLS)
async def test_hostile_strings(desk: Desk, tool: str) -> None:
    run = calls(desk)[tool]
    assert len(HOSTILE) + len(ESCAPES) > 61
    for path in (*HOSTILE, *URIS):
        assert await result(run, path) == "PathOutsideRoots", path
    assert desk.events == []


@pytest.mark.parametrize("make", ESCAPES)
@pytest.mark.parametrize("tool", TOOLS)
async def test_escapes(desk: Desk, tool: str, make: Callable[[Path], str]) -> None:
    path = make(desk.root)
    assert await result(calls(desk)[tool], path) == "PathOutsideRoots"
    assert await result(calls(desk)["search"], ".")
    assert desk.events == []


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_hard_link_to_a_file_outside(desk: Desk, tool: str) -> None:
    os.link(desk.root.parent / "outside.txt", desk.root / "hard.txt")
    for path in ("hard.txt", "."):
        assert "matching line" not in await result(calls(desk)[tool], path)
    assert desk.events == []


SECRETS = {
    ".env": f"KEY={WORD}{SECRET}\n",
    "config/.env.local": f"KEY={WORD}{SECRET}\n",
    "id_ed25519": f"{WORD} {SECRET}\n",
    "server.pem": f"{WORD} {SECRET}\n",
    ".npmrc": f"//registry/:_authToken={WORD}{SECRET}\n",
    ".netrc": f"password {WORD}{SECRET}\n",
    ".aws/credentials": f"{WORD} {SECRET}\n",
    ".git/config": f"url = https://u:{WORD}{SECRET}@host\n",
    "plain.py": f"# {WORD} {SECRET}\nkey = 'sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6'\n",
}


@pytest.mark.parametrize("name", SECRETS)
async def test_credentials_are_denied_and_masked(desk: Desk, name: str) -> None:
    write(desk.root, {name: SECRETS[name]})
    link(desk.root / "harmless.txt", desk.root / name)
    run = calls(desk)
    for path in (name, name.upper() if os.name == "nt" else name, "harmless.txt"):
        assert await result(run["read"], path) == "Denied"
        assert await result(run["edit"], path) == "Denied"
        for place in (path, "."):
            assert "matching line" not in await result(run["search"], place)
    assert desk.events == []
