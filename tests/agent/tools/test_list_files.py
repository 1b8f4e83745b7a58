"""`list_files`: ignore rules, patterns, links, files that exist only in the editor. A8"""

from pathlib import Path

import pytest

from kode_sidecar.agent.tools.list_files import MAX_FILES, list_files_tool
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.globs import compile_glob
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.support.files import call, link, write


def workspace(*roots: Path) -> Workspace:
    return Workspace(roots, "utf-16")


async def listed(space: Workspace, directory: str = ".", pattern: str | None = None) -> list[str]:
    outcome = await call(list_files_tool(space), directory=directory, pattern=pattern)
    return outcome.content.split("\n")[1:]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        ".gitignore": "*.log\n/dist/\n!keep.log\n",
        "src/.gitignore": "gen/\n!debug.log\n",
        "src/a.py": "",
        "src/b/c.ts": "",
        "src/gen/x.py": "",
        "src/debug.log": "",
        "src-old/a.py": "",
        "dist/out.js": "",
        "docs/dist/page.md": "",
        "trace.log": "",
        "keep.log": "",
        ".github/ci.yml": "",
        ".git/config": "",
        "node_modules/x/index.js": "",
        "web/node_modules/y.js": "",
        "__pycache__/a.pyc": "",
        "中文/文.txt": "",
    }
    write(tmp_path / "app", dict(files))
    write(tmp_path, {".gitignore": "*\n"})
    return tmp_path / "app"


async def test_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert await listed(workspace(tmp_path / "new")) == []


async def test_ignored_files_are_left_out(project: Path) -> None:
    assert await listed(workspace(project)) == [
        ".github/ci.yml",
        ".gitignore",
        "docs/dist/page.md",
        "keep.log",
        "src/.gitignore",
        "src/a.py",
        "src/b/c.ts",
        "src/debug.log",
        "src-old/a.py",
        "中文/文.txt",
    ]


@pytest.mark.parametrize(
    ("directory", "pattern", "expected"),
    [
        ("src", None, ["src/.gitignore", "src/a.py", "src/b/c.ts", "src/debug.log"]),
        (".", "*.py", ["src/a.py", "src-old/a.py"]),
        (".", "src/**/*.{ts,py}", ["src/a.py", "src/b/c.ts"]),
        ("src", "b/*.ts", ["src/b/c.ts"]),
        ("src", "!*.{py,ts}", ["src/.gitignore", "src/debug.log"]),
        ("src\\b", "", ["src/b/c.ts"]),
        (".", "*.nothing", []),
        # a path that leads into an ignored folder shows what is there
        ("dist", None, ["dist/out.js"]),
        ("node_modules", None, ["node_modules/x/index.js"]),
    ],
)
async def test_directories_and_patterns(
    project: Path, directory: str, pattern: str | None, expected: list[str]
) -> None:
    assert await listed(workspace(project), directory, pattern) == expected


async def test_links_are_named_and_not_followed(project: Path) -> None:
    link(project / "src" / "b" / "up", "..")
    link(project / "src" / "b" / "away", project.parent)
    assert await listed(workspace(project), "src/b") == [
        "src/b/away (link, not followed)",
        "src/b/c.ts",
        "src/b/up (link, not followed)",
    ]


async def test_files_only_in_the_editor_are_listed_and_said_to_be(project: Path) -> None:
    space = workspace(project)
    for name in ("src/new.py", "src/a.py"):
        space.documents.open(path_to_uri(project / name), "python", 1, "x\n")
    space.documents.open(path_to_uri(project.parent / "outside.py"), "python", 1, "x\n")
    assert await listed(space, "src", "*.py") == [
        "src/a.py",
        "src/new.py (open in the editor, not on disk)",
    ]


async def test_the_list_is_cut_at_a_stated_number(tmp_path: Path) -> None:
    # W16
    write(tmp_path, {f"{number:04}.txt": "" for number in range(MAX_FILES + 1)})
    lines = await listed(workspace(tmp_path))
    assert lines[-1] == "[cut after 500 files; narrow with directory or pattern]"
    assert lines[:-1] == [f"{number:04}.txt" for number in range(MAX_FILES)]


async def test_several_roots_are_listed_by_name(tmp_path: Path) -> None:
    write(tmp_path, {"app/a.py": "", "lib/b.py": ""})
    space = workspace(tmp_path / "app", tmp_path / "lib")
    assert await listed(space) == ["app/a.py", "lib/b.py"]
    assert await listed(space, "lib") == ["lib/b.py"]


@pytest.mark.parametrize(
    ("directory", "code"),
    [
        ("nowhere", "NotFound"),
        ("src/a.py", "InvalidArguments"),
        ("..", "PathOutsideRoots"),
        ("/", "PathOutsideRoots"),
    ],
)
async def test_what_is_no_folder_here(project: Path, directory: str, code: str) -> None:
    with pytest.raises(KodeError) as caught:
        await listed(workspace(project), directory)
    assert caught.value.code == code


async def test_a_bad_pattern_is_named(project: Path) -> None:
    with pytest.raises(KodeError) as caught:
        await listed(workspace(project), pattern="{a,b}" * 7)
    assert caught.value.code == "InvalidArguments"


async def test_without_an_open_folder_it_says_so() -> None:
    with pytest.raises(KodeError, match="No folder is open"):
        await listed(workspace())


def test_the_walk_ends_when_told_to(project: Path) -> None:
    (start,) = workspace(project).targets(".")
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 2

    assert len(list_tree(start, compile_glob("**"), 500, stopped).files) <= 2
