"""All TypeScript that a plugin's author is shown compiles at its strictest, without a cast."""

import re
import shutil
from pathlib import Path

import pytest

from tests.core.protocol.test_typescript import STRICT
from tests.support.node_tools import node_modules, run_node
from tests.support.program import ROOT

DECLARATIONS = ROOT / "protocol" / "kode.d.ts"
SOURCES = sorted(
    path
    for folder in ("protocol", "examples")
    for path in (ROOT / folder).rglob("*.*ts")
    if path.suffix in (".ts", ".mts", ".cts") and path != DECLARATIONS
)
# `as const` widens nothing and hides nothing; a renamed import is no cast either.
CAST = re.compile(r"\bas (?!const\b|\w+ from\b)|@ts-")


def test_there_are_some() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in SOURCES]
    assert names == ["examples/plugin-ci/plugin.mts", "protocol/fold/fold.ts"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The plugin as its README lays it out: the reducer beside it, the declarations above."""
    (tmp_path / "plugin").mkdir()
    (tmp_path / "node_modules").symlink_to(node_modules(), target_is_directory=True)
    shutil.copy(DECLARATIONS, tmp_path)
    for path in SOURCES:
        shutil.copy(path, tmp_path / "plugin")
    return tmp_path


def strictly(checkout: Path) -> str:
    """What the compiler says."""
    names = [f"plugin/{path.name}" for path in SOURCES]
    tsc = node_modules() / "typescript" / "bin" / "tsc"
    done = run_node(str(tsc), *STRICT, "--types", "node", *names, "kode.d.ts", cwd=checkout)
    return done.stdout + done.stderr


def test_they_compile_strictly(checkout: Path) -> None:
    assert strictly(checkout) == ""
    plugin = checkout / "plugin" / "plugin.mts"
    text = plugin.read_text(encoding="utf-8")
    plugin.write_text(text.replace("seenSeq: fold.seq", "seenSeq: fold.title"), encoding="utf-8")
    assert "plugin.mts(97,28): error" in strictly(checkout)  # the compiler does look


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_they_cast_nothing(path: Path) -> None:
    code = re.sub(r"//.*|/\*.*?\*/", "", path.read_text(encoding="utf-8"))
    assert CAST.findall(code) == []
