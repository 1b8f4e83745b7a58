"""The table of methods and clients in `protocol/README.md` is true; each gap has a reason."""

from kode_sidecar.core.protocol.methods import METHODS
from protocol.export.hands import ACP, BEGIN, END, SOURCES, WITHOUT, source, table, uses
from tests.support.program import ROOT

NAMES = {method.name for method in METHODS}


def rows() -> dict[str, list[str]]:
    """The cells of each method's row."""
    readme = (ROOT / "protocol" / "README.md").read_text(encoding="utf-8")
    lines = readme.split(BEGIN)[1].split(END)[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `kode/")]
    return {name.strip("`"): others for name, *others in cells}


def test_every_method_has_a_row_whose_marks_are_true() -> None:
    """A client may use more than the table says until `dev.py protocol` is run again."""
    found = rows()
    assert set(found) == NAMES
    for at, client in enumerate(SOURCES):
        text = source(ROOT, client)
        marked = [name for name, cells in found.items() if cells[at] == "●"]
        assert marked
        assert [name for name in marked if not uses(text, name)] == [], client


def test_every_gap_has_a_reason_and_nothing_is_left_over() -> None:
    assert "Where a client goes without:" in table(ROOT)
    assert WITHOUT.keys() - NAMES == ACP.keys() - NAMES == set()
    assert all(cell for cells in rows().values() for cell in cells)
