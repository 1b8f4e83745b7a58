"""An edit is recognised however an editor tells it, and never taken for done when it is not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.edits.verification import SentEdit
from kode_sidecar.core.text.change_log import ChangeLog
from kode_sidecar.core.text.text_edit import Change, Edit, apply_edits

TEXT = "a\nb\nc\nd\n"
HUNKS = {"h1": Edit(2, 4, "B\n"), "h2": Edit(6, 8, "D\nE\n")}
DONE = "a\nB\nc\nD\nE\n"


def report(sent: SentEdit, text: str, *changes: Change) -> str:
    """Follow changes, each in the text after the one before it."""
    for change in changes:
        steps = sent.follow(text, [change])
        after = apply_edits(text, (change,))
        text = apply_edits(text, steps)
        assert text == after
    return text


@pytest.mark.parametrize(
    "changes",
    [
        (Edit(0, 8, DONE),),
        (Edit(2, 3, "B"), Edit(6, 7, "D\nE")),
        (Edit(6, 7, "D\nE"), Edit(2, 3, "B")),
        (Edit(2, 8, "B\nc\nD\nE\n"),),
        (Edit(2, 3, ""), Edit(2, 2, "B"), Edit(6, 8, ""), Edit(6, 6, "D\n"), Edit(8, 8, "E\n")),
        (Edit(0, 8, ""), Edit(0, 0, DONE)),
    ],
)
def test_every_way_of_telling_an_edit(changes: tuple[Edit, ...]) -> None:
    sent = SentEdit(TEXT, HUNKS)
    text = report(sent, TEXT, *changes)
    assert text == DONE
    assert sent.verdicts(text) == {"h1": "applied", "h2": "applied"}


def test_line_ends_do_not_matter() -> None:
    sent = SentEdit(TEXT, HUNKS)
    sent.follow(TEXT, [Edit(2, 4, "B\r\n")])
    assert set(sent.verified) == {"h1"}
    sent = SentEdit(TEXT, HUNKS)
    text = report(sent, TEXT, Edit(0, 8, DONE.replace("\n", "\r\n")))
    assert sent.verdicts(text) == {"h1": "applied", "h2": "applied"}


def test_a_part_that_is_missing_is_told_apart() -> None:
    sent = SentEdit(TEXT, HUNKS)
    text = report(sent, TEXT, Edit(6, 7, "D\nE"))
    assert not sent.is_settled
    assert sent.verdicts(text) == {"h1": "unchanged", "h2": "applied"}


def test_what_the_user_does_next_to_an_edit_is_not_taken_for_it() -> None:
    sent = SentEdit(TEXT, {"h": Edit(2, 2, "new\n")})
    text = report(sent, TEXT, Edit(2, 2, "user\n"))
    assert sent.verdicts(text) == {"h": "diverged"}
    assert sent.found("h", text) == "user\n"


def test_what_is_typed_into_an_edit_before_it_was_looked_at_is_diverged() -> None:
    sent = SentEdit(TEXT, {"h": Edit(2, 4, "B\n")})
    text = report(sent, TEXT, Edit(2, 3, "B"), Edit(2, 3, "b"))
    assert sent.verdicts(text) == {"h": "diverged"}


def test_what_is_typed_beside_an_edit_leaves_it_applied() -> None:
    sent = SentEdit(TEXT, {"h": Edit(2, 2, "new\n")})
    text = report(sent, TEXT, Edit(2, 2, "new\n"), Edit(2, 2, "user\n"), Edit(0, 0, "x"))
    assert sent.verdicts(text) == {"h": "applied"}


def test_an_insertion_behind_the_last_line_end_is_told_before_it() -> None:
    sent = SentEdit(TEXT, {"h": Edit(8, 8, "e\n")})
    text = report(sent, TEXT, Edit(0, 0, "zero\n"), Edit(12, 12, "\ne"))
    assert text == "zero\na\nb\nc\nd\ne\n"
    assert sent.is_settled


def test_such_an_insertion_is_seen_beside_a_key_elsewhere() -> None:
    text = "a\nb\n\n"
    sent = SentEdit(text, {"h": Edit(5, 5, "new\n")})
    sent.follow(text, [Edit(0, 0, "user\n"), Edit(4, 4, "\nnew")])
    assert sent.is_settled
    assert sent.verdicts("user\na\nb\n\nnew\n") == {"h": "applied"}


def test_an_insertion_that_hides_among_its_like_is_not_sent_again() -> None:
    sent = SentEdit("}\n}\n", {"h": Edit(2, 2, "}\n")})
    text = report(sent, "}\n}\n", Edit(0, 4, "z\n}\n}\n}\n"))
    assert sent.verdicts(text) == {"h": "applied"}


def test_lines_that_came_up_right_above_an_insertion_may_be_it() -> None:
    sent = SentEdit(TEXT, {"h": Edit(4, 4, "new\n")})
    text = report(sent, TEXT, Edit(2, 2, "other\n"))
    assert sent.verdicts(text) == {"h": "diverged"}  # unchanged would be sent again
    assert sent.verdicts(text, refused=True) == {"h": "unchanged"}


def test_two_insertions_of_one_text_are_counted() -> None:
    text = "a\nb\n"
    sent = SentEdit(text, {"h1": Edit(0, 0, "x\n"), "h2": Edit(2, 2, "x\n")})
    text = report(sent, text, Edit(0, 0, "x\n"))
    assert sent.verdicts(text) == {"h1": "applied", "h2": "unchanged"}


def test_a_text_taken_and_put_back_is_compared_as_a_whole() -> None:
    sent = SentEdit(TEXT, HUNKS)
    text = report(sent, TEXT, Edit(0, 8, ""), Edit(0, 0, "a\nB\nc\nd\nuser\n"))
    assert sent.verdicts(text) == {"h1": "applied", "h2": "diverged"}


def test_edits_that_adjoin_are_one() -> None:
    sent = SentEdit("a\nb\n", {"h1": Edit(0, 2, ""), "h2": Edit(2, 4, "B\n")})
    text = report(sent, "a\nb\n", Edit(0, 3, "B"))
    assert sent.verdicts(text) == {"h1": "applied", "h2": "applied"}


def test_a_blank_line_of_the_user_is_not_taken_for_one_that_was_refused() -> None:
    sent = SentEdit(TEXT, {"h": Edit(4, 4, "\n")})
    text = report(sent, TEXT, Edit(1, 1, "\n"))
    assert sent.verdicts(text, refused=True) == {"h": "unchanged"}


def test_an_applied_edit_knows_what_takes_it_back_after_more_typing() -> None:
    sent = SentEdit(TEXT, HUNKS)
    text = report(sent, TEXT, Edit(2, 3, "B"), Edit(6, 7, "D\nE"), Edit(0, 0, "zero\n"))
    back = sorted((hunk.edit for hunk in sent.inverses(["h1", "h2"], text)), key=lambda e: e.start)
    assert apply_edits(text, back) == "zero\n" + TEXT


def test_a_line_added_below_a_kept_one_is_an_insertion_too() -> None:
    sent = SentEdit("a\nend\n", {"h": Edit(0, 2, "a\n}\n}\n")})
    text = report(sent, "a\nend\n", Edit(2, 2, "}\n}"))  # the user took its last line end away
    assert sent.verdicts(text) == {"h": "diverged"}  # unchanged would send it twice
    hidden = SentEdit("}\nz\n", {"h": Edit(2, 4, "z\n}\n")})
    text = report(hidden, "}\nz\n", Edit(0, 4, "}\nz\n}\n!\n"))
    assert hidden.verdicts(text) == {"h": "applied"}


def test_changes_in_one_line_are_understood_together() -> None:
    sent = SentEdit("a\nend\n", {"h": Edit(2, 6, "")})
    changes = [Edit(1, 5, ""), Edit(5, 6, "")]  # ours, told from before it, and a line end
    steps = sent.follow("a\nend\n", changes)
    assert apply_edits("a\nend\n", steps) == "a"
    assert sent.verdicts("a") == {"h": "applied"}
    (back,) = sent.inverses(["h"], "a")
    assert (back.start, back.end, back.new_text) == (1, 1, "end\n")


def test_an_edit_that_was_dropped_while_a_line_came_up_beside_it_was_not_done() -> None:
    for after in ("a\nb\nmine\nc\n", "a\nmine\nb\nc\n"):
        sent = SentEdit("a\nb\nc\n", {"h": Edit(2, 4, "")})
        at = 4 if after.endswith("mine\nc\n") else 2
        sent.follow("a\nb\nc\n", [Edit(at, at, "mine\n")])
        assert sent.verdicts(after) == {"h": "unchanged"}


def test_what_stands_beside_lines_that_were_to_go_is_not_done() -> None:
    sent = SentEdit(TEXT, {"h": Edit(0, 4, "new\n")})
    text = report(sent, TEXT, Edit(2, 4, "new\n"))
    assert text == "a\nnew\nc\nd\n"
    assert sent.verdicts(text) == {"h": "diverged"}


def test_a_line_that_was_there_before_proves_no_deletion_of_the_next() -> None:
    sent = SentEdit(TEXT, {"h": Edit(0, 4, "a\n")})
    text = report(sent, TEXT, Edit(2, 3, "user"))
    assert sent.verdicts(text) == {"h": "diverged"}


def test_an_insertion_told_as_one_change_with_what_was_typed_below_it_is_seen() -> None:
    for insertion, reported in (
        (Edit(2, 2, "new\n"), Edit(2, 4, "new\nuser\nb!\n")),
        (Edit(4, 4, "new\n"), Edit(2, 4, "b!\nuser\nnew\n")),
    ):
        sent = SentEdit(TEXT, {"h": insertion})
        text = report(sent, TEXT, reported)
        assert sent.verdicts(text) == {"h": "applied"}
        (inverse,) = sent.inverses(["h"], text)
        assert text[inverse.start : inverse.end] == "new\n"


@pytest.mark.parametrize(
    "reported",
    [
        Edit(0, 8, "a {}\nb\nc\nD\n"),  # what ends a line of the user's
        Edit(2, 4, "}\n"),  # the user's line in the place of the one below
        Edit(0, 2, "}\n"),  # in the place of the one above
    ],
)
def test_the_users_own_characters_are_not_taken_for_an_insertion(reported: Edit) -> None:
    sent = SentEdit(TEXT, {"h": Edit(2, 2, "}\n")})
    text = report(sent, TEXT, reported)
    assert sent.verdicts(text, refused=True) == {"h": "unchanged"}


def test_a_line_broken_above_one_edit_leaves_the_other_where_it_is() -> None:
    text = "a\nb\nc\nd\ne\n"
    sent = SentEdit(text, {"h1": Edit(2, 2, "x\n"), "h2": Edit(8, 8, "y\n")})
    log = ChangeLog()
    for change in (Edit(8, 8, "y\n"), Edit(2, 2, "x\n"), Edit(2, 2, "\nk")):
        log.add(change)
    after = apply_edits(text, log.edits)
    assert apply_edits(text, sent.follow(text, log.edits)) == after
    assert sent.verdicts(after) == {"h1": "applied", "h2": "applied"}


def test_lines_cut_and_joined_above_an_edit_leave_the_other_where_it_is() -> None:
    text = "a\nb\nc\nd\ne\nf\n"
    sent = SentEdit(text, {"h1": Edit(6, 8, "D\n"), "h2": Edit(10, 10, "y\n")})
    log = ChangeLog()
    for change in (Edit(10, 10, "y\n"), Edit(6, 8, "D\n"), Edit(4, 6, ""), Edit(2, 4, "")):
        log.add(change)
    log.add(Edit(1, 2, ""))
    after = apply_edits(text, log.edits)
    assert after == "aD\ne\ny\nf\n"
    assert apply_edits(text, sent.follow(text, log.edits)) == after
    assert sent.verdicts(after)["h2"] == "applied"


def test_a_thousand_insertions_told_as_one_change_are_seen() -> None:
    text = "a\n" * 1_100 + "}\nend\n"
    sent = SentEdit(text, {f"h{at}": Edit(2 * at, 2 * at, "}\n") for at in range(1, 1_100)})
    after = "a\n" + "}\na\n" * 1_099 + "}\nEND\n"
    assert set(sent.verdicts(report(sent, text, Edit(0, len(text), after))).values()) == {"applied"}


LINES = st.lists(st.sampled_from(["a", "}", "", "b c", "x"]), max_size=6)
KEYS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from([0, 0, 1, 2, 4]),
        st.sampled_from(["", "k", "}\n", "\nk", "k\n", "}", "\n"]),
    ),
    max_size=2,
)


@given(
    lines=LINES,
    hunks=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), LINES), max_size=3),
    keys=st.tuples(KEYS, KEYS),
    done=st.sets(st.integers(0, 2)),
    whole=st.booleans(),
    crlf=st.booleans(),
)
def test_whatever_is_told_is_followed_to_the_character(  # W1
    lines: list[str],
    hunks: list[tuple[int, int, list[str]]],
    keys: tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]],
    done: set[int],
    *,
    whole: bool,
    crlf: bool,
) -> None:
    """The changes understood lead to the text, none reaches into another, and inverses fit."""
    eol = "\r\n" if crlf else "\n"
    before = "".join(line + eol for line in lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line + eol))
    edits: dict[str, Edit] = {}
    first = 0
    for at, gone, new in sorted(hunks):
        start, end = min(at, len(lines)), min(at + gone, len(lines))
        if start >= first and (end > start or new):
            text = "".join(line + eol for line in new)
            edits[f"h{len(edits)}"] = Edit(starts[start], starts[end], text)
            first = end + (end == start)
    log, after = ChangeLog(), before

    def do(change: Edit) -> None:
        nonlocal after
        cuts = (after[at - 1 : at + 1] for at in (change.start, change.end))
        if "\r\n" not in cuts:  # no editor puts a key into a line end
            log.add(change)
            after = apply_edits(after, [change])

    def press(them: list[tuple[int, int, str]]) -> None:
        for at, size, text in them:
            start = min(at, len(after))
            do(Edit(start, min(start + size, len(after)), text.replace("\n", eol)))

    press(keys[0])
    if after == before:
        for number in sorted(done, reverse=True):
            if f"h{number}" in edits:
                do(edits[f"h{number}"])
    press(keys[1])
    reported = [Edit(0, len(before), after)] if whole else list(log.edits)
    sent = SentEdit(before, edits)
    steps = list(sent.follow(before, reported))
    assert apply_edits(before, steps) == after
    assert all(one.end <= other.start for one, other in pairwise(steps))
    for inverse in sent.inverses(list(sent.verified), after):
        assert inverse.touched or after[inverse.start : inverse.end] == inverse.old_text
    assert set(sent.verdicts(after)) == set(edits)
