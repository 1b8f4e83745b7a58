"""Where only the exact place of each change tells the truth: comparing lines would guess."""

from pathlib import Path

import pytest

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit
from tests.support.edit_editor import Desk

TEXT = "one\ntwo\nthree\nfour\n"
ALIKE = "first\n}\n}\nlast\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def grown(desk: Desk, text: str, at: str) -> str:
    """The text with one more line of those that are alike, above or below the hunk's place."""
    buffer = next(iter(desk.editor.buffers.values()))
    offset = text.index("}\n") if at == "above" else text.index("last")
    desk.editor.type(buffer, offset, "}\n")
    lines = ["first", *("}}" if at == "above" else "}"), "NEW", *("}" if at == "above" else "}}")]
    return "\n".join([*lines, "last\n"])


@pytest.mark.parametrize("at", ["above", "below"])
async def test_a_hunk_between_equal_lines_stays_between_the_same(desk: Desk, at: str) -> None:
    buffer = desk.editor.open(desk.file("a.txt", ALIKE), ALIKE)
    await desk.edit("a.txt", ("first\n}\n", "first\n}\nNEW\n"))
    expected = grown(desk, ALIKE, at)
    await desk.accept(desk.hunks[0].hunk_id)
    assert buffer.text == expected


@pytest.mark.parametrize("at", ["above", "below"])
async def test_it_does_while_another_edit_is_on_its_way(desk: Desk, at: str) -> None:
    text = "zero\n" + ALIKE
    buffer = desk.editor.open(desk.file("a.txt", text), text)
    await desk.edit("a.txt", ("zero", "ZERO"), ("first\n}\n", "first\n}\nNEW\n"))
    expected: list[str] = []

    async def type_meanwhile(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.do(edit)
        desk.editor.report(buffer)
        expected.append(grown(desk, buffer.text, at))
        return ApplyAnswer(True)

    desk.editor.on_apply = type_meanwhile
    await desk.accept(desk.hunks[0].hunk_id)
    desk.editor.on_apply = desk.editor.obey
    await desk.accept(desk.hunks[1].hunk_id)
    assert buffer.text == "ZERO\n" + expected[0]


async def test_keys_in_a_text_that_is_opened_with_more_lines_than_the_file(desk: Desk) -> None:
    path = desk.file("a.txt", TEXT)
    await desk.edit("a.txt", ("three", "THREE"))
    desk.file("a.txt", "zero\n" + TEXT)
    desk.sets.files.look()  # told once: nobody looks at the text as it is opened
    buffer = desk.editor.open(path, "zz\nzero\n" + TEXT)
    desk.editor.type(buffer, buffer.text.index("two"), "2", delete=3)
    result = await desk.accept(desk.hunks[0].hunk_id)
    assert result.applied
    assert buffer.text == "zz\nzero\none\n2\nTHREE\nfour\n"


async def test_what_the_user_wrote_with_another_line_end_is_done(desk: Desk) -> None:
    crlf = TEXT.replace("\n", "\r\n")
    buffer = desk.editor.open(desk.file("a.txt", crlf), crlf)
    await desk.edit("a.txt", ("three", "THREE"))
    hunk = desk.hunks[0].hunk_id
    desk.editor.type(buffer, crlf.index("three"), "THREE\n", delete=len("three\r\n"))
    assert (await desk.accept(hunk)).applied == (hunk,)
    assert desk.editor.edits == []


async def test_accepted_again_an_edit_that_was_typed_into_is_not_taken_back(desk: Desk) -> None:
    buffer = desk.editor.open(desk.file("a.txt", TEXT), TEXT)
    await desk.edit("a.txt", ("three", "THREE"))

    async def type_into_it(edit: DocumentEdit) -> ApplyAnswer:
        desk.editor.do(edit)
        desk.editor.report(buffer)
        desk.editor.type(buffer, buffer.text.index("REE"), "x")
        return ApplyAnswer(True)

    desk.editor.on_apply = type_into_it
    hunk = desk.hunks[0].hunk_id
    await desk.accept(hunk)
    assert desk.states[hunk] == "diverged"
    desk.editor.on_apply = desk.editor.obey
    desk.editor.type(buffer, buffer.text.index("xREE"), "", delete=1)
    await desk.accept(hunk)
    assert buffer.text == TEXT.replace("three", "THREE")
