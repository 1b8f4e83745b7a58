"""Which files of a folder run code later, and what of them changed. W11 W12"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kode_sidecar.infrastructure.workspace import startup_files
from kode_sidecar.infrastructure.workspace.sensitive import EDITOR_FOLDERS, SENSITIVE_PATTERNS
from kode_sidecar.infrastructure.workspace.startup_files import changed_files, find_startup_files

SOMEBODY = os.getuid() or 65534 if os.name != "nt" else 0


def write(root: Path, *names: str, content: str = "x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_every_sensitive_target_is_found_at_any_depth(tmp_path: Path) -> None:
    names = [one.replace("/**", "/file").replace("*", "x") for one in SENSITIVE_PATTERNS]
    write(tmp_path, *(f"deep/{number}/{name}" for number, name in enumerate(names)))
    write(tmp_path, "plain.py", "deep/plain.py", "node_modules/a/package.json")
    found = find_startup_files([tmp_path])
    tops = [f"{number}/{name.split('/')[0]}" for number, name in enumerate(names)]
    assert sorted(found.read_only) == sorted(tmp_path / "deep" / one for one in tops)
    assert len(found.states) == len(names)
    assert {".vscode", ".idea"} <= set(EDITOR_FOLDERS)
    assert found.missing == [tmp_path / name for name in (".git", *EDITOR_FOLDERS)]


def test_of_a_repository_only_what_steers_it(tmp_path: Path) -> None:
    write(
        tmp_path, *(f".git/{name}" for name in ("HEAD", "objects/x", "index", "hooks/a", "info/b"))
    )
    write(tmp_path, ".git/config", content='[core]\n\thooksPath = "my/hooks"\n\tpath=.\n')
    write(tmp_path, "my/hooks/pre-commit", "sub/.hg/hgrc", "sub/.hg/store/data")
    write(tmp_path, ".git/worktrees/w/HEAD", ".git/worktrees/w/commondir", "bare/HEAD")
    write(tmp_path, "bare/objects/x", "bare/config", "module/.git", "empty/.git/config")
    found = find_startup_files([tmp_path])
    protected = {path.relative_to(tmp_path).as_posix() for path in found.read_only}
    assert protected == {
        *(".git/hooks", ".git/info", ".git/config", "my/hooks", "sub/.hg/hgrc"),
        *(".git/worktrees/w/commondir", "bare/config", "module/.git", "empty/.git"),
    }
    in_place = {path.relative_to(tmp_path).as_posix() for path in found.in_place}
    assert in_place == {".git", ".git/worktrees", ".git/worktrees/w", "bare", "sub/.hg"}


def test_a_change_is_one_of_contents_name_or_kind(tmp_path: Path) -> None:
    write(tmp_path, ".envrc", ".exrc", "AGENTS.md", "a.py")
    before = find_startup_files([tmp_path]).states
    assert changed_files(before, find_startup_files([tmp_path]).states) == []
    write(tmp_path, ".envrc", "a.py", content="yy")
    os.replace(tmp_path / ".exrc", tmp_path / ".vimrc")
    after = find_startup_files([tmp_path]).states
    changed = [path.name for path in changed_files(before, after)]
    assert changed == [".envrc", ".exrc", ".vimrc"]


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "package.json", *(f"a/{number}/package.json" for number in range(20)))
    monkeypatch.setattr(startup_files, "MAX_READ_ONLY", 5)
    found = find_startup_files([tmp_path])
    assert len(found.read_only) == 5
    assert found.read_only[0] == tmp_path / "package.json"
    assert len(found.states) == 21
    assert not found.cut
    monkeypatch.setattr(startup_files, "MAX_ENTRIES", 15)
    assert find_startup_files([tmp_path]).cut


def test_links_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path, "other/info/alternates", "other/tasks.json")
    write(root, ".git/HEAD", "mine/settings.json")
    (root / ".git" / "objects").symlink_to(tmp_path / "other")
    (root / ".vscode").symlink_to(tmp_path / "other")
    (root / ".idea").symlink_to("mine")
    (root / ".zed").symlink_to(".")
    (root / ".envrc").symlink_to("missing")
    found = find_startup_files([root])
    assert found.read_only == [root / "mine"]
    assert found.in_place == [root / ".git"]
    names = {path.relative_to(root).as_posix() for path in found.states}
    assert names == {".git/objects/info/alternates", ".vscode", ".idea", ".zed", ".envrc"}


@pytest.mark.skipif(os.name == "nt", reason="folders of Windows are closed by other means")
def test_a_folder_that_nobody_may_look_into_is_no_error() -> None:
    """Root may look into all; so this test is somebody else for a while."""
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root, ".git/HEAD", ".git/hooks/a", "sub/AGENTS.md")
        for path in (root, *root.rglob("*")):
            os.chown(path, SOMEBODY, -1)
        os.chmod(root / ".git", 0)
        os.seteuid(SOMEBODY)
        try:
            found = find_startup_files([root])
        finally:
            os.seteuid(os.getuid())
        assert root / "sub/AGENTS.md" in found.read_only
        os.chmod(root / ".git", 0o700)
