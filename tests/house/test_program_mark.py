"""Tests over the program say so: only those are run on the built one as well."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.package_source import FUNCTIONS

TESTS = Path(__file__).parents[1]
MARK = "pytest.mark.program"
# Who uses one of these talks to the program.
SIGNS = {"SERVE", "PROGRAM", "sidecar"}


def unmarked(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            if MARK in ast.unparse(node.value):
                return
        elif isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            marks = {ast.unparse(decorator) for decorator in node.decorator_list}
            if names & SIGNS and MARK not in marks:
                yield f"{path.parent.name}/{path.name}:{node.lineno} {node.name}"


def test_tests_over_the_program_are_marked() -> None:
    paths = sorted(TESTS.rglob("test_*.py"))
    assert [found for path in paths for found in unmarked(path)] == []
