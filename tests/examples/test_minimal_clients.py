"""The minimal clients, run as their README says: the recorded model, an unsaved buffer."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.stage import HERE
from tests.support.node_tools import node, node_modules
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.program

EXAMPLE = ROOT / "examples" / "minimal-client"
CLIENTS = ("client.py", "client.mjs")
ACCEPTED = [
    "// 未保存 🍵 unsaved",
    "    /* 🧮 小计 */ sum += priceOf(name) * count;",
    "  return Math.round(total(items) * memberRate);",
]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """`demo --serve-model`: the project it offers and the environment it asks for."""
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    command = [*PROGRAM, "demo", "--serve-model", "--fast", "--locale", "en"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as model:
        assert model.stdout is not None
        try:
            lines = [model.stdout.readline().rstrip("\n") for _ in range(7)]
            reported = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
            yield Path(lines[1].removeprefix("# ")), {**environment, **reported}
        finally:
            model.kill()


def run(
    name: str, served: tuple[Path, Mapping[str, str]], **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run the client of that name to its end."""
    project, reported = served
    command, modules = [sys.executable], {}
    if name.endswith(".mjs"):
        command, modules = node(), {"NODE_PATH": str(node_modules(EXAMPLE))}
    return subprocess.run(
        [*command, str(EXAMPLE / name), str(project), *PROGRAM],
        env={**reported, **modules, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("name", CLIENTS)
def test_a_whole_turn(name: str, served: tuple[Path, dict[str, str]]) -> None:  # E1
    lines: list[str] = []
    for _ in range(2):  # the recorded model answers for ever
        done = run(name, served)
        assert done.returncode == 0, done.stderr
        lines += done.stdout.splitlines()
    text = "\n".join(lines)
    assert text.count("Found it: `total` adds each price once") == 2
    assert '"path"' not in text, "arguments of tools are no text of the answer"
    for line in ACCEPTED:
        assert lines.count(line) == 2, line
    on_disk = (HERE / "unsaved" / "receipt.js").read_bytes()
    assert (served[0] / "src" / "receipt.js").read_bytes() == on_disk


@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_users_mode_is_none_of_their_business(
    name: str, mode: str, served: tuple[Path, dict[str, str]]
) -> None:
    done = run(name, served, KODE_MODE=mode)
    assert done.returncode == 0, done.stderr
    for line in ACCEPTED:
        assert done.stdout.splitlines().count(line) == 1, line


@pytest.mark.parametrize("name", CLIENTS)
def test_why_a_turn_failed(name: str, served: tuple[Path, dict[str, str]]) -> None:
    done = run(name, served, KIMI_BASE_URL="http://127.0.0.1:1/v1")
    assert done.returncode == 1
    assert "Cannot connect to 127.0.0.1:1" in done.stderr


def test_they_are_minimal_and_need_what_is_pinned() -> None:
    for name in CLIENTS:
        assert len((EXAMPLE / name).read_text(encoding="utf-8").splitlines()) <= 82
    imported = re.findall(
        r"^(?:import|from) (\w+)", (EXAMPLE / "client.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(imported) <= sys.stdlib_module_names
    package = (EXAMPLE / "package.json").read_text(encoding="utf-8")
    assert re.search(r'"vscode-jsonrpc": "\d+\.\d+\.\d+"', package)


def test_the_readmes_commands_name_what_there_is() -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"examples[/\\]minimal-client[/\\](\S+)", text):
        assert (EXAMPLE / path).is_file(), path
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (EXAMPLE / target).exists(), target
