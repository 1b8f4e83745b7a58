"""The built program, folder or one file: what is in it, and that it can stand anywhere."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from freeze.commit import commit_of
from freeze.contents import own_modules
from kode_sidecar import __version__
from tests.support.program import BUILT, ONE_FILE, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.skipif(BUILT is None, reason="KODE_TEST_EXE names no built program")
EXE = Path(BUILT or "no program")

MOST_MB = 20 if ONE_FILE else 45


def archive_names() -> tuple[list[str], set[str]]:
    """The scripts that run at the start, and the modules that can be imported."""
    from PyInstaller.archive.readers import CArchiveReader

    archive: Any = CArchiveReader(str(EXE))
    scripts = [name for name, (*_, kind) in archive.toc.items() if kind == "s"]
    (modules,) = (name for name, (*_, kind) in archive.toc.items() if kind == "z")
    return scripts, set(archive.open_embedded_archive(modules).toc)


def test_all_our_modules_are_in_it_and_the_unused_is_not() -> None:
    _, modules = archive_names()
    assert set(own_modules()) - modules == set()
    packages = {name.partition(".")[0] for name in modules}
    foreign = {"multiprocessing", "tkinter", "unittest", "pytest", "PyInstaller", "setuptools"}
    assert packages & foreign == set()


def test_nothing_of_pyinstallers_runs_before_the_handshake_but_its_importer() -> None:
    scripts, _ = archive_names()
    assert scripts == ["pyiboot01_bootstrap", "__main__"]


def test_it_is_small() -> None:
    files = [EXE] if ONE_FILE else [path for path in EXE.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_MB * 1_000_000


def copied(folder: Path) -> Path:
    """The program in another folder."""
    if ONE_FILE:
        folder.mkdir(parents=True)
        return Path(shutil.copy(EXE, folder))
    shutil.copytree(EXE.parent, folder)
    return folder / EXE.name


def run(command: Sequence[str | Path], **more: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        command, stdin=subprocess.PIPE, capture_output=True, timeout=HANG_SECONDS, **more
    )


def test_its_version_names_the_build() -> None:  # E5
    said = run([EXE, "--version"], check=True).stdout.decode().strip()
    commit = commit_of(ROOT) or "unknown"
    kind = "one file" if ONE_FILE else "folder"
    assert said.startswith(f"kode-sidecar {__version__} (commit {commit.removesuffix('-dirty')}")
    assert f", {kind}, Python 3." in said


def test_it_stands_anywhere_and_needs_no_environment(tmp_path: Path) -> None:
    program = copied(tmp_path / "我的 tools" / "kode")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ}
    for broken in ({}, {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "PATH": ""}):
        (tmp_path / "json.py").write_text("raise SystemExit('a module of the project')")
        done = run([program, "--version"], cwd=tmp_path, env={**kept, **broken}, check=True)
        assert done.stdout.decode().split()[:2] == ["kode-sidecar", __version__]


def test_its_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    home = tmp_path / "日志 🍵"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "KODE_HOME": str(home)}
    done = run([EXE, "doctor"], env=environment, check=False)
    assert str(home) in done.stdout.decode("utf-8")


def test_the_wire_contract_is_in_it(tmp_path: Path) -> None:
    run([EXE, "protocol", "--out", tmp_path], check=True)
    written = json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))
    assert written == json.loads((ROOT / "protocol" / "schema.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(sys.platform != "win32", reason="a resource of Windows")
def test_windows_knows_its_version() -> None:
    from PyInstaller.utils.win32.versioninfo import read_version_info_from_executable

    assert __version__ in str(read_version_info_from_executable(str(EXE)))


@pytest.mark.skipif(sys.platform != "win32", reason="a resource of Windows")
def test_windows_may_give_it_long_paths() -> None:
    from PyInstaller.utils.win32.winmanifest import read_manifest_from_executable

    manifest = ElementTree.fromstring(read_manifest_from_executable(str(EXE)))
    (aware,) = manifest.iter("{http://schemas.microsoft.com/SMI/2016/WindowsSettings}longPathAware")
    assert aware.text == "true"
