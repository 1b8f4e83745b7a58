"""Caps the tail: it is the few huge files and functions that make a house ugly."""

import ast

from tests.support.package_source import FUNCTIONS, modules

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 70

Sizes = list[tuple[int, str]]


def assert_no_longer_than(limit: int, sizes: Sizes) -> None:
    """Prints the longest, shown by `pytest -s`."""
    longest = sorted(sizes, reverse=True)
    print("", *longest[:5], sep="\n")  # noqa: T201
    assert [entry for entry in longest if entry[0] > limit] == []


def test_no_file_is_too_long() -> None:
    sizes: Sizes = [(m.path.read_bytes().count(b"\n"), m.name) for m in modules()]
    assert_no_longer_than(MOST_FILE_LINES, sizes)


def test_no_function_is_too_long() -> None:
    sizes: Sizes = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, FUNCTIONS):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes.append((lines, f"{module.name}:{node.lineno} {node.name}"))
    assert_no_longer_than(MOST_FUNCTION_LINES, sizes)
