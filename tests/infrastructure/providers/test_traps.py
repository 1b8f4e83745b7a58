"""The table of traps names tests that there are."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")]
    for line in (HERE / "traps.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| trap")
]
HELD = [row for row in ROWS if row[1] != "MISS"]


def test_it_is_a_table() -> None:
    assert len(HELD) > 30
    assert all(len(row) == 2 for row in ROWS)


@pytest.mark.parametrize(("trap", "test"), HELD, ids=[row[0][:40] for row in HELD])
def test_a_trap_has_its_test(trap: str, test: str) -> None:
    name, _, function = test.partition("::")
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    assert re.search(rf"def {function or 'test_'}", text), trap
