"""`changes` with real Git: unsaved text, renames, what is only named, and nothing is run."""

import os
import shutil
from pathlib import Path

import pytest

from kode_sidecar.agent.tools.changed_files import ChangeReader
from kode_sidecar.agent.tools.changes import ChangesParams, ChangesView, changes_tool
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.git import GitProgram
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from tests.support.git import git

CALL = ToolCall("t", "changes", "s", "turn", "m")
APP = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "config", "user.name", "A")
    (folder / "app.py").write_bytes(APP.encode())
    (folder / "茶 页.py").write_bytes("一\n二\n".encode())
    (folder / "old.py").write_bytes(APP.replace("line", "row").encode())
    commit(folder, "first")
    return folder


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def workspace_of(*folders: Path) -> Workspace:
    return Workspace(folders, "utf-16")


async def shown(workspace: Workspace, **params: object) -> str:
    reader = ChangeReader(workspace, GitProgram(os.environ, lambda _, find: find()))
    tool = changes_tool(ChangesView(workspace, reader, workspace))
    outcome = await tool.run(ChangesParams(**params), CALL)  # type: ignore[arg-type]
    assert outcome.ok
    return outcome.content


async def test_lines_carry_the_numbers_of_the_new_text(project: Path) -> None:
    text = APP.replace("line 9\n", "line nine\nline nine and a half\n")
    (project / "app.py").write_bytes(text.encode())
    (project / "new.py").write_bytes(b"fresh\n")
    (project / "茶 页.py").write_bytes("一\n三\n".encode())
    reported = await shown(workspace_of(project))
    assert reported.startswith("3 files, +4 −2")
    assert "## app.py (+2 −1)\n@@ from line 6\n    6   line 6" in reported
    assert (
        "      - line 9\n    9 + line nine\n   10 + line nine and a half\n   11   line 10"
        in reported
    )
    assert "## new.py (+1 −0, new, not in Git yet)\n@@ from line 1\n    1 + fresh" in reported
    assert "## 茶 页.py (+1 −1)" in reported
    assert "    2 + 三" in reported
    assert "old.py" not in reported


async def test_unsaved_text_counts_and_so_does_its_undoing(project: Path) -> None:
    workspace = workspace_of(project)
    (project / "old.py").write_bytes(b"changed on disk\n")
    for name, text in (("app.py", APP + "typed\n"), ("old.py", APP.replace("line", "row"))):
        workspace.documents.open((project / name).as_uri(), "python", 1, text)
    reported = await shown(workspace)
    assert reported.startswith("1 file, +1 −0")
    assert "## app.py (+1 −0, with unsaved text)" in reported
    assert "   31 + typed" in reported


async def test_the_index_a_branch_a_commit_and_a_range(project: Path) -> None:
    git(project, "switch", "-q", "-c", "work")
    (project / "app.py").write_bytes(APP.replace("line 1\n", "line one\n").encode())
    commit(project, "second")
    (project / "app.py").write_bytes(APP.replace("line 1\n", "line 1!\n").encode())
    git(project, "add", "-A")
    (project / "app.py").write_bytes(APP.replace("line 1\n", "line 1?\n").encode())
    workspace = workspace_of(project)
    for params, old, new in (
        ({"of": "working_tree"}, "line one", "line 1?"),
        ({"of": "staged"}, "line one", "line 1!"),
        ({"of": "branch"}, "line 1", "line 1?"),
        ({"of": "branch", "range": "main"}, "line 1", "line 1?"),
        ({"of": "range", "range": "HEAD"}, "line 1", "line one"),
        ({"of": "range", "range": "main..work"}, "line 1", "line one"),
        ({"of": "range", "range": "work..main"}, "line one", "line 1"),
        ({"of": "range", "range": "main..."}, "line 1", "line one"),
    ):
        reported = await shown(workspace, **params)
        assert f"      - {old}\n    1 + {new}\n" in reported, params
    first = await shown(workspace, of="range", range="main")  # a commit without a parent
    assert first.startswith("3 files, +62 −0")


async def test_renames_and_what_is_only_named(project: Path) -> None:
    git(project, "mv", "old.py", "moved.py")
    for name in ("pack.min.js", "yarn.lock", "vendor/lib.py", "made.py", "key.pem"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(b"text\n")
    (project / "a.bin").write_bytes(b"\0\1\2")
    (project / ".gitattributes").write_bytes(b"made.py linguist-generated\n")
    git(project, "add", "-A")
    for scope in ("working_tree", "staged"):
        reported = await shown(workspace_of(project), of=scope)
        assert "## moved.py (+0 −0, renamed from old.py)" in reported
        assert "[not shown, binary: a.bin]" in reported
        left = next(line for line in reported.splitlines() if "generated or vendored" in line)
        assert all(name in left for name in ("made.py", "pack.min.js", "vendor/lib.py"))
        assert "credentials: key.pem" in reported


async def test_pages_go_on_where_the_last_one_ended(project: Path) -> None:
    for number in range(60):
        (project / f"n{number:02}.py").write_bytes(b"".join(b"x%d\n" % n for n in range(100)))
    git(project, "add", "-A")
    workspace = workspace_of(project)
    seen: list[str] = []
    first = 1
    while True:
        reported = await shown(workspace, first=first)
        seen += [line.split()[1] for line in reported.splitlines() if line.startswith("## n")]
        if "[cut; go on with first=" not in reported:
            break
        first = int(reported.rpartition("first=")[2].rstrip("]"))
    assert seen == [f"n{number:02}.py" for number in range(60)]


async def test_only_paths_that_are_asked_for_and_the_text_of_a_selection(project: Path) -> None:
    (project / "app.py").write_bytes(b"other\n" + APP.encode())
    (project / "old.py").write_bytes(b"other\n")
    workspace = workspace_of(project)
    reported = await shown(workspace, paths=["app.py"])
    assert reported.startswith("1 file, +1 −0")
    reported = await shown(workspace, of="file", paths=["app.py"], start_line=3, end_line=4)
    assert reported.endswith("## app.py (+2 −0, lines 3-4 of 31)\n     3\tline 2\n     4\tline 3")
    with pytest.raises(KodeError, match="Name the files"):
        await shown(workspace, of="file")


async def test_a_project_makes_git_run_nothing(project: Path, tmp_path: Path) -> None:
    sign = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{sign}'\ncat\n")
    script.chmod(0o755)
    run = str(script)
    for name in (
        *("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.editor"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
        *("diff.evil.command", "diff.evil.textconv", "core.alternateRefsCommand"),
    ):
        git(project, "config", name, run)
    git(project, "config", "filter.evil.required", "true")
    for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman"):
        shutil.copy(script, project / ".git" / "hooks" / hook)
    (project / ".gitattributes").write_bytes(b"*.py filter=evil diff=evil\n")
    os.utime(project / "old.py", (1, 1))  # Git has to look at its content
    (project / "app.py").write_bytes(b"other\n" + APP.encode())
    for params in ({}, {"of": "staged"}, {"of": "branch"}, {"of": "range", "range": "HEAD"}):
        await shown(workspace_of(project), **params)
    reported = await shown(workspace_of(project))
    assert "    1 + other" in reported
    assert not sign.exists()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"of": "range", "range": "--output=x"}, "is no name of a commit"),
        ({"of": "range", "range": "nobody"}, "Git knows no commit nobody"),
        ({"of": "range"}, "Name a commit or a range"),
        ({"of": "branch", "range": "nobody"}, "There is no base nobody"),
    ],
)
async def test_what_git_does_not_know_is_said(
    project: Path, params: dict[str, str], words: str
) -> None:
    with pytest.raises(KodeError, match=words):
        await shown(workspace_of(project), **params)


async def test_a_folder_without_a_repository_and_one_without_commits(tmp_path: Path) -> None:
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    plain.mkdir()
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "a.py").write_bytes(b"one\n")
    with pytest.raises(KodeError, match="not a git repository"):
        await shown(workspace_of(plain))
    assert "    1 + one" in await shown(workspace_of(empty))
    assert "## empty/a.py" in await shown(workspace_of(plain, empty))
