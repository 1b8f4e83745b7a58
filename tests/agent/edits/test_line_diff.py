"""Line diffs lead from one text to the other, and stay quick on large files."""

import difflib
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.line_diff import LONG_LINES, Run, diff_lines, split_lines, unified_diff


def apply_runs(old: Sequence[str], new: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """`old` with each run replaced by the lines of `new` it names."""
    result: list[str] = []
    at = 0
    for a0, a1, b0, b1 in runs:
        result += old[at:a0]
        result += new[b0:b1]
        at = a1
    result += old[at:]
    return result


few_lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "}\n", "x"]), max_size=14)


@given(few_lines, few_lines)
def test_runs_lead_to_the_new_text(old: list[str], new: list[str]) -> None:
    runs = diff_lines(old, new)
    assert apply_runs(old, new, runs) == new
    for before, after in pairwise(runs):
        assert before[1] < after[0]
        assert before[3] < after[2]
    assert all(a0 < a1 or b0 < b1 for a0, a1, b0, b1 in runs)


distinct_lines = st.lists(st.integers(0, 12).map("{}\n".format), max_size=12, unique=True)


@given(distinct_lines, distinct_lines)
def test_no_more_of_distinct_lines_change_than_must(old: list[str], new: list[str]) -> None:
    ours = sum(a1 - a0 for a0, a1, _, _ in diff_lines(old, new))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    assert ours <= len(old) - sum(block.size for block in matcher.get_matching_blocks())


def test_only_lsp_line_ends_split() -> None:
    assert split_lines("a\u2028b\x0cc\x85d\r\ne\rf\n\ng") == [
        "a\u2028b\x0cc\x85d\r\n",
        "e\r",
        "f\n",
        "\n",
        "g",
    ]
    assert split_lines("") == []


def test_fifty_edits_in_a_large_file_stay_fifty_runs() -> None:
    old = [f"line {k}\n" if k % 3 else "}\n" for k in range(20_000)]
    new = list(old)
    for k in range(50):
        new[k * 400 + 7] = f"changed {k}\n"
    assert len(diff_lines(old, new)) == 50


def test_beyond_the_cap_one_run_is_left() -> None:
    old, new = ["a\n", "b\n"] * 3000, ["b\n", "b\n", "a\n"] * 3000
    assert apply_runs(old, new, diff_lines(old, new)) == new


@given(few_lines, few_lines)
def test_unified_diff_is_what_difflib_writes_for_the_same_runs(
    old: list[str], new: list[str]
) -> None:
    text = unified_diff(old, new, "p.txt")
    assert bool(text) == (old != new)
    if text:
        assert _patched(old, text) == new


def _patched(old: list[str], diff: str) -> list[str]:
    """An independent reading of a unified diff."""
    result: list[str] = []
    at = 0
    lines = diff.replace("\n\\ No newline at end of file\n", "\x00\n").split("\n")[2:-1]
    for line in lines:
        body = line[1:-1] if line.endswith("\x00") else line[1:] + "\n"
        if line.startswith("@@"):
            place = line.split()[1][1:]
            start, _, count = place.partition(",")
            first = int(start) - (1 if count != "0" else 0)
            result += old[at:first]
            at = first
        elif line[0] == "+":
            result.append(body)
        else:
            assert old[at] == body
            at += 1
            if line[0] == " ":
                result.append(body)
    return result + old[at:]


def test_unified_diff_shows_context_and_new_line_numbers() -> None:
    old = [f"{k}\n" for k in range(1, 21)]
    new = [*old[:9], "ten\n", "ten and a half\n", *old[10:]]
    assert unified_diff(old, new, "a.txt") == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+ten and a half\n"
        " 11\n 12\n 13\n"
    )


@given(
    st.lists(
        st.tuples(st.integers(0, LONG_LINES + 900), st.integers(0, 3), few_lines),
        max_size=12,
    ),
    st.booleans(),
)
def test_long_texts_that_differ_here_and_there(
    changes: list[tuple[int, int, list[str]]], alike: bool
) -> None:
    old = ["same\n" if alike else f"{at}\n" for at in range(LONG_LINES + 1_000)]
    new = list(old)
    for at, gone, lines in sorted(changes, reverse=True):
        new[at : at + gone] = lines
    runs = diff_lines(old, new)
    assert apply_runs(old, new, runs) == new
    assert all(before[1] < after[0] and before[3] < after[2] for before, after in pairwise(runs))
    if not alike:
        assert sum(a1 - a0 for a0, a1, _, _ in runs) <= sum(gone for _, gone, _ in changes)


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_a_large_text_is_split_as_a_small_one(eol: str) -> None:
    lines = [f"{'x' * (at % 97)}\x0c{eol}" for at in range(30_000)]
    assert split_lines("".join(lines) + "end") == [*lines, "end"]
