"""The VS Code extension without VS Code: types, bundle, and its pure logic under `node --test`."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.node_tools import node, node_modules
from tests.support.program import ROOT

EXTENSION = ROOT / "editors" / "vscode"
# What the extension is made of; everything else of its folder is built or installed.
SOURCES = (
    *("src", "test", "scripts", "l10n", "tsconfig.json"),
    *("package.json", "package.nls.json", "package.nls.zh-cn.json"),
)


@pytest.fixture(scope="module")
def extension() -> Iterator[Path]:
    """The sources as in a fresh checkout, below the packages that the lock file pins."""
    packages = node_modules(EXTENSION)
    with tempfile.TemporaryDirectory(dir=packages.parent) as checkout:
        shutil.copytree(ROOT / "protocol", Path(checkout) / "protocol")
        folder = Path(checkout) / "editors" / "vscode"
        folder.mkdir(parents=True)
        for name in SOURCES:
            source = EXTENSION / name
            if source.is_dir():
                shutil.copytree(source, folder / name)
            else:
                shutil.copy(source, folder / name)
        yield folder


def run(extension: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*node(), *arguments], cwd=extension, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_types(extension: Path) -> None:  # F2
    compiler = node_modules(EXTENSION) / "typescript" / "bin" / "tsc"
    run(extension, str(compiler), "--noEmit")


def test_pure_logic(extension: Path) -> None:  # F2
    said = run(extension, "scripts/test.mjs", "--test-reporter=tap")
    assert "\n# fail 0" in said
    assert "\n# pass 0" not in said


def test_bundle(extension: Path) -> None:  # F2
    """One file for the extension, one script and one style for its view."""
    run(extension, "scripts/build.mjs")
    view = (extension / "dist" / "webview" / "main.js").read_text(encoding="utf-8")
    assert "eval(" not in view
    assert "new Function" not in view
    assert (extension / "dist" / "extension.js").stat().st_size < 1_000_000
