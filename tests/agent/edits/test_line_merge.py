"""What two people changed in the same lines, brought together by lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.line_merge import Merge, merge_lines

BASE = "a\nb\nc\nd\n"
CASES = {
    "apart": ("aBcd", "abcD", "aBcD", 1, 0),
    "the same line": ("aBcd", "aXcD", "aBcD", 1, 1),
    "neighbours": ("aBcd", "AbcD", "ABcD", 2, 0),
    "both the same": ("aBcd", "aBcD", "aBcD", 1, 0),
    "two insertions, ours first": ("axbcd", "aybcd", "axybcd", 1, 0),
    "a line between two that change": ("axbcd", "ABcd", "AxBcd", 2, 0),
    "a line that is gone": ("bcd", "ABcd", "Bcd", 1, 1),
}


def lines(letters: str) -> str:
    return "".join(f"{letter}\n" for letter in letters)


def test_other_line_ends_are_no_change() -> None:
    ours, theirs = lines("aBcd").replace("\n", "\r\n"), lines("abcD").replace("\n", "\r\n")
    assert merge_lines(BASE, ours, theirs).text == lines("aBcD").replace("\n", "\r\n")


@pytest.mark.parametrize("name", CASES)
def test_what_fits_is_merged_and_ours_stays(name: str) -> None:
    ours, theirs, text, done, left_out = CASES[name]
    assert merge_lines(BASE, lines(ours), lines(theirs)) == Merge(lines(text), done, left_out)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=6).map("".join)


@given(LINES, LINES, LINES)
def test_one_that_changed_nothing_leaves_the_other(base: str, ours: str, theirs: str) -> None:
    assert merge_lines(base, base, theirs).text == theirs
    assert merge_lines(base, ours, base) == Merge(ours, 0, 0)
    assert merge_lines(base, ours, ours) == Merge(ours, 0, 0)


@given(LINES, st.data())
def test_no_line_of_ours_is_lost(base: str, data: st.DataObject) -> None:
    ours = list(base.splitlines(keepends=True))
    ours.insert(data.draw(st.integers(0, len(ours))), "mine\n")
    merged = merge_lines(base, "".join(ours), data.draw(LINES))
    assert "mine\n" in merged.text
