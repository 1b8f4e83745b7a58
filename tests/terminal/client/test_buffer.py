"""The editor's buffer, held against a second one that shares no code with it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.text_edit import Edit
from kode_sidecar.core.text.text_lines import LineIndex, PositionEncoding
from kode_sidecar.terminal.client.buffer import Buffer, RefusedEdit
from tests.support import edit_buffer
from tests.support.positions import InvalidPosition, Lines, Span

URI = "file:///project/a.js"
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")

texts = st.text(st.sampled_from("ab é中🍵\r\n\x0b\u2028"), max_size=24)


def places(text: str) -> list[int]:
    """The offsets of a text that have a position."""
    lines = Lines(text, "utf-32")

    def has_position(offset: int) -> bool:
        try:
            lines.position(offset)
        except InvalidPosition:
            return False
        return True

    return list(filter(has_position, range(len(text) + 1)))


@st.composite
def edited_texts(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A text and ascending, disjoint spans whose borders are no places inside CR LF."""
    text = draw(texts)
    borders = sorted(draw(st.lists(st.sampled_from(places(text)), max_size=6)))
    if len(borders) % 2:
        borders.pop()
    pairs = zip(borders[::2], borders[1::2], strict=True)
    return text, [Span(start, end, draw(texts)) for start, end in pairs]


def after_changes(text: str, params: dict[str, Any], encoding: PositionEncoding) -> str:
    """What a server makes of a `didChange`, by the oracle's positions."""
    for change in params["contentChanges"]:
        lines, place = Lines(text, encoding), change["range"]
        start, end = lines.offset(place["start"]), lines.offset(place["end"])
        text = text[:start] + change["text"] + text[end:]
    return text


@given(texts, st.sampled_from(ENCODINGS))
def test_positions_are_those_of_the_oracle(text: str, encoding: PositionEncoding) -> None:
    index, lines = LineIndex(text, encoding), Lines(text, encoding)
    for offset in places(text):
        position = lines.position(offset)
        assert index.position(offset) == position
        assert index.offset(position["line"], position["character"]) == offset


def test_a_position_past_the_end_and_inside_a_character_is_clamped() -> None:
    index = LineIndex("中🍵\r\nx", "utf-16")
    assert index.offset(0, 99) == 2
    assert index.offset(9, 0) == 5
    assert index.offset(0, 2) == 1
    assert index.position(3) == {"line": 0, "character": 3}


@given(edited_texts(), st.sampled_from(ENCODINGS))
def test_edits_are_applied_as_by_the_oracle_and_told_whole(
    edited: tuple[str, list[Span]], encoding: PositionEncoding
) -> None:
    before, spans = edited
    lines = Lines(before, encoding)
    edits = [
        {"range": lines.range(span.start, span.end), "newText": span.new_text} for span in spans
    ]
    buffer = Buffer(URI, before, encoding=encoding)
    oracle = edit_buffer.Buffer(URI, before, encoding=encoding)
    buffer.replace(buffer.check(edits, version=1))
    oracle.apply_edits(edits, version=1)
    assert buffer.text == oracle.text
    params = buffer.take_did_change()
    if params is None:
        assert buffer.text == before
        assert buffer.version == 1
        return
    assert params["textDocument"] == {"uri": URI, "version": 2}
    assert after_changes(before, params, encoding) == oracle.text
    assert buffer.take_did_change() is None


@given(edited_texts(), texts)
def test_keys_and_edits_are_told_together(edited: tuple[str, list[Span]], typed: str) -> None:
    before, spans = edited
    buffer = Buffer(URI, before)
    buffer.replace([Edit(span.start, span.end, span.new_text) for span in spans])
    buffer.type(0, typed + "!")
    params = buffer.take_did_change()
    assert params is not None
    assert after_changes(before, params, "utf-16") == buffer.text
    assert params["textDocument"]["version"] == buffer.version


def test_a_stale_edit_changes_nothing() -> None:
    buffer = Buffer(URI, "one\r\ntwo\r\n", version=4)
    edit = {"range": Lines("x", "utf-16").range(0, 1), "newText": "y"}
    with pytest.raises(RefusedEdit, match=r"version 3.* is 4"):
        buffer.check([edit], version=3)
    assert (buffer.text, buffer.version) == ("one\r\ntwo\r\n", 4)
    buffer.replace(buffer.check([edit], version=None))
    assert (buffer.text, buffer.version) == ("yne\r\ntwo\r\n", 5)


def test_overlapping_edits_are_refused() -> None:
    buffer = Buffer(URI, "abcdef")
    place = Lines("abcdef", "utf-16").range
    edits = [{"range": place(0, 3), "newText": "x"}, {"range": place(2, 4), "newText": "y"}]
    with pytest.raises(RefusedEdit, match="overlap"):
        buffer.check(edits, None)


def test_changes_are_trimmed_but_never_cut_a_line_end() -> None:
    buffer = Buffer(URI, "合计 🍵 = 1;\r\nlast\r\n")
    buffer.replace([Edit(0, 9, "合计 🍵 = 2;")])
    params = buffer.take_did_change()
    assert params is not None
    assert params["contentChanges"] == [
        {
            "range": {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 9}},
            "text": "2",
        }
    ]
    buffer.replace([Edit(9, 11, "\n")])
    params = buffer.take_did_change()
    assert params is not None
    assert params["contentChanges"][0]["text"] == "\n"
