"""Pending hunks: composing, following the user's typing, never losing a byte."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.hunk import (
    Composition,
    Hunk,
    Shifts,
    compose,
    follow_all,
    overlay_text,
)
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.text_edit import Edit, apply_edits, to_lf, with_eol
from tests.support.edit_texts import lf_edit, texts, typing


def adopt(hunks: list[Hunk], made: Composition, prefix: str = "h") -> list[Hunk]:
    """The pending hunks after a composition, as a change set keeps them."""
    gone = {name for draft in made.drafts for name in draft.replaces} | set(made.withdrawn)
    fresh = [
        Hunk(f"{prefix}{k}", draft.start, draft.end, draft.old_text, draft.new_text)
        for k, draft in enumerate(made.drafts)
    ]
    left = [hunk for hunk in hunks if hunk.id not in gone]
    return sorted([*left, *fresh], key=lambda hunk: hunk.start)


def eol_of(text: str) -> str:
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


@given(st.data(), texts())
def test_composed_hunks_make_the_overlay(data: st.DataObject, text: str) -> None:
    hunks: list[Hunk] = []
    overlay = to_lf(text)
    for step in "xyz":
        overlay = data.draw(lf_edit(overlay))
        hunks = adopt(hunks, compose(text, eol_of(text), hunks, overlay), step)
        assert to_lf(overlay_text(text, hunks)) == overlay
        for hunk, after in pairwise(hunks):
            assert hunk.end < after.start  # at least a line apart
        for hunk in hunks:
            assert text[hunk.start : hunk.end] == hunk.old_text
            assert to_lf(hunk.old_text) != to_lf(hunk.new_text)


@given(st.data(), texts())
def test_lines_that_do_not_change_keep_every_byte(data: st.DataObject, text: str) -> None:
    hunks = adopt([], compose(text, eol_of(text), [], data.draw(lf_edit(to_lf(text)))))
    untouched = split_lines(text)
    for hunk in hunks:
        for line in split_lines(hunk.old_text):
            untouched.remove(line)
    after = split_lines(overlay_text(text, hunks))
    for line in untouched:
        assert line in after


@given(st.data(), texts())
def test_an_untouched_hunk_still_stands_on_its_old_text(data: st.DataObject, text: str) -> None:
    hunks = adopt([], compose(text, eol_of(text), [], data.draw(lf_edit(to_lf(text)))))
    for _ in range(3):
        change = data.draw(typing(text))
        after = apply_edits(text, [change])
        hunks = follow_all(hunks, [change], text, after)
        text = after
    for hunk in hunks:
        if not hunk.touched:
            assert text[hunk.start : hunk.end] == hunk.old_text
    live = [hunk for hunk in hunks if not hunk.touched]
    for hunk, other in pairwise(live):
        assert hunk.end <= other.start


def hunks_of(text: str, overlay: str, pending: list[Hunk] | None = None) -> Composition:
    return compose(text, eol_of(text), pending or [], overlay)


def test_one_hunk_per_run_of_changed_lines() -> None:
    made = hunks_of("a\nb\nc\nd\n", "A\nb\nc\nD\nE\n")
    assert [(d.old_text, d.new_text) for d in made.drafts] == [("a\n", "A\n"), ("d\n", "D\nE\n")]


def test_a_later_edit_elsewhere_leaves_a_hunk_as_it_is() -> None:
    text = "a\nb\nc\nd\n"
    first = adopt([], hunks_of(text, "A\nb\nc\nd\n"))
    made = hunks_of(text, "A\nb\nc\nD\n", first)
    assert [(d.old_text, d.replaces) for d in made.drafts] == [("d\n", ())]
    assert made.withdrawn == ()


def test_an_edit_that_adjoins_a_hunk_takes_it_over() -> None:
    text = "a\nb\nc\nd\n"
    first = adopt([], hunks_of(text, "A\nb\nc\nd\n"))
    made = hunks_of(text, "A\nB\nc\nd\n", first)
    assert [(d.old_text, d.new_text, d.replaces) for d in made.drafts] == [
        ("a\nb\n", "A\nB\n", ("h0",))
    ]


def test_taking_an_edit_back_withdraws_the_hunk() -> None:
    text = "a\nb\nc\n"
    first = adopt([], hunks_of(text, "a\nB\nc\n"))
    assert hunks_of(text, text, first) == Composition((), ("h0",))


def test_a_hunk_split_by_a_later_edit_names_its_heir_once() -> None:
    text = "a\nb\nc\n"
    first = adopt([], hunks_of(text, "A\nB\nC\n"))
    made = hunks_of(text, "A\nb\nC\n", first)
    assert [(d.old_text, d.replaces) for d in made.drafts] == [("a\n", ("h0",)), ("c\n", ())]


def test_new_lines_take_the_dominant_end_and_the_file_keeps_its_last() -> None:
    text = "a\r\nb\r\nc\n"
    made = hunks_of(text, "a\nnew\nb\nc\nd\n")
    assert [d.new_text for d in made.drafts] == ["new\r\n", "d\n"]


def test_typing_that_is_taken_back_leaves_no_mark() -> None:
    hunk = Hunk("h", 2, 4, "b\n", "B\n")
    typed = Shifts([Edit(2, 2, "x")]).follow(hunk, "a\nxb\nc\n")
    assert typed.touched
    assert Shifts([Edit(2, 3, "")]).follow(typed, "a\nb\nc\n") == hunk
    inserted = Hunk("h", 2, 2, "", "new\n")
    assert Shifts([Edit(0, 4, "")]).follow(inserted, "c\n").touched


def test_a_hunk_that_loses_its_line_start_is_touched() -> None:
    hunk = Hunk("h", 2, 4, "b\n", "B\n")
    assert Shifts([Edit(1, 2, "")]).follow(hunk, "ab\nc\n").touched


def test_a_whole_text_moves_hunks_by_lines() -> None:
    before, after = "a\nb\nc\n", "top\na\nb\nC\n"
    hunks = [Hunk("h", 2, 4, "b\n", "B\n")]
    moved = follow_all(hunks, [Edit(0, len(before), after)], before, after)
    assert moved == [replace(hunks[0], start=6, end=8)]


def test_changes_that_share_a_line_are_followed_together() -> None:
    before = "a\nb\nc\nd\n"
    changes = [Edit(1, 2, "x\ny"), Edit(3, 4, "z\nw")]
    after = apply_edits(before, changes)
    hunks = [Hunk("h", 2, 4, "b\n", "B\n"), Hunk("i", 6, 8, "d\n", "D\n")]
    touched, moved = follow_all(hunks, changes, before, after)
    assert touched.touched
    assert moved == replace(hunks[1], start=after.index("d"), end=len(after))


def test_a_replaced_line_keeps_its_own_end_in_a_file_of_both() -> None:
    made = hunks_of("a\r\nb\nc\r\nd\r\n", "a\nB\nC\nnew\nd\n")
    assert [d.new_text for d in made.drafts] == ["B\nC\r\nnew\r\n"]


def test_a_last_line_has_one_end_in_a_file_of_both() -> None:
    made = hunks_of("a\nb\nc\r\n", "a\nb\nC\n")
    assert [d.new_text for d in made.drafts] == ["C\r\n"]


def test_a_deletion_waits_on_when_its_lines_go_and_come_back() -> None:
    hunk = Hunk("h", 2, 4, "b\n", "")
    gone = Shifts([Edit(2, 4, "")]).follow(hunk, "a\nc\n")
    assert (gone.start, gone.end, gone.touched) == (2, 2, True)
    assert Shifts([Edit(2, 2, "b\n")]).follow(gone, "a\nb\nc\n") == hunk
    assert Shifts([Edit(2, 2, "x\n")]).follow(gone, "a\nx\nc\n").touched


@given(st.data(), texts())
def test_other_line_ends_touch_no_hunk(data: st.DataObject, text: str) -> None:
    """An editor that knows LF alone opens a file of CRLF, or the other way round."""
    eol = data.draw(st.sampled_from(["\n", "\r\n"]))
    hunks = adopt([], compose(text, eol_of(text), [], data.draw(lf_edit(to_lf(text)))))
    ended = with_eol(text, eol)
    followed = follow_all(hunks, [Edit(0, len(text), ended)], text, ended)
    if "\n" in to_lf(text):
        assert [hunk.touched for hunk in followed] == [False] * len(hunks)
        assert to_lf(overlay_text(ended, followed)) == to_lf(overlay_text(text, hunks))


def test_an_insertion_that_is_done_under_other_line_ends_is_touched() -> None:
    hunk = Hunk("h", 0, 0, "", "new\r\n")
    (followed,) = follow_all([hunk], [Edit(0, 2, "new\n\n")], "\r\n", "new\n\n")
    assert followed == Hunk("h", 0, 4, "", "new\n", touched=True)
