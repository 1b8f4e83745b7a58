"""List and search look at the same files as git: one set of rules, whatever reads it."""

import random
from pathlib import Path

import pytest

from kode_sidecar.agent.tools.list_files import list_files_tool
from kode_sidecar.agent.tools.search_code import search_code_tool
from kode_sidecar.core.kernel.contracts import Tool
from kode_sidecar.infrastructure.workspace.ripgrep import Ripgrep, find_ripgrep
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.support.files import call, write
from tests.support.git import git

NAMES = ("a", "b", "ab", "a.txt", "b.md", "{a,b}", "x{1}", "#c", "!d", "a b", "[a]", "c ", "é")
PIECES = ("a", "b", "*", "?", "**", "*.txt", "{a,b}", "x{1}", "\\#c", "\\!d", "a b", "[a]", "\\[a]")
_FOLDERS = 20
TAILS = ("", "", "", "/", " ", "\\ ", "/**", "/*")


@pytest.fixture
def tools(tmp_path: Path) -> tuple[Tool, Tool]:
    space = Workspace([tmp_path], "utf-16")
    return list_files_tool(space), search_code_tool(space, Ripgrep(find_ripgrep()))


async def seen(tools: tuple[Tool, Tool], folder: str = ".") -> tuple[set[str], set[str]]:
    """The files that a list shows, and those in which a search finds what all of them hold."""
    listed = await call(tools[0], directory=folder)
    found = await call(tools[1], query="needle", path=folder, max_results=200)
    lines = [line for line in found.content.split("\n")[1:] if not line.startswith("[files")]
    hits = {line.rpartition(":1: ")[0] for line in lines if ":1: " in line}
    files = [line for line in listed.content.split("\n")[1:] if not line.startswith("[not")]
    return set(files), hits


def rules(rng: random.Random) -> str:
    lines = [
        rng.choice(["", "", "!"])
        + rng.choice(["", "/"])
        + "/".join(rng.choices(PIECES, k=rng.randint(1, 2)))
        + rng.choice(TAILS)
        for _ in range(rng.randint(1, 4))
    ]
    return "".join(f"{line}{rng.choice(['', '', chr(13)])}\n" for line in ["# rules", "", *lines])


async def test_random_rules(tools: tuple[Tool, Tool], tmp_path: Path, rng: random.Random) -> None:
    git(tmp_path, "init", "-q")
    for number in range(_FOLDERS):
        top = tmp_path / f"d{number}"
        for _ in range(6):
            path = "/".join(rng.choices(NAMES, k=rng.randint(1, 3)))
            above = [top / parent for parent in Path(path).parents]
            if not (top / path).exists() and not any(place.is_file() for place in above):
                write(top, {path: "needle\n"})
        for place in [top, *(place for place in top.iterdir() if place.is_dir())]:
            if place == top or rng.random() < 0.3:
                write(place, {".gitignore": f"# needle\n{rules(rng)}"})
    write(tmp_path, {".git/info/exclude": "**/d*/ab\n", ".gitignore": "# needle\nd1/*\n!d1/a\n"})
    options = ("ls-files", "-z", "--others", "--exclude-standard")
    expected = set(git(tmp_path, *options).split("\0")) - {""}
    listed, found = await seen(tools)
    assert listed == expected
    assert found == expected
    for number in range(_FOLDERS):  # what is named is shown, whichever rule hides it
        listed, found = await seen(tools, f"d{number}")
        assert found == listed, (tmp_path / f"d{number}/.gitignore").read_text()
        assert listed
