"""An edit applies where its text stands exactly once, and nowhere by likeness."""

from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.domain.edit_match import Match, MatchError, locate, replace_spans

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"


def error(text: str, old: str, new: str = "new") -> MatchError:
    found = locate(text, old, new)
    assert isinstance(found, MatchError)
    return found


def test_one_exact_place_is_a_match() -> None:
    assert locate(CODE, "def g():", "def h():") == Match(((24, 32),))
    assert replace_spans(CODE, ((24, 32),), "def h():") == CODE.replace("g()", "h()")


def test_several_places_are_an_error_that_names_their_lines() -> None:
    found = error(CODE, "    return 1\n")
    assert found.code == "ambiguous"
    assert "2 times" in found.message
    assert "lines 2, 6" in found.message
    assert "replace_all" in found.message
    assert error("aaa", "aa").code == "ambiguous"


def test_replace_all_takes_every_place() -> None:
    assert locate(CODE, "return 1", "return 2", replace_all=True) == Match(((13, 21), (37, 45)))
    assert locate("aaaa", "aa", "b", replace_all=True) == Match(((0, 2), (2, 4)))


def test_nothing_to_do_is_an_error() -> None:
    assert error(CODE, "x", "x").code == "identical"
    assert error(CODE, "").code == "empty_old"
    assert locate("", "", "text\n") == Match(((0, 0),))


def test_not_found_shows_the_closest_place_and_the_first_difference() -> None:
    found = error(CODE, "def g():\n    return 2\n")
    assert found.code == "not_found"
    assert "First difference at line 6:\n-    return 2\n+    return 1" in found.message
    assert "5\tdef g():" in found.message


def test_a_difference_in_blanks_is_named() -> None:
    found = error(CODE, "def f():\n\treturn 1\n\n\ndef g():")
    assert "only the blanks differ" in found.message


def test_an_unknown_text_asks_to_read_again() -> None:
    assert "Read the file again" in error(CODE, "class Missing:").message


def test_an_error_stays_small() -> None:
    text = "".join(f"line {k} {'x' * 500}\n" for k in range(5000))
    old = text[: len(text) // 2].replace("line 7 ", "LINE 7 ")
    assert len(error(text, old).message) < 6000


@given(
    st.lists(st.sampled_from(["a", "b", "  c", "", "d d"]), min_size=1, max_size=8),
    st.integers(0, 7),
    st.integers(1, 4),
)
def test_a_repeated_block_is_never_guessed(lines: list[str], start: int, length: int) -> None:
    text = "\n".join(lines) + "\n"
    block = "\n".join(lines[start : start + length])
    if not block:
        return
    found = locate(text + "z\n" + block + "\n", block, "new")
    assert isinstance(found, MatchError)
    assert found.code == "ambiguous"
