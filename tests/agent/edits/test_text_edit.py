"""Edits by offsets: small, in order, and understood by every editor."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kode_sidecar.core.text.text_edit import Edit, apply_edits, minimal_edits, refine
from tests.support.edit_texts import texts, typing


@given(st.data(), texts())
def test_minimal_edits_lead_to_the_same_text(data: st.DataObject, text: str) -> None:
    edits = sorted(
        {data.draw(typing(text)) for _ in range(data.draw(st.integers(1, 3)))},
        key=lambda edit: (edit.start, edit.end),
    )
    assume(all(x.end < y.start for x, y in pairwise(edits)))
    small = minimal_edits(text, edits)
    assert apply_edits(text, small) == apply_edits(text, edits)
    for edit, after in pairwise(small):
        assert edit.end < after.start  # R1
    for edit in small:  # R3
        assert not _inside_crlf(text, edit.start)
        assert not _inside_crlf(text, edit.end)
        assert edit.start < edit.end or edit.text


def _inside_crlf(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1 : at + 1] == "\r\n"


@pytest.mark.parametrize(
    ("text", "edit", "small"),
    [
        # Insert after the final line end: told from the end of the last line (R2).
        ("a\n", Edit(2, 2, "b\n"), Edit(1, 1, "\nb")),
        ("a\r\n", Edit(3, 3, "b\r\nc\r\n"), Edit(1, 1, "\r\nb\r\nc")),
        # Delete the last line: its own end stays, the one before it goes.
        ("a\nb\n", Edit(2, 4, ""), Edit(1, 3, "")),
        ("a\r\nb\r\n", Edit(3, 6, ""), Edit(1, 4, "")),
        # No final line end: the end of the last line is a place.
        ("a\nb", Edit(2, 3, "b\nc"), Edit(3, 3, "\nc")),
        ("", Edit(0, 0, "a\n"), Edit(0, 0, "a\n")),
        # Common characters stay; a line end is kept whole.
        ("let x = 1;\r\n", Edit(0, 12, "let y = 1;\r\n"), Edit(4, 5, "y")),
        ("ab\r\n", Edit(0, 4, "ab\r\ncd\r\n"), Edit(2, 2, "\r\ncd")),
        # With mixed ends the exact text wins over the rule.
        ("a\r\nb\n", Edit(3, 5, ""), Edit(3, 5, "")),
    ],
)
def test_edits_at_the_borders(text: str, edit: Edit, small: Edit) -> None:
    assert minimal_edits(text, [edit]) == [small]


def test_edits_that_touch_become_one() -> None:
    assert minimal_edits("a\nb\n", [Edit(0, 2, "x\n"), Edit(2, 4, "y\n")]) == [Edit(0, 3, "x\ny")]
    assert minimal_edits("a\n", [Edit(0, 2, ""), Edit(2, 2, "b\n")]) == [Edit(0, 1, "b")]


@given(st.data(), texts())
def test_refined_changes_lead_to_the_same_text(data: st.DataObject, text: str) -> None:
    change = data.draw(typing(text))
    fine = refine(text, change)
    assert apply_edits(text, fine) == apply_edits(text, [change])


def test_a_whole_text_is_refined_to_the_lines_that_changed() -> None:
    old, new = "a\nb\nc\nd\n", "a\nB\nc\nd\ne\n"
    assert refine(old, Edit(0, len(old), new)) == (Edit(2, 4, "B\n"), Edit(8, 8, "e\n"))


def test_lines_taken_one_by_one_stay_apart() -> None:
    """Changes that adjoin must not be told as overlapping ones, where lines are alike."""
    text = "}\n" * 4
    steps = [step for edit in (Edit(2, 4, ""), Edit(4, 6, "")) for step in refine(text, edit)]
    assert steps == [Edit(2, 4, ""), Edit(4, 6, "")]
