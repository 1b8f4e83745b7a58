"""What of a project is copied for an agent, and that the project is only read. B2 B4 W11 W12"""

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.project_copy import (
    CopyLimits,
    ProjectCopy,
    copy_project,
)
from tests.support.files import link, write

KEY = "sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
PROJECT: dict[str, str | bytes] = {
    "src/main.py": "print(1)\r\n",
    "src/价目 表.txt": "价目".encode("gb18030"),
    "bin/tool": b"\x7fELF\0",
    ".gitignore": "*.log\nbuild/\n",
    "src/.gitignore": "generated.py\n",
    "build/out.txt": "built",
    "a.log": "log",
    "src/generated.py": "made",
    "node_modules/x/index.js": "x",
    ".git/config": "[core]",
    ".env": f"KEY={KEY}",
    "deploy/server.pem": "pem",
    "notes.md": f"use {KEY}\n",
    ".env.example": "KEY=",
}
COPIED = {"src/main.py", "src/价目 表.txt", "bin/tool", ".gitignore", "src/.gitignore"}
COPIED |= {".env.example"}


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files below a folder, with their times of change."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def copied(root: Path, **more: Any) -> ProjectCopy:
    """`root/app` copied to `root/box/workspace`."""
    folder = root / "box" / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    archive = root / "box" / "import.zip"
    return copy_project(root / "app", folder, archive, apart=root / "box", **more)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "app", PROJECT)
    return tmp_path


def test_what_is_copied(root: Path) -> None:
    (root / "app" / "bin" / "tool").chmod(0o755)
    before = snapshot(root / "app")
    copy = copied(root)
    assert set(snapshot(root / "box" / "workspace")) == set(copy.files) == COPIED
    for path, file in copy.files.items():
        data = (root / "box" / "workspace" / path).read_bytes()
        assert data == (root / "app" / path).read_bytes()
        assert zipfile.ZipFile(copy.archive).read(path) == data
        assert file.size == len(data)
    assert snapshot(root / "app") == before
    reasons = {one.path: one.reason for one in copy.left_out}
    assert set(reasons) == {".env", "deploy/server.pem", "notes.md"}
    assert "credentials" in reasons[".env"]
    assert KEY not in str(reasons)
    if sys.platform != "win32":
        modes = {path: file.mode for path, file in copy.files.items()}
        assert (modes["bin/tool"], modes["src/main.py"]) == ("100755", "100644")
        assert os.access(root / "box" / "workspace" / "bin" / "tool", os.X_OK)


def test_named_files_are_copied_and_excluded_ones_are_not(root: Path) -> None:
    named = (".env", "build/out.txt", "src/generated.py")
    copy = copied(root, exclude=("*.txt", "bin/"), named=named)
    assert set(copy.files) == COPIED - {"bin/tool", "src/价目 表.txt"} | set(named)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (".git/config", "ConfigInvalid"),
        ("src", "ConfigInvalid"),
        ("nothing", "ConfigInvalid"),
        ("../outside", "PathOutsideRoots"),
        ("/etc/passwd", "PathOutsideRoots"),
    ],
)
def test_names_that_cannot_be_granted(root: Path, name: str, code: str) -> None:
    with pytest.raises(KodeError) as refused:
        copied(root, named=(name,))
    assert refused.value.code == code


def test_links_are_never_followed(root: Path) -> None:
    write(root, {"outside/secret.txt": "leaked"})
    app = root / "app"
    link(app / "file.txt", root / "outside" / "secret.txt")
    link(app / "folder", root / "outside")
    link(app / "src" / "loop", app)
    link(app / "inner.py", app / "src" / "main.py")
    os.link(root / "outside" / "secret.txt", app / "hard.txt")
    copy = copied(root)
    assert set(copy.files) == COPIED
    out = {one.path for one in copy.left_out}
    assert {"file.txt", "folder", "src/loop", "inner.py", "hard.txt"} <= out
    assert all(data != b"leaked" for data, _ in snapshot(root / "box").values())


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_names_that_other_systems_refuse(root: Path) -> None:
    names = ("aux.c", "a:b", "dot.", "blank ", "PROGRA~1", "back\\slash", "new\nline", "tab\t")
    write(root / "app", dict.fromkeys(names, "x"))
    (root / "app" / os.fsdecode(b"latin-\xe9")).write_text("x")
    copy = copied(root)
    assert set(copy.files) == COPIED
    assert len(copy.left_out) == 3 + len(names) + 1


def test_a_sandbox_inside_the_project_is_not_copied_into_itself(root: Path) -> None:
    box = root / "app" / "runs" / "one"
    write(box, {"logs/a.txt": "", "workspace/keep": ""})
    (box / "workspace" / "keep").unlink()
    copy = copy_project(root / "app", box / "workspace", box / "import.zip", apart=box)
    assert set(copy.files) == COPIED


def test_limits(root: Path) -> None:
    write(root / "app", {"large.bin": b"x" * 5_000})
    assert "large.bin" in {
        one.path for one in copied(root, limits=CopyLimits(file_bytes=4_000)).left_out
    }
    for limits in (CopyLimits(files=3), CopyLimits(total_bytes=4_000)):
        with pytest.raises(KodeError) as refused:
            copied(root, limits=limits)
        assert refused.value.code == "TooLarge"
    with pytest.raises(KodeError) as refused:
        copied(root, stopped=lambda: True)
    assert refused.value.code == "Cancelled"
