"""The wheel and the sdist, as `pip install` takes them: complete, and they run (A1)."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from freeze.commit import commit_of
from freeze.contents import PACKAGE
from kode_sidecar import __version__
from kode_sidecar.servers.boot.build_info import build_info
from kode_sidecar.servers.boot.wire_files import ACP_FILES, WIRE_FILES
from tests.conftest import FULL
from tests.support.program import ROOT
from tests.support.sidecar import HANG_SECONDS

STEM = f"kode_sidecar-{__version__}"
WHEEL, SDIST = f"{STEM}-py3-none-any.whl", f"{STEM}.tar.gz"
MARKER = "kode_sidecar/_build.json"


def hatchling(source: Path, target: str, out: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=HANG_SECONDS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("built")
    hatchling(ROOT, "sdist", folder)
    with tarfile.open(folder / SDIST) as sdist:
        sdist.extractall(folder / "unpacked", filter="data")
    hatchling(folder / "unpacked" / STEM, "wheel", folder)
    return folder


def files(folder: Path) -> set[str]:
    """Paths below the folder's parent, without what Python compiled."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder.parent).as_posix()
        for path in found
        if "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_its_prompts_its_contract_and_its_commit(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"{STEM}.dist-info/METADATA").decode()
        entry = wheel.read(f"{STEM}.dist-info/entry_points.txt").decode()
        marker = wheel.read(MARKER).decode() if commit_of(ROOT) else ""
    prompts = {f"kode_sidecar/_{name}" for name in files(ROOT / "prompts")}
    inside = {name for name in names if ".dist-info/" not in name}
    wire = {f"kode_sidecar/_protocol/{name}" for name in (*WIRE_FILES, *ACP_FILES)}
    assert inside - {MARKER} == files(PACKAGE) | prompts | wire
    assert "kode-sidecar = kode_sidecar.__main__:main" in entry
    assert commit_of(ROOT) in marker
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    provided = re.findall(r"^Provides-Extra: (\S+)\s*$", metadata, re.MULTILINE)
    assert set(provided) == set(extras.get("optional-dependencies", {}))


def test_a_checkout_says_that_it_is_one() -> None:
    assert build_info().kind == "source"


def test_the_sdist_holds_what_builds_and_tests_it(built: Path) -> None:
    with tarfile.open(built / SDIST) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"dev.py", "sidecar.spec", "hatch_build.py", "requirements/exe.txt", "LICENSE"}
    folders = (ROOT / "freeze", ROOT / "prompts", ROOT / "protocol")
    assert wanted.union(*map(files, folders)) <= names
    assert {"tests/conftest.py", "tests/package/test_package.py"} <= names


@pytest.mark.skipif(not FULL, reason="installs from PyPI")
def test_it_runs_where_it_is_installed(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    environment = {**os.environ, "KODE_HOME": str(tmp_path / "home"), "KIMI_API_KEY": "sk-none"}

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [scripts / program, *arguments],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            capture_output=True,
            timeout=600,
        )
        said = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == 0, said
        return said[0]

    run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", str(built / WHEEL))
    assert f"{__version__} (commit {commit_of(ROOT) or 'unknown'}, package, " in run(
        "kode-sidecar", "--version"
    )
    assert "FAIL" not in run("kode-sidecar", "doctor")
    assert "receipt" in run("kode-sidecar", "demo", "--fast", "--locale", "en")
