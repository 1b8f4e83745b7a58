"""Python packages for tests, in an environment of their own: the versions that a lock pins.

They are foreign programs: what they need is not to meet what the sidecar needs.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.node_tools import not_run

# An editable install keeps its environment beside the project.
CACHE = Path(sys.prefix) / "foreign"
INSTALL_SECONDS = 600.0


@cache
def python_programs(pins: Path) -> Path:
    """The folder of the programs that `pins/requirements.txt` installs; the first use does so."""
    lock = pins / "requirements.txt"
    folder = CACHE / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if not (folder / "whole").exists():
        _install(folder, lock)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def _install(folder: Path, lock: Path) -> None:
    """Programs hold the path of their environment, so it is made where it stays."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    CACHE.mkdir(parents=True, exist_ok=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        done = subprocess.run(
            [*install, "-r", str(lock)],
            capture_output=True,
            check=False,
            timeout=INSTALL_SECONDS,
            cwd=tempfile.gettempdir(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        not_run(f"pip cannot be run: {error}")
    if done.returncode != 0:
        not_run(f"pip install failed: {done.stderr.decode(errors='replace')[-500:]}")
    (folder / "whole").touch()
