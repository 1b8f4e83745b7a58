"""A plugin's CI in one file, run as its README says, with the plugin in each of three languages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.neovim_builds import SUITES
from tests.editors.neovim_driver import require_neovim
from tests.support.node_tools import node, node_modules, run_node
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

EXAMPLE = ROOT / "examples" / "plugin-ci"
FOLDS = ROOT / "protocol" / "fold"

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(os.name == "nt", reason="a shell script"),
]


def grades_well(folder: Path, plugin: list[str], environ: dict[str, str] | None = None) -> None:
    """Run `ci.sh` as it stands, and look at its verdict."""
    shutil.copy(EXAMPLE / "ci.sh", folder)
    sidecar = folder / "kode-sidecar"
    sidecar.write_text('#!/bin/sh\nexec {} "$@"\n'.format(" ".join(PROGRAM)), encoding="utf-8")
    sidecar.chmod(0o755)
    done = subprocess.run(
        [str(folder / "ci.sh"), str(sidecar), *plugin],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **(environ or {})},
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
    assert "🍵 THREE" in done.stdout


def test_the_shell_runs_and_grades_the_plugin(tmp_path: Path) -> None:
    for source in (EXAMPLE / "plugin.py", FOLDS / "fold.py"):
        shutil.copy(source, tmp_path)
    grades_well(tmp_path, [sys.executable, "plugin.py"])


def test_in_lua(tmp_path: Path) -> None:
    build = require_neovim(SUITES[0])
    for source in (EXAMPLE / "plugin.lua", FOLDS / "fold.lua"):
        shutil.copy(source, tmp_path)
    grades_well(tmp_path, [*build.command, "-l", "plugin.lua"], build.environment)


def test_in_typescript(tmp_path: Path) -> None:
    for source in (EXAMPLE / "plugin.mts", FOLDS / "fold.ts"):
        shutil.copy(source, tmp_path)
    tsc = node_modules() / "typescript" / "bin" / "tsc"
    options = ["--noCheck", "--target", "es2022", "--module", "nodenext", "--outDir", "out"]
    made = run_node(str(tsc), *options, "plugin.mts", "fold.ts", cwd=tmp_path)
    assert made.returncode == 0, made.stdout
    grades_well(tmp_path, [*node(), "out/plugin.mjs"])
