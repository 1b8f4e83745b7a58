"""toad, a client of ACP in the terminal, as PyPI has it, on the Python of Debian that it asks for.

It reports its use and asks for newer versions: its settings and a dead proxy keep it at home. Its
list of agents gets ours beside its own, as if that had been added to it.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.editors.debian_packages import PackagesMissing, unpack
from tests.editors.neovim_builds import available
from tests.support.foreign import not_available
from tests.support.node_tools import not_run
from tests.support.program import PROGRAM, ROOT
from tests.support.python_tools import CACHE, INSTALL_SECONDS

LOCK = Path(__file__).parent / "pypi_toad" / "requirements.txt"
DEAD = "http://127.0.0.1:9"
_START = """
import sys
sys.path.insert(0, sys.argv[1])
import toad
toad.__path__.append(sys.argv[2])
sys.argv = ["toad", *sys.argv[3:]]
from toad.cli import main
main()
"""
_AGENT = """
identity = "kode-sidecar.example"
name = "Kode"
short_name = "kode"
url = "https://example.invalid"
protocol = "acp"
author_name = "kode"
author_url = "https://example.invalid"
publisher_name = "kode"
publisher_url = "https://example.invalid"
type = "coding"
description = "The agent under test"
tags = []
help = "None"
run_command."*" = {command}
actions = {{}}
"""


@dataclass(frozen=True)
class Toad:
    """How to start it for one user: `command` in front of its own arguments, and what it sees.

    What is said both ways is in `log`, a line each.
    """

    command: list[str]
    environment: dict[str, str]
    log: Path


def toad(home: Path, more: Mapping[str, str]) -> Toad:
    """For a new user; the agent sees `more`, too. Where it cannot be had the test says NOT RUN."""
    python = _python()
    packages = _packages(tuple(python))
    (home / "config" / "toad").mkdir(parents=True)
    settings = {"statistics": {"allow_collect": False}}
    (home / "config" / "toad" / "toad.json").write_text(json.dumps(settings))
    agents = home / "listed" / "data" / "agents"
    agents.mkdir(parents=True)
    run = json.dumps(shlex.join([*PROGRAM, "acp", "--trust"]))
    (agents / "kode.toml").write_text(_AGENT.format(command=run))
    log = home / "toad.log"
    own = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("config", "data", "state")}
    environment = {
        **os.environ,
        **own,
        **{f"{name}_PROXY": DEAD for name in ("HTTP", "HTTPS", "ALL")},
        "NO_PROXY": "127.0.0.1",
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "SHELL": "/bin/sh",
        "TERM": "xterm-256color",
        "TOAD_LOG": str(log),
        **more,
    }
    command = [*python, "-c", _START, str(packages), str(home / "listed")]
    return Toad(command, environment, log)


@cache
def _python() -> list[str]:
    """Python 3.14 in a folder that is no root of a system: it runs by the folder's own loader."""
    if not available():
        not_available("Python of Debian's newest suite needs Linux and apt-get")
    root = CACHE / "python3.14"
    if not root.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as fresh:
            try:
                unpack("python3.14", "sid", Path(fresh) / "root")
                (Path(fresh) / "root").rename(root)
            except PackagesMissing as error:
                not_run(str(error))
            except OSError:
                if not root.exists():
                    raise
    (loader,) = (root / "usr" / "lib64").glob("ld-linux*")
    libraries = next((root / "usr" / "lib").glob("*-linux-gnu"))
    return [str(loader), "--library-path", str(libraries), str(root / "usr/bin/python3.14")]


@cache
def _packages(python: tuple[str, ...]) -> Path:
    """toad and what it needs; that Python has no pip, so it runs the one of the tests."""
    folder = CACHE / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    if folder.exists():
        return folder
    pip = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "pip"
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as fresh:
        target = Path(fresh) / "packages"
        reported = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command = [
            *python,
            str(pip),
            "install",
            *reported,
            "--target",
            str(target),
            "-r",
            str(LOCK),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, check=False, timeout=INSTALL_SECONDS, cwd=fresh
            )
        except (OSError, subprocess.SubprocessError) as error:
            not_run(f"pip cannot be run: {error}")
        if done.returncode != 0:
            not_run(f"pip install failed: {done.stderr.decode(errors='replace')[-500:]}")
        try:
            target.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    return folder
