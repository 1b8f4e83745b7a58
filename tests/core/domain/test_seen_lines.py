"""Which lines a model has seen, against a line-by-line model of the same rules. C13"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.domain.seen_lines import SeenLines, covers, joined, meets, moved, without
from kode_sidecar.core.text.line_diff import diff_lines

SPAN = st.tuples(st.integers(0, 12), st.integers(0, 12))
SPANS = st.lists(SPAN, max_size=6)
LINES = st.lists(st.sampled_from("abc"), max_size=9)


def members(spans: tuple[tuple[int, int], ...]) -> set[int]:
    assert all(start < end for start, end in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    return {line for start, end in spans for line in range(start, end)}


def lines_of(start: int, end: int) -> set[int]:
    return set(range(start, end))


@given(SPANS, SPAN)
def test_spans_are_sets_of_lines(spans: list[tuple[int, int]], span: tuple[int, int]) -> None:
    all_lines = {line for start, end in spans for line in range(start, end)}
    one = joined(spans)
    assert members(one) == all_lines
    assert covers(one, *span) == (lines_of(*span) <= all_lines)
    if span[0] < span[1]:
        assert meets(one, *span) == bool(lines_of(*span) & all_lines)
        assert members(without(one, *span)) == all_lines - lines_of(*span)


@given(LINES, LINES, SPANS)
def test_lines_that_did_not_change_are_found_again(
    old: list[str], new: list[str], spans: list[tuple[int, int]]
) -> None:
    runs = diff_lines(old, new)
    places: dict[int, int] = {}
    at = 0
    for a0, a1, b0, _ in [*runs, (len(old), len(old), len(new), len(new))]:
        places |= {line: line + b0 - a0 for line in range(at, a0)}
        at = a1
    held = {line for line in members(joined(spans)) if line < len(old)}
    inside = joined((line, line + 1) for line in held)
    assert members(moved(inside, runs)) == {places[line] for line in held if line in places}
    for line, place in places.items():
        assert old[line] == new[place]


def test_what_others_change_is_stale_where_it_was_known() -> None:
    known = SeenLines().show(0, 3)
    after = known.follow([(1, 2, 1, 3), (8, 9, 9, 10)])
    assert after == SeenLines(seen=((0, 1), (3, 4)), stale=((1, 3),))
    assert after.gaps(0, 1) == ()
    assert after.gaps(1, 2) == ("staleRead",)
    assert after.gaps(9, 10) == ("unread",)
    assert after.gaps(2, 6) == ("unread", "staleRead")
    assert after.show(1, 3) == SeenLines(seen=((0, 4),))


def test_what_the_model_changes_it_knows() -> None:
    after = SeenLines().show(0, 2).write([(1, 2, 1, 4), (5, 5, 7, 8)])
    assert after == SeenLines(seen=((0, 4), (7, 8)))


def test_an_insertion_is_looked_at_with_its_neighbours() -> None:
    known = SeenLines().show(2, 4)
    assert [bool(known.gaps(at, at)) for at in range(6)] == [True, True, False, False, False, True]
    assert known.follow([(2, 4, 2, 4)]).gaps(3, 3) == ("staleRead",)
    # Lines put between known ones stand where the model believes there is nothing.
    assert known.follow([(3, 3, 3, 5)]).gaps(3, 4) == ("staleRead",)
