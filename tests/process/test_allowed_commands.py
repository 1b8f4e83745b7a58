"""An allowed program runs with what its rule names; every question answered no, nothing happens."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_commands import choose, results, run, said, world
from tests.support.files import link
from tests.support.foreign import require
from tests.support.model_script import answer, text

DONE = answer(text("ok"))
SECRET = "sesame-opens-the-door"
ALLOW = "{run: list, allow: [python, pytest, git, uniq, date, cat, sort, grep, make, head, wc, rg]}"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the attacks are written for POSIX tools")


def git(project: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)


def project_of(folder: Path) -> Path:
    require("git")
    project = folder / "项目"
    (project / "keep").mkdir(parents=True)
    (project / "keep" / "data").write_text("precious\n")
    (project / "keep" / ".env").write_text(f"WORD={SECRET}\n")
    (project / "a").write_text("one\none\n")
    (project / ".env").write_text(f"WORD={SECRET}\n")
    (project / "deep").mkdir()
    (project / "deep" / "secrets.yml").write_text(f"word: {SECRET}\n")
    link(project / "innocent", project / ".env")
    (project / "evil.py").write_text("open('ran', 'w').close()\n")
    (project / "evil.sh").write_text("#!/bin/sh\ntouch ran\ncat\n")
    (project / "evil.sh").chmod(0o755)
    (project / "pattern.env").write_text("one\n")
    (project / "env.patch").write_text("diff --git a/.env b/b\ncopy from .env\ncopy to b\n")
    git(project, "init", "-q")
    git(project, "add", "-f", "a", ".env", "evil.py")
    git(project, "commit", "-qm", "first")
    (project / "a").write_text("two\n")
    (project / ".env").write_text(f"WORD={SECRET}2\n")
    return project


def contents(project: Path) -> dict[str, bytes]:
    """All files of a project but for Git's index, which `git status` may refresh."""
    files = (one for one in project.rglob("*") if one.is_file() and one.name != "index")
    return {str(one.relative_to(project)): one.read_bytes() for one in files}


ATTACKS = [
    "pytest -p evil",
    "python -m pytest -p evil",
    "python -m pytest --basetemp=keep",
    "python -m pytest -o addopts=-pevil",
    "uniq a .git/hooks/pre-commit",
    "uniq a keep/data",
    "sort -o keep/data a",
    "make SHELL=./evil.sh",
    "make --eval=x:;./evil.sh",
    "cat .env",
    "cat ./keep/../.env",
    "cat innocent",
    "head -c 99 .ENV" if sys.platform == "darwin" else "head -c 99 .env",
    "wc --files0-from=.env",
    "date -f .env",
    "grep -r WORD .",
    "grep -rn WORD deep",
    "grep -f pattern.env a",
    "rg --hidden WORD",
    "rg word deep",
    "python .env",
    "git show HEAD:.env",
    "git show HEAD:./.env",
    "git show :.env",
    "git grep WORD",
    "git diff",
    "git log -p",
    "git log -L1,1:.env",
    "git blame .env",
    "git diff --no-index a .env",
    "git cat-file -p HEAD:.env",
    "git hash-object --stdin-paths .env",
    "sort .env",
    "git log --binary",
    "git log -wp",
    "git log -wU1",
    "git reflog -p",
    "git status -vv",
    "git add -p",
    "git commit -p",
    "git apply env.patch",
    "grep -d recurse WORD .",
    "grep --directories=rec WORD keep",
    "rg -t sh WORD keep",
    "rg WORD keep -tall",
    "rg -g * WORD keep",
    "rg --iglob=.E* WORD keep",
]


READS = (".env", "WORD", "word deep", "innocent", "log -", "reflog", " -vv", "add -p", "commit -p")


@pytest.mark.parametrize("attack", ATTACKS)
async def test_it_is_asked_and_a_no_leaves_everything_as_it_was(
    attack: str, tmp_path: Path
) -> None:
    project = project_of(tmp_path)
    before = contents(project)
    async with world(tmp_path, ALLOW, run(*attack.split()), DONE) as started:
        started.editor.answer_permission = choose("reject")
        await started.turn(await started.session(), "go")
        (question,) = started.editor.asked
        assert [option["kind"] for option in question["options"]] == ["allow_once", "reject"]
        assert "always asked for" in question["reason"]
        (result,) = results(started)
        assert SECRET not in said(result)
        assert result["status"] == "denied"
        reads = any(word in attack for word in READS)
        if reads or attack == "git diff":
            assert "may hold credentials" in question["reason"]
    after = contents(project)
    assert {name: after.get(name) for name in before} == before
    assert not (project / "ran").exists()


PROGRAMS_IN_CONFIG: list[tuple[str, Any]] = [
    ("git status", ["filter.x.clean", "./evil.sh"]),
    ("git diff a", ["diff.x.textconv", "./evil.sh"]),
    ("git diff a", ["diff.external", "./evil.sh"]),
    ("git diff a", ["diff.x.command", "./evil.sh"]),
    ("git status", ["include.path", "../evil.config"]),
    ("git status", ["includeIf.gitdir:/.path", "../evil.config"]),
    ("git fetch", ["core.sshCommand", "./evil.sh"]),
    ("git log", ["gpg.program", "./evil.sh"]),
    ("git status", ["core.worktree", "/"]),
    ("git fetch", ["remote.x.uploadpack", "./evil.sh"]),
    ("git commit -m x", ["core.hooksPath", "."]),
    ("git status", ["alias.status", "!./evil.sh"]),
]


@pytest.mark.parametrize(("command", "setting"), PROGRAMS_IN_CONFIG)
async def test_git_does_not_obey_a_hostile_repository(
    command: str, setting: list[str], tmp_path: Path
) -> None:
    project = project_of(tmp_path)
    (project / ".gitattributes").write_text("a filter=x diff=x\n")
    git(project, "config", *setting)
    async with world(tmp_path, ALLOW, run(*command.split()), DONE) as started:
        started.editor.answer_permission = choose("reject")
        await started.turn(await started.session(), "go")
        (question,) = started.editor.asked
        name = setting[0].lower()
        why = f"settings make git run a program or read elsewhere ({name})"
        assert why in question["reason"]
    assert not (project / "ran").exists()


async def test_a_worktrees_own_settings_and_hooks_count(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    git(project, "worktree", "add", "-q", "sub")
    git(project, "config", "extensions.worktreeConfig", "true")
    git(project / "sub", "config", "--worktree", "diff.external", "./evil.sh")
    (project / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\ntouch ran\n")
    script = [run("git", "status", cwd="sub"), run("git", "commit", "-m", "x")]
    async with world(tmp_path, ALLOW, *script, DONE) as started:
        started.editor.answer_permission = choose("reject")
        await started.turn(await started.session(), "go")
        first, second = started.editor.asked
        assert "(diff.external)" in first["reason"]
        assert "git commit may run hooks of this repository (pre-commit)" in second["reason"]


async def test_plain_uses_run_unasked(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    git(project, "rm", "-q", "--cached", ".env")
    git(project, "commit", "-qam", "second")
    plain = ["git status", "git diff", "git log --oneline", "git show --stat HEAD", "uniq -c a"]
    plain += ["git commit -m token: --allow-empty", "cat a", "grep -n one a", "rg -l one", "date"]
    plain += ["python -m pytest -q keep", "sort -u a", "git diff -- a", "git grep one"]
    script = [run(*command.split()) for command in plain]
    async with world(tmp_path, ALLOW, *script, DONE) as started:
        await started.turn(await started.session(), "go")
        assert [question["reason"] for question in started.editor.asked] == []
        assert not any(result["status"] == "denied" for result in results(started))
        assert SECRET not in "".join(map(said, results(started)))
