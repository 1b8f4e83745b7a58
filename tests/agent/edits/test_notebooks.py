"""Notebooks by their cells: what the model reads, and the JSON that its edits leave."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.hunk import compose
from kode_sidecar.core.text.notebook import NotebookError, new_notebook, read_notebook
from kode_sidecar.core.text.text_edit import apply_edits
from tests.process.test_edit_variants import results, texts
from tests.support.edit_editor import Desk
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar

PICTURE = "iVBOR" + "A" * 40_000


def code(source: str, name: str = "a1") -> dict[str, Any]:
    outputs = [{"data": {"image/png": PICTURE}, "metadata": {}, "output_type": "display_data"}]
    return {
        "cell_type": "code",
        "execution_count": 1,
        "id": name,
        "metadata": {"tags": ["keep"]},
        "outputs": outputs,
        "source": source.splitlines(keepends=True),
    }


def markdown(source: str, name: str = "b2") -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source.splitlines(True)}


def book(*cells: dict[str, Any], minor: int = 5, indent: int | None = 1) -> str:
    parts = {"cells": list(cells), "metadata": {"kernelspec": {"name": "py"}}, "nbformat": 4}
    return json.dumps({**parts, "nbformat_minor": minor}, indent=indent, ensure_ascii=False) + "\n"


PLAIN = book(code('x = 1\nprint("x")'), markdown("# Title"))


def sources(notebook: str) -> list[tuple[str, str]]:
    cells = json.loads(notebook)["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def edited(notebook: str, old: str, new: str) -> str:
    shown = read_notebook(notebook).text
    assert shown.count(old) == 1
    return read_notebook(notebook).with_text(shown.replace(old, new))[0]


def test_a_source_reads_as_it_is_and_outputs_are_left_out() -> None:
    shown = read_notebook(PLAIN).text
    wanted = '# %% [code] id=a1\nx = 1\nprint("x")\n# %% [markdown] id=b2\n# Title\n'
    assert shown == wanted


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_an_edit_of_a_source_changes_nothing_else(indent: int | None) -> None:
    before = book(code('x = 1\nprint("x")'), markdown("# Title"), indent=indent)
    after = edited(before, "x = 1\n", "x = 3\ny = 'é\\n'\n")
    wanted = book(code("x = 3\ny = 'é\\n'\nprint(\"x\")"), markdown("# Title"), indent=indent)
    assert after == wanted


def test_cells_come_go_move_and_change_their_kind() -> None:
    new = edited(PLAIN, "# Title\n", "# Title\n# %% [code]\nz = 1\n\n")
    assert sources(new)[2] == ("code", "z = 1")
    assert json.loads(new)["cells"][2].keys() == json.loads(PLAIN)["cells"][0].keys()
    assert new == json.dumps(json.loads(new), indent=1) + "\n"
    gone = edited(PLAIN, '# %% [code] id=a1\nx = 1\nprint("x")\n', "")
    assert gone == book(markdown("# Title"))
    shown = read_notebook(PLAIN).text
    first, second = shown[: shown.index("# %% [m")], shown[shown.index("# %% [m") :]
    moved, by_lines = read_notebook(PLAIN).with_text(second + first)
    assert moved == book(markdown("# Title"), code('x = 1\nprint("x")'))
    assert not by_lines
    raw = edited(PLAIN, "[code]", "[raw]")
    assert "outputs" not in json.loads(raw)["cells"][0]
    assert json.loads(raw)["cells"][0]["metadata"] == {"tags": ["keep"]}


def test_cells_without_ids_are_known_by_their_number() -> None:
    one, two = code("x = 1"), markdown("# Title")
    del one["id"], two["id"]
    old = book(one, two, minor=2)
    assert "# %% [markdown] cell 2\n" in read_notebook(old).text
    new = edited(old, "# Title\n", "# Title\n# %% [raw]\nr\n")
    assert "id" not in json.loads(new)["cells"][2]
    assert json.loads(new)["cells"][0] == one


def test_a_source_may_hold_lines_that_look_like_the_beginning_of_a_cell() -> None:
    source = "a\n# %% [code] id=b2\nb\n"
    before = book(code(source), markdown("# Title"))
    assert read_notebook(before).text.startswith("# %%% [code] id=a1\n")
    assert sources(edited(before, "# Title", "# New"))[0] == ("code", source)


def test_a_single_text_stays_one_and_may_hold_other_line_ends() -> None:
    before = json.dumps({"cells": [code("")], "nbformat": 4}).replace("[]}", '"a\\r\\nb"}')
    assert '"source": "a\\nc"' in edited(before, "b\n", "c\n")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "no notebook"),
        ('{"cells": 3, "nbformat": 4}', "no notebook"),
        ('{"worksheets": [], "nbformat": 3}', "no notebook"),
        ('{"cells": [], "nbformat": 5}', "Only notebooks of format 4"),
        ('{"cells": [{"cell_type": "x", "source": ""}], "nbformat": 4}', "unknown kind"),
        ('{"cells": [{"cell_type": "raw", "source": "\\ud800"}], "nbformat": 4}', "no notebook"),
        ("[" * 100_000, "no notebook"),
    ],
)
def test_what_is_no_notebook_is_said(wrong: str, said: str) -> None:
    with pytest.raises(NotebookError, match=said):
        read_notebook(wrong)


def test_a_new_notebook_is_written_as_cells_or_as_json() -> None:
    made = new_notebook("# %% [markdown]\n# Hi\n\n# %% [code]\n1 + 1\n")
    assert sources(made) == [("markdown", "# Hi"), ("code", "1 + 1")]
    assert new_notebook(PLAIN) == PLAIN
    with pytest.raises(NotebookError, match="Begin each cell with a line"):
        new_notebook("print(1)\n")


LINES = ["# %% [code]\n", "# %%% [raw] id=c0\n"]
SOURCE = st.lists(st.sampled_from([*'aé"\\\t{\n', *LINES]), max_size=8).map("".join)
CELLS = st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw"]), SOURCE), max_size=4)


@given(CELLS, st.data(), st.sampled_from([None, 1, 2]), st.booleans())
def test_any_text_of_cells_becomes_that_notebook(
    cells: list[tuple[str, str]], data: st.DataObject, indent: int | None, as_ascii: bool
) -> None:
    raw: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"c{at}", "metadata": {"n": at}, "source": source}
        for at, (kind, source) in enumerate(cells)
    ]
    parts: dict[str, Any] = {"cells": raw, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    before = json.dumps(parts, indent=indent, ensure_ascii=as_ascii)
    read = read_notebook(before)
    assert read.with_text(read.text) == (before, True)
    stay = data.draw(
        st.lists(st.sampled_from(range(len(cells))), unique=True) if cells else st.just([])
    )
    wanted = [(cells[at][0], data.draw(SOURCE), f" id=c{at}") for at in stay]
    wanted.insert(0, ("code", "fresh = 'é'", ""))
    fence = read.fence
    wanted = [one for one in wanted if f"# {fence} [" not in one[1]]
    after, _ = read.with_text("".join(f"# {fence} [{k}]{n}\n{s}\n" for k, s, n in wanted))
    assert sources(after) == [(kind, source) for kind, source, _ in wanted]
    ids = [cell["id"] for cell in json.loads(after)["cells"]]
    assert len(set(ids)) == len(ids)


def test_hunks_of_sources_can_be_accepted_one_by_one_and_those_of_cells_are_one() -> None:
    before = book(code("a\nb\nc\nd\ne"), markdown("# Title"), code("z", "c3"))
    shown = read_notebook(before).text
    by_lines, _ = read_notebook(before).with_text(
        shown.replace("b\n", "B\nB2\n").replace("d\ne\n", "d\n")
    )
    drafts = compose(before, "\n", [], by_lines).drafts
    assert len(drafts) == 2
    for draft in drafts:
        assert read_notebook(apply_edits(before, [draft.edit])).cells
    cells = shown.replace("# Title\n", "# New\n").replace("# %% [code] id=c3\nz\n", "")
    held, by_lines_too = read_notebook(before).with_text(cells.replace("a\n", "A\n"))
    assert not by_lines_too
    assert len(compose(before, "\n", [], held, by_lines=False).drafts) == 1


@pytest.mark.program
async def test_notebooks_through_the_real_process(tmp_path: Path) -> None:
    for name in ("n.ipynb", "o.ipynb"):
        (tmp_path / name).write_text(PLAIN, "utf-8")
    (tmp_path / "broken.ipynb").write_text('{"cells": [', "utf-8")
    quote = {"old": 'x = 1\nprint("x")', "new": 'x = 3\nprint("x")\nprint("é")'}
    calls = [
        ("read_file", {"path": "n.ipynb"}),
        ("search_code", {"query": 'print("x")'}),
        ("propose_edit", {"path": "n.ipynb", "edits": [quote]}),
        (
            "propose_edit",
            {"path": "o.ipynb", "edits": [{"old": "# Title", "new": "# T\n# %% [raw]"}]},
        ),
        ("propose_edit", {"path": "broken.ipynb", "edits": [{"old": "[", "new": "[{"}]}),
        ("propose_file", {"action": "create", "path": "c.ipynb", "content": "# %% [code]\n1\n"}),
        ("propose_edit", {"path": "c.ipynb", "edits": [{"old": "1\n", "new": "2\n"}]}),
        ("search_code", {"query": "x = 3"}),
        ("propose_edit", {"path": "n.ipynb", "edits": [{"old": '"source": [', "new": "["}]}),
        ("read_file", {"path": "broken.ipynb"}),
    ]
    script = [answer(*(tool_call(*call) for call in calls)), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        reported = results(world)
        assert "     2\tx = 1\n" in reported[0]
        assert len(reported[0]) < 1_000
        assert reported[1].startswith("2 matching lines in 2 files")
        assert 'n.ipynb:3: print("x")\n' in reported[1]
        assert '+print("é")' in reported[2]
        assert "would be none any more" in reported[4]
        assert "n.ipynb:2: x = 3" in reported[7]
        assert "Quote cells as read_file shows them, not their JSON." in reported[8]
        assert "a notebook whose cells cannot be read" in reported[9]
        await world.decide(only_change_set(session))
        after = texts(world)
        assert sources(after["n.ipynb"]) == [("code", quote["new"]), ("markdown", "# Title")]
        assert json.loads(after["n.ipynb"])["cells"][0]["outputs"] == code("")["outputs"]
        assert sources(after["o.ipynb"])[1:] == [("markdown", "# T"), ("raw", "")]
        assert sources(after["c.ipynb"]) == [("code", "2")]


async def test_a_later_edit_of_a_source_leaves_cells_that_come_and_go_one_hunk(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    held = book(code("a\nb\nc"), markdown("x"), code("y", "c3"), code("z", "d4"))
    buffer = desk.editor.open(desk.file("n.ipynb", held), held)
    cells = "x\n# %% [code] id=c3\ny\n"
    await desk.edit("n.ipynb", ("a\nb\nc", "a2\nb\nc"), (cells, "x2\n# %% [raw]\nr\n"))
    await desk.edit("n.ipynb", ("b\n", "B\n"), ("z", "Z"))
    open_ones = [one for one in desk.hunks if desk.states[one.hunk_id] == "proposed"]
    assert len(open_ones) == 1
    await desk.accept(open_ones[0].hunk_id)
    wanted = [("code", "a2\nB\nc"), ("markdown", "x2"), ("raw", "r"), ("code", "Z")]
    assert sources(buffer.text) == wanted


async def test_a_long_output_is_in_no_edits_way(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file("n.ipynb", book(code("x = 1")).replace(PICTURE, "A" * 1_500_000))
    await desk.edit("n.ipynb", ("x = 1", "x = 2"))
    assert len(desk.hunks) == 1
