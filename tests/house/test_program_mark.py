"""Tests over the program say so: only those are run on the built one as well."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.package_source import FUNCTIONS
from tests.support.program import PROGRAM_FOLDERS

TESTS = Path(__file__).parents[1]
MARK = "pytest.mark.program"
# Who uses one of these talks to the program.
SIGNS = {"SERVE", "PROGRAM", "sidecar"}


def unmarked(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            if names & SIGNS and MARK not in map(ast.unparse, node.decorator_list):
                yield f"{path.parent.name}/{path.name}:{node.lineno} {node.name}"


def test_tests_over_the_program_are_marked() -> None:
    paths = [path for path in TESTS.rglob("test_*.py") if path.parent.name not in PROGRAM_FOLDERS]
    found = sorted(name for path in paths for name in unmarked(path))
    assert "\n".join(found) == "", f"mark these with {MARK}, or move them to tests/process"
