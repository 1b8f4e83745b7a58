"""The built program as a folder: what is in it, and that it can stand anywhere."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar import __version__
from tests.house.test_import_rules import LATE_IMPORTS
from tests.support.model_script import answer, text, tool_call
from tests.support.program import BUILT, ROOT
from tests.support.sidecar import HANG_SECONDS, sidecar

pytestmark = pytest.mark.skipif(BUILT is None, reason="KODE_TEST_EXE names no built program")
EXE = Path(BUILT or "no program")
INNER = EXE.with_name("_internal")


def archive_names() -> tuple[list[str], set[str]]:
    """The scripts that run at the start, and the modules that can be imported."""
    from PyInstaller.archive.readers import CArchiveReader

    archive: Any = CArchiveReader(str(EXE))
    scripts = [name for name, (*_, kind) in archive.toc.items() if kind == "s"]
    (modules,) = (name for name, (*_, kind) in archive.toc.items() if kind == "z")
    return scripts, set(archive.open_embedded_archive(modules).toc)


def test_late_imports_are_in_it_and_the_unused_is_not() -> None:
    _, modules = archive_names()
    assert {target for _, target in LATE_IMPORTS} - modules == set()
    packages = {name.partition(".")[0] for name in modules}
    foreign = {"multiprocessing", "tkinter", "unittest", "pytest", "PyInstaller", "setuptools"}
    assert packages & foreign == set()


def test_nothing_of_pyinstallers_runs_before_the_front_door_but_its_importer() -> None:
    scripts, _ = archive_names()
    assert scripts == ["pyiboot01_bootstrap", "__main__"]


def test_files_that_are_opened_by_name_are_those_of_the_project() -> None:
    sources = {"prompts": ROOT / "prompts"}
    for name in ("recording", "sample_project", "unsaved"):
        sources[f"kode_sidecar/demo/{name}"] = ROOT / "kode_sidecar" / "demo" / name
    for name, source in sources.items():
        files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
        built = INNER / name
        assert {path.relative_to(built) for path in built.rglob("*") if path.is_file()} == files
        for path in files:
            assert (built / path).read_bytes() == (source / path).read_bytes()


def copied(folder: Path) -> Path:
    """The program in another folder."""
    shutil.copytree(EXE.parent, folder)
    return folder / EXE.name


def run(command: Sequence[str | Path], **more: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_SECONDS, **more
    )


def test_it_stands_anywhere_and_needs_no_environment(tmp_path: Path) -> None:
    program = copied(tmp_path / "我的 tools" / "kode")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    for broken in ({}, {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "PATH": ""}):
        (tmp_path / "json.py").write_text("raise SystemExit('a module of the project')")
        done = run([program, "--version"], cwd=tmp_path, env={**kept, **broken}, check=True)
        assert done.stdout.decode().split() == ["kode-sidecar", __version__]


def test_its_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    home = tmp_path / "日志 🍵"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "KODE_HOME": str(home)}
    done = run([EXE, "doctor"], env=environment, check=False)
    assert str(home) in done.stdout.decode("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script takes the place of rg")
async def test_children_get_no_library_path_of_ours(tmp_path: Path) -> None:  # W14
    program = copied(tmp_path / "kode")
    rg, seen = program.with_name("_internal") / "rg", tmp_path / "seen"
    rg.rename(rg.with_name("real-rg"))
    rg.write_text(f'#!/bin/sh\nenv > "{seen}"\nexec "{rg.with_name("real-rg")}" "$@"\n')
    rg.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("needle = 1\n")
    call = tool_call("search_code", {"query": "needle"})
    responses = [answer(call), answer(text("found"))]
    async with sidecar(responses, roots=[project], command=[str(program), "serve"]) as world:
        session = await world.session()
        await world.turn(session, "look")
        assert "needle = 1" in world.asked()["messages"][-1]["content"]
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    loader = {name for name in names if name.startswith(("LD_", "DYLD_", "_PYI", "PYTHON"))}
    assert loader == set()
