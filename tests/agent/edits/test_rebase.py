"""A hunk waits while the user types around it: what touches none of its lines is no conflict."""

from pathlib import Path

import pytest

from kode_sidecar.core.protocol.change_set import UndoParams
from tests.support.edit_buffer import ChangeStyle
from tests.support.edit_editor import Desk

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"
STYLES = ["minimal", "descending", "whole", "one_span"]
Typed = tuple[int, int, str]
"""Where the user types, how many characters go, and what comes."""


BESIDE: dict[str, list[Typed]] = {
    "a line below, as `o` tells it": [(TEXT.index("\nfour"), 0, "\nnew")],
    "a line below": [(TEXT.index("four"), 0, "new\n")],
    "a line like the hunk's last below": [(TEXT.index("four"), 0, "three\n")],
    "a line above": [(TEXT.index("two"), 0, "new\n")],
    "a line like the hunk's first above": [(TEXT.index("two"), 0, "two\n")],
    "a line above, as `o` tells it": [(TEXT.index("\ntwo"), 0, "\nnew")],
    "a word at the start of the next line": [(TEXT.index("four"), 0, "word ")],
    "the next line changed": [(TEXT.index("four"), 4, "4")],
    "the next line gone": [(TEXT.index("four"), 5, "")],
    "the line above gone": [(TEXT.index("one"), 4, "")],
    "keys of a line below, one by one": [
        (TEXT.index("\nfour"), 0, "\n"),
        (TEXT.index("\nfour") + 1, 0, "n"),
        (TEXT.index("\nfour") + 2, 0, "ew"),
    ],
    "lines above and below": [
        (TEXT.index("two"), 0, "above\n"),
        (TEXT.index("four") + len("above\n"), 0, "below\n"),
    ],
    "a line inside, and taken back": [
        (TEXT.index("three"), 0, "x\n"),
        (TEXT.index("three"), 2, ""),
    ],
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("typed", BESIDE.values(), ids=BESIDE.keys())
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
async def test_what_is_typed_beside_a_hunk_touches_none_of_its_lines(
    tmp_path: Path, typed: list[Typed], style: ChangeStyle, eol: str
) -> None:
    desk = Desk(tmp_path, style=style)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT.replace("\n", eol))
    await desk.edit("a.txt", ("two\nthree", "TWO\nTHREE\n3b"))
    for start, gone, new in typed:
        lf = buffer.text.replace("\r\n", "\n")
        raw = len(lf[:start].replace("\n", eol))
        size = len(lf[start : start + gone].replace("\n", eol))
        desk.editor.type(buffer, raw, new.replace("\n", eol), delete=size)
    mine = buffer.text
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == ()
    old, new = f"two{eol}three{eol}", f"TWO{eol}THREE{eol}3b{eol}"
    assert buffer.text == mine.replace(old, new)
    undone = await desk.sets.undo(desk.change_set_id, undo_of(desk))
    assert undone.undone == (desk.hunks[0].hunk_id,)
    assert buffer.text == mine


@pytest.mark.parametrize("style", STYLES)
async def test_an_applied_hunk_is_undone_with_lines_beside_it(
    tmp_path: Path, style: ChangeStyle
) -> None:
    desk = Desk(tmp_path, style=style)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two\nthree", "TWO\nTHREE"))
    await desk.accept(desk.hunks[0].hunk_id)
    desk.editor.type(buffer, buffer.text.index("\nfour"), "\nbelow")
    desk.editor.type(buffer, buffer.text.index("TWO"), "above\n")
    mine = buffer.text
    result = await desk.sets.undo(desk.change_set_id, undo_of(desk))
    assert result.conflicts == ()
    assert buffer.text == mine.replace("TWO\nTHREE\n", "two\nthree\n")


@pytest.mark.parametrize("style", STYLES)
async def test_a_word_before_the_line_below_an_insertion_is_no_conflict(
    tmp_path: Path, style: ChangeStyle
) -> None:
    desk = Desk(tmp_path, style=style)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two\n", "two\nnew\n"))
    desk.editor.type(buffer, buffer.text.index("three"), "word ")
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == ()
    assert buffer.text == TEXT.replace("three", "new\nword three")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
async def test_a_line_below_the_last_one_that_has_no_end(
    tmp_path: Path, style: ChangeStyle, eol: str
) -> None:
    desk = Desk(tmp_path, style=style)
    text = f"one{eol}two{eol}last"
    buffer = desk.editor.open(desk.file("a.txt", ""), text)
    await desk.edit("a.txt", ("last", "LAST"))
    desk.editor.type(buffer, len(text), f"{eol}more")
    await desk.accept(desk.hunks[0].hunk_id)
    assert desk.states == {desk.hunks[0].hunk_id: "applied"}
    assert buffer.text == f"one{eol}two{eol}LAST{eol}more"


async def test_a_line_in_the_way_of_an_insertion_that_is_taken_back_leaves_no_mark(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two\n", "two\nnew\n"))
    desk.editor.type(buffer, buffer.text.index("three"), "mine\n")
    assert desk.text("a.txt") == buffer.text  # it does not fit now
    desk.editor.type(buffer, buffer.text.index("mine"), "", delete=5)
    await desk.accept(desk.hunks[0].hunk_id)
    assert buffer.text == TEXT.replace("three", "new\nthree")


@pytest.mark.parametrize(
    "typed",
    [(TEXT.index("wo"), 0, "x"), (TEXT.index("three"), 0, "in\n"), (TEXT.index("\ntwo"), 1, "")],
)
async def test_what_is_typed_inside_stays_a_conflict(tmp_path: Path, typed: Typed) -> None:
    desk = Desk(tmp_path)
    buffer = desk.editor.open(desk.file("a.txt", ""), TEXT)
    await desk.edit("a.txt", ("two\nthree", "TWO\nTHREE"))
    start, gone, new = typed
    desk.editor.type(buffer, start, new, delete=gone)
    mine = buffer.text
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.conflicts == (desk.hunks[0].hunk_id,)
    assert buffer.text == mine


def undo_of(desk: Desk) -> UndoParams:
    return UndoParams(change_set_id=desk.change_set_id)
