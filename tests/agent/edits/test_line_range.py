"""Lines replaced by number, and found again after the text has changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import follow_lines, replace_lines

TEXT = "a\nb\nc\n"


@pytest.mark.parametrize(
    ("text", "lines", "new", "result"),
    [
        (TEXT, (2, 2), "B", "a\nB\nc\n"),
        (TEXT, (2, 2), "B\n", "a\nB\nc\n"),
        (TEXT, (2, 2), "B\n\n", "a\nB\n\nc\n"),
        (TEXT, (2, 3), "", "a\n\n"),
        (TEXT, (2, 2), None, "a\nc\n"),
        (TEXT, (1, 3), None, ""),
        (TEXT, (3, 3), "C\nD", "a\nb\nC\nD\n"),
        ("a\nb", (2, 2), "B\n", "a\nB"),
        ("a\nb", (1, 1), None, "b"),
        ("a\nb", (2, 2), None, "a"),
    ],
)
def test_lines_are_replaced(
    text: str, lines: tuple[int, int], new: str | None, result: str
) -> None:
    assert replace_lines(text, lines, new) == result


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (3, 4), (4, 4)])
def test_lines_that_are_not_there(lines: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no lines"):
        replace_lines(TEXT, lines, "x")


@pytest.mark.parametrize(
    ("before", "after", "lines", "found"),
    [
        ("a\nb\nc\nd\n", "x\na\nb\nc\nd\n", (2, 3), (3, 4)),
        ("a\nb\nc\nd\n", "a\nb\nc\nd\nx\n", (2, 3), (2, 3)),
        ("a\nb\nc\nd\n", "b\nc\nd\n", (3, 4), (2, 3)),
        ("a\nb\nc\nd\n", "A\nb\nc\nD\n", (2, 3), (2, 3)),
        ("a\nb\nc\nd\n", "a\nb\nx\nc\nd\n", (2, 3), None),  # inside
        ("a\nb\nc\nd\n", "a\nx\nb\nc\nd\n", (2, 3), None),  # at the border
        ("a\nb\nc\nd\n", "a\nb\nc\nx\nd\n", (2, 3), None),
        ("a\nb\nc\nd\n", "a\nB\nc\nd\n", (2, 3), None),
        ("a\na\nb\n", "a\na\na\nb\n", (1, 1), None),  # nobody knows which one is new
        ("a\na\nb\n", "a\nb\n", (2, 2), None),
        ("a\na\nb\n", "a\na\na\nb\n", (3, 3), None),
        ("a\na\nc\nb\n", "a\na\na\nc\nb\n", (4, 4), (5, 5)),
    ],
)
def test_lines_are_followed_or_given_up(
    before: str, after: str, lines: tuple[int, int], found: tuple[int, int] | None
) -> None:
    assert follow_lines(before, after, lines) == found


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=8),
    st.data(),
)
def test_an_insertion_elsewhere_never_leads_to_another_line(
    lines: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    at = data.draw(st.integers(0, len(lines)))
    added = data.draw(st.lists(st.sampled_from("abcd"), max_size=3))
    after = [*lines[:at], *added, *lines[at:]]
    before_text, after_text = ("".join(f"{x}\n" for x in part) for part in (lines, after))
    found = follow_lines(before_text, after_text, (first, last))
    if first - 1 < at < last and added:
        assert found is None
    elif found is not None:
        moved = len(added) if at < first else 0
        assert found == (first + moved, last + moved)
        assert split_lines(after_text)[found[0] - 1 : found[1]] == [
            f"{x}\n" for x in lines[first - 1 : last]
        ]
