"""The oracle of the edit tests: positions, edits, and every way of telling them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.edit_buffer import Buffer, ChangeStyle, StaleVersion
from tests.support.positions import InvalidPosition, Lines, PositionEncoding, Span

URI = "file:///project/a.js"
STYLES: tuple[ChangeStyle, ...] = ("minimal", "descending", "whole", "one_span")
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")

texts = st.text(st.sampled_from("ab é中🍵\r\n\x0b\u2028"), max_size=24)


@st.composite
def edited_texts(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A text and ascending, disjoint spans whose borders are no places inside CR LF."""
    text = draw(texts)
    lines = Lines(text, "utf-32")
    places = [at for at in range(len(text) + 1) if _is_place(lines, at)]
    borders = sorted(draw(st.lists(st.sampled_from(places), max_size=6)))
    if len(borders) % 2:
        borders.pop()
    pairs = zip(borders[::2], borders[1::2], strict=True)
    return text, [Span(start, end, draw(texts)) for start, end in pairs]


def _is_place(lines: Lines, offset: int) -> bool:
    try:
        lines.position(offset)
    except InvalidPosition:
        return False
    return True


# A second, slow model of LSP text: everything is a list of (content, line end).


def slow_lines(text: str) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    content, at = "", 0
    while at < len(text):
        end = "\r\n" if text.startswith("\r\n", at) else text[at] if text[at] in "\r\n" else ""
        if end:
            lines.append((content, end))
            content = ""
        else:
            content += text[at]
        at += len(end) or 1
    return [*lines, (content, "")]


def slow_offset(text: str, position: dict[str, int], encoding: PositionEncoding) -> int:
    lines = slow_lines(text)
    before = sum(len(content) + len(end) for content, end in lines[: position["line"]])
    content = lines[position["line"]][0]
    codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    head = content.encode(codec)[: position["character"] * size]
    return before + len(head.decode(codec))


def replay(text: str, params: dict[str, Any], encoding: PositionEncoding) -> str:
    for change in params["contentChanges"]:
        if "range" not in change:
            text = change["text"]
            continue
        start = slow_offset(text, change["range"]["start"], encoding)
        end = slow_offset(text, change["range"]["end"], encoding)
        text = text[:start] + change["text"] + text[end:]
    return text


@given(texts, st.sampled_from(ENCODINGS))
def test_positions_go_there_and_back(text: str, encoding: PositionEncoding) -> None:
    lines = Lines(text, encoding)
    for offset in range(len(text) + 1):
        if not _is_place(lines, offset):
            assert text[offset - 1 : offset + 1] == "\r\n"
            continue
        position = lines.position(offset)
        assert lines.offset(position) == offset == slow_offset(text, position, encoding)


def test_only_lf_crlf_and_cr_end_a_line() -> None:
    lines = Lines("a\x0b\x0c\x85\u2028b\rc\r\nd\ne", "utf-16")
    assert len(lines) == 4
    assert lines.position(7) == {"line": 1, "character": 0}


def test_columns_count_in_the_units_of_the_encoding() -> None:
    text = "中🍵x"
    columns = {encoding: Lines(text, encoding).position(2)["character"] for encoding in ENCODINGS}
    assert columns == {"utf-8": 7, "utf-16": 3, "utf-32": 2}


def test_a_position_past_the_end_is_clamped_and_inside_a_character_refused() -> None:
    lines = Lines("中🍵\r\nx", "utf-16")
    assert lines.offset({"line": 0, "character": 99}) == 2
    assert lines.offset({"line": 9, "character": 0}) == 5
    with pytest.raises(InvalidPosition):
        lines.offset({"line": 0, "character": 2})


@given(edited_texts(), st.sampled_from(STYLES), st.sampled_from(ENCODINGS))
def test_every_style_tells_the_same_text(
    edited: tuple[str, list[Span]], style: ChangeStyle, encoding: PositionEncoding
) -> None:
    before, spans = edited
    expected, shift = before, 0
    for span in spans:
        start, end = span.start + shift, span.end + shift
        expected = expected[:start] + span.new_text + expected[end:]
        shift += len(span.new_text) - (span.end - span.start)

    buffer = Buffer(URI, before, encoding=encoding)
    lines = Lines(before, encoding)
    edits = [
        {"range": lines.range(span.start, span.end), "newText": span.new_text} for span in spans
    ]
    buffer.apply_edits(edits, version=1)
    assert buffer.text == expected
    params = buffer.take_did_change(style)
    if params is None:
        assert not spans
        return
    assert params["textDocument"] == {"uri": URI, "version": 2}
    assert replay(before, params, encoding) == expected
    assert buffer.take_did_change(style) is None


@given(st.lists(edited_texts(), max_size=1), texts, st.sampled_from(STYLES))
def test_keys_and_edits_are_told_together(
    edited: list[tuple[str, list[Span]]], typed: str, style: ChangeStyle
) -> None:
    before, spans = edited[0] if edited else ("x", [])
    buffer = Buffer(URI, before)
    buffer.replace(spans)
    buffer.type(0, typed + "!")
    params = buffer.take_did_change(style)
    assert params is not None
    assert replay(before, params, "utf-16") == buffer.text
    assert params["textDocument"]["version"] == buffer.version == (3 if spans else 2)


def test_a_stale_edit_changes_nothing() -> None:
    buffer = Buffer(URI, "one\r\ntwo\r\n", version=4)
    edit = {"range": Lines("x", "utf-16").range(0, 1), "newText": "y"}
    with pytest.raises(StaleVersion, match=r"version 3.* is 4"):
        buffer.apply_edits([edit], version=3)
    assert (buffer.text, buffer.version) == ("one\r\ntwo\r\n", 4)
    buffer.apply_edits([edit], version=None)
    assert (buffer.text, buffer.version) == ("yne\r\ntwo\r\n", 5)


def test_overlapping_edits_are_refused() -> None:
    buffer = Buffer(URI, "abcdef")
    place = buffer.lines.range
    edits = [{"range": place(0, 3), "newText": "x"}, {"range": place(2, 4), "newText": "y"}]
    with pytest.raises(InvalidPosition, match="overlap"):
        buffer.apply_edits(edits)
    assert buffer.text == "abcdef"


def test_minimal_changes_are_trimmed_but_never_cut_a_line_end() -> None:
    before = "合计 🍵 = 1;\r\nlast\r\n"
    buffer = Buffer(URI, before)
    buffer.replace([Span(0, 9, "合计 🍵 = 2;")])
    params = buffer.take_did_change("minimal")
    assert params is not None
    assert params["contentChanges"] == [
        {
            "range": {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 9}},
            "text": "2",
        }
    ]
    buffer.replace([Span(9, 11, "\n")])
    params = buffer.take_did_change("minimal")
    assert params is not None
    assert params["contentChanges"][0]["text"] == "\n"
