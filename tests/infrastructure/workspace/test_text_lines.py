"""Lines and columns against the slow, obvious model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import to_lf
from kode_sidecar.core.text.text_lines import (
    PositionEncoding,
    code_point_column,
    dominant_eol,
    encoded_column,
    line_content,
)
from tests.support import text_model


@given(text_model.tangled_text)
def test_lines_end_only_where_lsp_says(text: str) -> None:
    expected = text_model.lines_of(text)
    assert split_lines(text) == (expected if expected[-1] else expected[:-1])
    assert "".join(split_lines(text)) == text


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85"])
def test_other_separators_are_part_of_a_line(separator: str) -> None:
    assert split_lines(f"a{separator}b\r\nc") == [f"a{separator}b\r\n", "c"]


@given(text_model.tangled_text, st.integers(-1, 30), st.sampled_from(text_model.ENCODINGS))
def test_columns_go_there_and_back(text: str, column: int, encoding: PositionEncoding) -> None:
    for line in split_lines(text):
        index = code_point_column(line, column, encoding)
        assert 0 <= index <= len(line_content(line))
        back = encoded_column(line, index, encoding)
        assert back <= max(column, 0)
        assert code_point_column(line, back, encoding) == index
        width = text_model.units(line[index], encoding) if index < len(line_content(line)) else 99
        assert max(column, 0) < back + width


@pytest.mark.parametrize(
    ("line", "column", "encoding", "expected"),
    [
        ("a😀b\n", 2, "utf-16", 1),  # inside the surrogate pair
        ("a😀b\n", 3, "utf-16", 2),
        ("a😀b\n", 3, "utf-8", 1),
        ("a中b\r\n", 4, "utf-8", 2),
        ("abc\r\n", 99, "utf-16", 3),
        ("中文\r\n", 99, "utf-8", 2),
        ("\n", 5, "utf-32", 0),
        ("\ud800x\n", 1, "utf-16", 0),  # a lone surrogate must not break anything
    ],
)
def test_columns_are_floored_and_clamped(
    line: str, column: int, encoding: PositionEncoding, expected: int
) -> None:
    assert code_point_column(line, column, encoding) == expected


@pytest.mark.parametrize(
    ("text", "eol"),
    [("", "\n"), ("a", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\r\n", "\r"), ("a\r\nb\n", "\n")],
)
def test_the_dominant_line_end(text: str, eol: str) -> None:
    assert dominant_eol(text) == eol


def test_lf_view() -> None:
    assert to_lf("a\r\nb\rc\n\r\n\r") == "a\nb\nc\n\n\n"
