"""The patch of a changed copy as real Git takes it: any bytes, any names, any change. B4"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.project_copy import ProjectCopy, copy_project
from kode_sidecar.jobs.run.project_patch import (
    ProjectChanges,
    change_summary,
    project_changes,
)
from tests.support.files import link, write
from tests.support.git import GIT, git

pytestmark = pytest.mark.skipif(GIT is None, reason="Git is what these compare with")
EXECUTABLE = 0o755


def tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """All files with their bytes and whether they can be run."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


class World:
    """A project, its copy, and Git to apply the patch with."""

    def __init__(self, root: Path, files: dict[str, str | bytes]) -> None:
        self.project, self.copy_folder = root / "project", root / "box" / "workspace"
        self.project.mkdir()
        self.copy_folder.mkdir(parents=True)
        write(self.project, files)
        archive = root / "box" / "import.zip"
        self.copy: ProjectCopy = copy_project(
            self.project, self.copy_folder, archive, apart=root / "box"
        )
        assert set(self.copy.files) == set(files)
        self.origins: dict[Path, Path] = {}

    def move(self, old: str, new: str) -> None:
        target = self.copy_folder / new
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.copy_folder / old, target)
        self.origins[target] = self.origins.pop(self.copy_folder / old, self.copy_folder / old)

    def changes(self, *touched: str) -> ProjectChanges:
        return project_changes(
            self.copy, self.origins, [self.copy_folder / path for path in touched]
        )

    def assert_applies(self) -> ProjectChanges:
        """Git takes the patch, and the project is then the same as the copy, byte for byte."""
        changes = self.changes()
        assert changes.left_out == ()
        patch = self.project.parent / "changes.patch"
        patch.write_bytes(changes.patch)
        if changes.patch:
            git(self.project, "init", "-q")
            git(self.project, "apply", "--check", str(patch))
            git(self.project, "apply", str(patch))
        assert tree(self.project) == tree(self.copy_folder)
        return changes


GBK = "价目表\r\n第二行\n".encode("gb18030")
FILES: dict[str, str | bytes] = {
    "a.txt": "one\ntwo\nthree\n",
    "crlf.txt": "one\r\ntwo\r\nthree\r\n",
    "mixed.txt": "one\r\ntwo\nthree\rfour",
    "中文 文件.txt": GBK,
    "dir with space/b c.txt": "x\n",
    "utf16.txt": "hello\n".encode("utf-16"),
    "empty": "",
    'quo"te.txt' if sys.platform != "win32" else "quote.txt": "q\n",
}


def test_every_kind_of_change_in_one_patch(tmp_path: Path) -> None:
    world = World(tmp_path, FILES)
    write(
        world.copy_folder,
        {
            "a.txt": "one\nTWO\nthree",
            "crlf.txt": "one\r\ntwo\r\n2.5\r\nthree\r\n",
            "mixed.txt": "one\r\ntwo\n2.5\nthree\rfour\n",
            "中文 文件.txt": GBK + "完".encode("gb18030"),
            "utf16.txt": "hello you\n".encode("utf-16"),
            "new 新.bin": bytes(range(256)) * 9,
            "new/empty": "",
        },
    )
    (world.copy_folder / "empty").unlink()
    world.move("dir with space/b c.txt", "移 动/b.txt")
    if sys.platform != "win32":
        (world.copy_folder / "crlf.txt").chmod(EXECUTABLE)
    changes = world.assert_applies()
    kinds = {one.path: one.kind for one in changes.files}
    assert kinds == {
        "a.txt": "changed",
        "crlf.txt": "changed",
        "empty": "deleted",
        "mixed.txt": "changed",
        "new 新.bin": "created",
        "new/empty": "created",
        "utf16.txt": "changed",
        "中文 文件.txt": "changed",
        "移 动/b.txt": "moved",
    }
    assert b"rename from dir with space/b c.txt\nrename to " in changes.patch


def test_the_patch_is_the_one_that_git_makes(tmp_path: Path) -> None:
    world = World(tmp_path, {"a b.txt": "".join(f"{n}\n" for n in range(40)), "gone": "x"})
    git(world.project, "init", "-q")
    git(world.project, "add", "-A")
    text = (world.copy_folder / "a b.txt").read_text()
    write(world.copy_folder, {"a b.txt": text.replace("3\n", "drei\n"), "new": "y"})
    (world.copy_folder / "gone").unlink()
    ours = world.changes().patch.decode()
    shutil.copytree(world.copy_folder, world.project, dirs_exist_ok=True)
    (world.project / "gone").unlink()
    git(world.project, "add", "-N", "new")
    theirs = git(world.project, "diff", "--full-index", "--diff-algorithm=patience")
    # Git also names the function that a hunk is in.
    assert ours == re.sub(r"(?m)^(@@ .* @@) .*$", r"\1", theirs)


def test_a_moved_file_that_was_changed_too(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "one\ntwo\n", "b.txt": "b\n"})
    world.move("a.txt", "c.txt")
    write(world.copy_folder, {"c.txt": "one\n2\n"})
    assert [one.kind for one in world.assert_applies().files] == ["moved"]


def test_files_that_change_places(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "a\n", "b.txt": "b\n"})
    for old, new in (("a.txt", "t.txt"), ("b.txt", "a.txt"), ("t.txt", "b.txt")):
        world.move(old, new)
    assert [one.kind for one in world.assert_applies().files] == ["changed", "changed"]


def test_a_file_that_becomes_a_folder_and_the_other_way(tmp_path: Path) -> None:
    world = World(tmp_path, {"a": "a\n", "d/e": "e\n"})
    (world.copy_folder / "a").unlink()
    shutil.rmtree(world.copy_folder / "d")
    write(world.copy_folder, {"a/b": "b\n", "d": "d\n"})
    world.assert_applies()


def test_the_patch_is_for_the_project_as_it_was_copied(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "one\n"})
    write(world.project, {"a.txt": "meanwhile\n"})
    write(world.copy_folder, {"a.txt": "two\n"})
    assert b"-one\n+two\n" in world.changes().patch


def test_new_files_that_rules_ignore_are_told_only_if_touched(tmp_path: Path) -> None:
    world = World(tmp_path, {".gitignore": "*.log\n"})
    write(world.copy_folder, {"a.log": "", "b.log": "", "__pycache__/c.pyc": "", "d.txt": ""})
    assert [one.path for one in world.changes("b.log").files] == ["b.log", "d.txt"]


def test_what_no_patch_can_tell_is_left_out_and_said(tmp_path: Path) -> None:
    write(tmp_path, {"project/.gitignore": "there.txt\n", "project/a.txt": "a", "secret": "leaked"})
    folder = tmp_path / "box" / "workspace"
    folder.mkdir(parents=True)
    archive = tmp_path / "box" / "import.zip"
    copy = copy_project(tmp_path / "project", folder, archive, apart=tmp_path / "box")
    write(tmp_path, {"project/there.txt": "not copied"})
    write(folder, {"there.txt": "new here", "new.txt": "n"})
    (folder / "a.txt").unlink()
    link(folder / "a.txt", tmp_path / "secret")
    link(folder / "out.txt", tmp_path / "secret")
    os.link(tmp_path / "secret", folder / "hard.txt")
    changes = project_changes(copy, {}, [folder / "there.txt"])
    assert [one.path for one in changes.files] == ["new.txt"]
    assert {one.path for one in changes.left_out} == {
        "a.txt",
        "out.txt",
        "hard.txt",
        "there.txt",
    }
    assert b"leaked" not in changes.patch


def test_an_archive_that_was_tampered_with(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "one\n"})
    write(world.copy_folder, {"a.txt": "two\n"})
    for data in (b"", b"PK\5\6" + bytes(18)):
        world.copy.archive.write_bytes(data)
        with pytest.raises(KodeError) as refused:
            world.changes()
        assert refused.value.code == "Storage"


NAMES = ("a", "b c", "中文", "é.txt", "-x", "d/e", "d/f g", "d/深/h", "tab.txt", "i'j", "k#", "%41")
if sys.platform != "win32":
    NAMES += ('q"uote', "s*", "<t>")
LINES = (b"one\n", b"two\r\n", b"\n", b"\r\n", b"\r", b"three", b"\xe9\n", b"--- a/x\n", b"\\\n")
LINES += (
    "价\n".encode("gb18030"),
    "目\n".encode(),
    b"+x\n",
    b"@@ -1 +1 @@\n",
    b" \t \n",
    b"\x0c\n",
)
contents = st.lists(st.sampled_from(LINES), max_size=14).map(b"".join)
contents |= st.binary(max_size=200)
projects = st.dictionaries(st.sampled_from(NAMES), contents, max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(("write", "move", "delete", "mode", "edit")), st.sampled_from(NAMES))
    .flatmap(lambda step: st.tuples(st.just(step[0]), st.just(step[1]), contents))
    .flatmap(lambda step: st.tuples(*map(st.just, step), st.sampled_from(NAMES))),
    max_size=8,
)


@given(projects, steps)
def test_any_changes_of_any_project(
    files: dict[str, str | bytes], doing: list[tuple[str, str, bytes, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), files)
        for what, name, data, other in doing:
            do(world, what, name, data, other)
        world.assert_applies()


def do(world: World, what: str, name: str, data: bytes, other: str) -> None:
    path, target = world.copy_folder / name, world.copy_folder / other
    if what == "write":
        if not path.is_dir():
            write(world.copy_folder, {name: data})
    elif not path.is_file():
        return
    elif what == "edit":
        old = path.read_bytes()
        path.write_bytes(old[: len(old) // 2] + data + old[len(old) // 2 :])
    elif what == "move":
        if not target.exists():
            world.move(name, other)
    elif what == "delete":
        path.unlink()
        world.origins.pop(path, None)
    elif sys.platform != "win32":
        path.chmod(EXECUTABLE)


def test_a_name_that_git_refuses_does_not_spoil_the_patch(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "one\n"})
    names = (".GIT/config", "sub/.git/hooks/x", "GIT~1/config", ".gi\u200ct/config")
    write(world.copy_folder, {"a.txt": "two\n", **dict.fromkeys(names, "evil\n")})
    changes = world.changes(*names)
    assert [one.path for one in changes.files] == ["a.txt"]
    assert {one.path for one in changes.left_out} == set(names)
    patch = tmp_path / "changes.patch"
    patch.write_bytes(changes.patch)
    git(world.project, "init", "-q")
    git(world.project, "apply", str(patch))
    assert (world.project / "a.txt").read_text() == "two\n"


def test_what_a_command_wrote_that_runs_by_itself_is_told_aloud(tmp_path: Path) -> None:
    world = World(tmp_path, {"a.txt": "one\n", "package.json": "{}\n"})
    wrote = {"package.json": '{"a": 1}\n', ".vscode/tasks.json": "[]\n", "b.txt": "x\n"}
    write(world.copy_folder, wrote)
    changes = world.changes(".vscode/tasks.json")  # that one by a tool, which had to ask
    why = {one.path: one.sensitive for one in changes.files}
    assert why.keys() == wrote.keys()
    assert not why["b.txt"]
    assert not why[".vscode/tasks.json"]
    assert "package.json" in why["package.json"]
    assert "LOOK BEFORE YOU APPLY IT: a command wrote package.json" in change_summary(changes)
