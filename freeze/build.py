"""Runs PyInstaller over `sidecar.spec`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from freeze.contents import ROOT

Kind = Literal["folder", "onefile"]
KINDS: tuple[Kind, ...] = ("folder", "onefile")

_SUFFIX = ".exe" if os.name == "nt" else ""
_ONE_FILE = f"kode-sidecar-one-file{_SUFFIX}"  # as `sidecar.spec` names it

# Two builds of one commit on one system are the same bytes: no order by chance, no time of day.
_REPEATABLE = {"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "1000000000"}


class BuildError(Exception):
    """PyInstaller failed; what it said is on stderr."""


def program_path(kind: Kind, dist: Path, suffix: str = _SUFFIX) -> Path:
    """Where the program lies below `dist`: `kode-sidecar` is a folder, `one-file` holds a file."""
    return dist / ("kode-sidecar" if kind == "folder" else "one-file") / f"kode-sidecar{suffix}"


def build(kinds: Iterable[Kind], dist: Path, work: Path) -> dict[Kind, Path]:
    """Build each of `kinds` with the running Python; `work` holds caches. Raises BuildError."""
    wanted: dict[Kind, Path] = {kind: program_path(kind, dist) for kind in kinds}
    for program in wanted.values():
        shutil.rmtree(program.parent, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    # Without --clean a module that could not be imported the last time stays left out.
    command = [sys.executable, "-m", "PyInstaller", "--clean", "--noconfirm", "--log-level=ERROR"]
    command += [f"--distpath={dist}", f"--workpath={work}", str(ROOT / "sidecar.spec")]
    # Its cache belongs to this checkout, not to the user's home.
    environment = {"PYINSTALLER_CONFIG_DIR": str(work), "KODE_BUILD": " ".join(wanted)}
    environment |= _REPEATABLE
    pipe = subprocess.PIPE
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
    )
    sys.stdout.write(done.stdout.decode("utf-8", "replace"))
    if done.returncode != 0:
        raise BuildError(f"PyInstaller failed with code {done.returncode}, see above")
    if "onefile" in wanted:
        wanted["onefile"].parent.mkdir(parents=True)
        (dist / _ONE_FILE).rename(wanted["onefile"])
    return wanted


def size_mb(kind: Kind, program: Path) -> float:
    """Of the file, or of all files of the folder, in 10^6 bytes."""
    files = [program] if kind == "onefile" else program.parent.rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6
