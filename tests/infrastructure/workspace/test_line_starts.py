"""Where lines begin, whatever is typed in them and however often somebody asks."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.infrastructure.workspace import document
from kode_sidecar.infrastructure.workspace.document import LineStarts

lines = st.lists(st.text("ab\n", min_size=1, max_size=3), min_size=1, max_size=12)
steps = st.lists(st.tuples(st.sampled_from("tfaq"), st.integers(0, 11), st.integers(-3, 5)))


@given(lines, steps)
def test_they_are_those_of_the_text(text: list[str], deeds: list[tuple[str, int, int]]) -> None:
    known = LineStarts(text)
    for deed, number, count in deeds:
        at = number % len(text)
        if deed == "t":  # typed within a line
            before = text[at]
            text[at] = "x" * max(len(before) + count, 1)
            known.grow(at, len(text[at]) - len(before))
        elif deed == "f":  # a line comes up below this one, or goes
            text[at : at + 1] = ["new"] * max(count, 1)
            known.forget(at + 1)
        elif deed == "a":
            assert list(known.all()) == starts(text)
        else:
            assert known.of(at) == starts(text)[at]
    assert list(known.all()) == starts(text)


def test_many_shifts_are_worked_in() -> None:
    text = ["one line\n"] * (document.MAX_SHIFTS + 50)
    known = LineStarts(text)
    assert len(known.all()) == len(text)
    for at in reversed(range(len(text))):
        text[at] = "x" + text[at]
        known.grow(at, 1)
        assert known.of(at) == len("one line\n") * at
    assert list(known.all()) == starts(text)


def starts(text: list[str]) -> list[int]:
    return list(accumulate(map(len, text[:-1]), initial=0))
