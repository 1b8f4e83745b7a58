"""Every tool stands behind the one guard: no hostile path reads, lists, searches or edits. W11"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.kernel.contracts import ToolOutcome
from kode_sidecar.errors import KodeError
from tests.infrastructure.workspace.test_paths import ESCAPES, HOSTILE
from tests.support.edit_editor import Desk
from tests.support.files import link, write

WORD, SECRET = "findme", "leaked"
URIS = (
    "file:///etc/passwd",
    "file://server/share/outside.txt",
    "file:///C:/Windows/win.ini",
    "file:///%2e%2e/outside.txt",
    "FILE:///etc/passwd",
    "file:",
)
Call = Callable[[str], Awaitable[ToolOutcome]]


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
    edits = [{"old": WORD, "new": "x"}]
    made: dict[str, tuple[str, str, dict[str, Any]]] = {
        "read": ("read_file", "path", {}),
        "list": ("list_files", "directory", {}),
        "search": ("search_code", "path", {"query": WORD}),
        "edit": ("propose_edit", "path", {"edits": edits}),
        "create": ("propose_file", "path", {"action": "create", "content": "x\n"}),
        "overwrite": ("propose_file", "path", {"action": "overwrite", "content": "x\n"}),
        "move away": ("propose_file", "path", {"action": "move", "to": "new.py"}),
        "move there": ("propose_file", "to", {"action": "move", "path": "src/main.py"}),
        "delete": ("propose_file", "path", {"action": "delete"}),
    }
    return {
        name: lambda path, tool=tool, field=field, more=more: desk.use(
            tool, **{field: path}, **more
        )
        for name, (tool, field, more) in made.items()
    }


TOOLS = (
    *("read", "list", "search", "edit"),
    *("create", "overwrite", "move away", "move there", "delete"),
)


async def result(run: Call, path: str) -> str:
    """The error's code, or what the model got to see."""
    try:
        shown, code = (await run(path)).content, ""
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
