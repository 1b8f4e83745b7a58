"""An edit applies where its text stands exactly once, by a ladder that never guesses."""

import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kode_sidecar.core.text.edit_match import MAX_NAMED_LINES, EditMatch, MatchError, locate
from kode_sidecar.core.text.look_alikes import folded, with_own_punctuation
from kode_sidecar.core.text.text_edit import Edit, apply_edits
from tests.conftest import FULL
from tests.support.package_source import PACKAGE

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"


def error(text: str, old: str, new: str = "new", **more: int) -> MatchError:
    found = locate(text, old, new, **more)
    assert isinstance(found, MatchError)
    return found


def match(text: str, old: str, new: str, **more: int) -> EditMatch:
    found = locate(text, old, new, **more)
    assert isinstance(found, EditMatch), found
    return found


def test_one_exact_place_is_a_match() -> None:
    found = match(CODE, "def g():", "def h():")
    assert found == EditMatch((Edit(24, 32, "def h():"),))
    assert apply_edits(CODE, found.edits) == CODE.replace("g()", "h()")


def test_several_places_are_an_error_that_shows_them() -> None:
    found = error(CODE, "    return 1\n")
    assert (found.code, found.lines) == ("ambiguous", (2, 6))
    assert "2 times, beginning at lines 2, 6." in found.message
    assert "1\tdef f():\n2\t    return 1\n3\t\n--\n5\tdef g():\n6\t    return 1" in found.message
    assert "replace_all" in found.message
    assert error("aaa", "aa").code == "ambiguous"


def test_no_more_than_five_places_are_shown() -> None:
    found = error("x = 1\n" * 9, "x = 1\n")
    assert "lines 1, 2, 3, 4, 5 and 4 more" in found.message
    assert found.message.count("--\n") == 4
    assert found.lines == tuple(range(1, 10))


def test_replace_all_takes_every_place() -> None:
    edits = match(CODE, "return 1", "return 2", replace_all=True).edits
    assert edits == (Edit(13, 21, "return 2"), Edit(37, 45, "return 2"))
    assert match("aaaa", "aa", "b", replace_all=True).edits == (Edit(0, 2, "b"), Edit(2, 4, "b"))


def test_near_line_chooses_only_inside_exactly_one_place() -> None:
    text = "a\nb\nc\na\nb\nc\n"
    assert match(text, "a\nb\n", "x\n", near_line=5).edits == (Edit(6, 10, "x\n"),)
    assert error(text, "a\nb\n", near_line=3).code == "ambiguous"
    assert error(text, "a\nb\n", near_line=99).code == "ambiguous"
    overlapping = "a\na\na\n"
    assert error(overlapping, "a\na\n", near_line=2).code == "ambiguous"
    assert match(overlapping, "a\na\n", "x\n", near_line=1).edits == (Edit(0, 4, "x\n"),)
    assert match("a\nb\n", "a", "x", near_line=2).edits == (Edit(0, 1, "x"),)


def test_nothing_to_do_is_an_error() -> None:
    assert error(CODE, "x", "x").code == "identical"
    assert error(CODE, "").code == "empty_old"
    assert error("", "", "").code == "identical"
    assert match("", "", "text\n").edits == (Edit(0, 0, "text\n"),)


LADDER = {
    "trailing blanks of the file stay in lines that stay": (
        ("a  \nb\t\nc\n", "a\nb\nc\n", "a\nB\nc\n"),
        ("trailing_blanks", "a  \nB\nc\n"),
    ),
    "trailing blanks of the quote": (
        ("a\nb\n", "a  \nb", "a  \nB"),
        ("trailing_blanks", "a\nB\n"),
    ),
    "a line with blanks only is a blank line": (
        ("a\n   \nb\n", "a\n\nb", "a\n\nB"),
        ("trailing_blanks", "a\n   \nB\n"),
    ),
    "deeper": (
        ("if x:\n    f(1)\n    g(2)\n", "f(1)\ng(2)\n", "f(1)\nh()\ng(2)\n"),
        ("indentation", "if x:\n    f(1)\n    h()\n    g(2)\n"),
    ),
    "less deep": (
        ("f(1)\nif y:\n  g(2)\n", "  f(1)\n  if y:\n    g(2)", "  f(1)\n  if z:\n    g(2)"),
        ("indentation", "f(1)\nif z:\n  g(2)\n"),
    ),
    "tabs for blanks": (
        ("\tf(1)\n\n\tg(2)\n", "    f(1)\n\n    g(2)\n", "    f(1)\n    g(3)\n"),
        ("indentation", "\tf(1)\n\tg(3)\n"),
    ),
    "a new line that is deeper still": (
        ("  f(1)\n  g(2)\n", "f(1)\ng(2)", "if x:\n  f(1)\ng(2)"),
        ("indentation", "  if x:\n    f(1)\n  g(2)\n"),
    ),
    "deleting what stands deeper": (
        ("a\n  b\n  c\nd\n", "b\nc\n", ""),
        ("indentation", "a\nd\n"),
    ),
    "typographic quotes stay where nothing changes": (
        ("say(“hi”) — once\n", 'say("hi") - once', 'say("hi") - twice'),
        ("punctuation", "say(“hi”) — twice\n"),
    ),
    "full-width punctuation": (
        ("打印（甲，乙）；\n", "打印(甲,乙);", "打印(甲,乙,丙);"),
        ("punctuation", "打印（甲，乙,丙）；\n"),
    ),
    "a no-break blank": (
        ("a\u00a0= 1\nb\n", "a = 1\nb", "a = 1\nc"),
        ("punctuation", "a\u00a0= 1\nc\n"),
    ),
    "line numbers in the quote": (
        (CODE, "     1\tdef f():\n     2\t    return 1", "def f():\n    return 2"),
        ("exact", CODE.replace("1", "2", 1)),
    ),
    "line numbers in both": (
        (CODE, "     1\tdef f():", "     1\tdef e():"),
        ("exact", CODE.replace("f()", "e()")),
    ),
    "a blank line before": (("b\na\n", "\nb", "\nc"), ("exact", "c\na\n")),
    "a line end that the file does not have": (("a\nb", "b\n", "c\n"), ("exact", "a\nc")),
    "a blank line after": (("a\nb\nc\n", "b\n\n", "x\n\n"), ("exact", "a\nx\nc\n")),
}


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder(name: str) -> None:
    (text, old, new), (tier, result) = LADDER[name]
    found = match(text, old, new)
    assert (found.tier, apply_edits(text, found.edits)) == (tier, result)
    assert bool(found.repair) == (tier == "exact")


OWN_SIGNS = {
    "a pair is not cut in half": ("“a” + “b”", '"a" + "b"', '"a" + "c" + "b"', '“a” + "c" + "b"'),
    "brackets that stay": ("（世界）", "(世界)", "(pi)", "（pi）"),
    "brackets of which one is new": ("你好（世界）", "你好(世界)", "math(pi)", "math(pi)"),
    "a dash that becomes two": ("a — b", "a - b", "a -- b", "a -- b"),
    "a dash of two that becomes one": ("a——b", "a--b", "a-b", "a-b"),
    "a pair over two lines": ("“x\ny” q", '"x\ny" q', "'x\ny' q", "'x\ny' q"),
    "a pair over two lines that stays": ("“x\ny” q", '"x\ny" q', '"x\ny" r', "“x\ny” r"),
    "half of a pair": ("“x” q", '"x" q', '"x q', '"x q'),
    "an apostrophe is no quote": ("it’s a—b", "it's a-b", "it's a-c", "it’s a—c"),
    "new text inside": ("f（a，b）", "f(a,b)", "f(a,b,g(c))", "f（a，b,g(c)）"),
    "two pairs that become one": ("“a”，“b”", '"a","b"', '"a b"', "“a b”"),
}


@pytest.mark.parametrize("name", OWN_SIGNS)
def test_a_look_alike_place_keeps_its_own_signs_whole(name: str) -> None:
    text, old, new, wanted = OWN_SIGNS[name]
    found = match(text, old, new)
    assert (found.tier, apply_edits(text, found.edits)) == ("punctuation", wanted)


SIGNS = st.text(st.sampled_from("ab \n“”\"'‘’（）()—-，,"), min_size=1, max_size=12)


@given(SIGNS, st.data())
def test_look_alikes_are_never_put_where_the_model_put_something_else(
    there: str, data: st.DataObject
) -> None:
    old = "".join(data.draw(st.sampled_from([c, folded(c)])) for c in there)
    new = data.draw(SIGNS)
    result = with_own_punctuation(there, old, new)
    assert folded(result) == folded(new)
    assert with_own_punctuation(there, old, old) == there
    brought = Counter(result) - Counter(new)
    assert not brought - Counter(there)


def test_tabs_and_blanks_are_not_mixed() -> None:
    deeper = match("\tf()\n", "    f()", "    f():\n        g()")
    assert apply_edits("\tf()\n", deeper.edits) == "\tf():\n\t\tg()\n"
    blanks = match("    f()\n", "\tf()\n", "\tf()\n\t\tg()\n")
    assert apply_edits("    f()\n", blanks.edits) == "    f()\n        g()\n"
    assert error("\tf()\n", "    f()", "    f(\n      g)").code == "not_found"  # not even
    assert error("\tx\n\tf()\n", "x\nf()", "x\nf():\n    g()").code == "not_found"


REFUSED = {
    "two places on one rung never fall through": ("  a\n    a\nb\n", "      a", "ambiguous"),
    "a shift that is not uniform": ("  f(1)\n    g(2)\n", "f(1)\ng(2)", "not_found"),
    "blanks for other blanks inside a line": ("x  =  1\n", "x = 1", "not_found"),
    "another letter case": ("Name = 1\n", "name = 1", "not_found"),
    "full-width letters": ("ａ = 1\n", "a = 1", "not_found"),
    "likeness": ("def handle(request, user):\n", "def handle(request, users):", "not_found"),
    "blank lines only": ("a\n  \nb\n", "\t\n", "not_found"),
    "a line end cut off in the middle of a line": ("x = 10\n", "x = 1\n", "not_found"),
    "a blank line cut off in the middle of a line": ("max = 1\n", "\nx = 1", "not_found"),
    "a numbered line in the middle of one": ("max = 1\n", "     1\tx = 1", "not_found"),
    "an elision": ("a\nb\nc\n", "a\n...\nc", "not_found"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_ladder_refuses(name: str) -> None:
    text, old, code = REFUSED[name]
    assert error(text, old).code == code


def test_trailing_blanks_in_two_places_are_ambiguous_before_any_looser_rung() -> None:
    found = error("a \n\na  \n", "a\n", "b\n", near_line=2)
    assert found.code == "ambiguous"
    found = error("x = 1 \ny\nx = 1\t\n", "x = 1\n", "x = 2\n")
    assert (found.code, found.lines) == ("ambiguous", (1, 3))
    assert "blanks at the ends of lines aside" in found.message


def test_replace_all_on_a_looser_rung_needs_places_that_are_alike() -> None:
    alike = match("  a\nb\n  a\n", "\ta\n", "\tc\n", replace_all=True)
    assert apply_edits("  a\nb\n  a\n", alike.edits) == "  c\nb\n  c\n"
    assert error("  a\nb\n    a\n", "\ta\n", "\tc\n", replace_all=True).code == "ambiguous"
    assert error("“a”\n„a“\n", '"a"', '"b"', replace_all=True).code == "ambiguous"


def test_a_shift_that_new_cannot_follow_is_refused() -> None:
    found = error("    f(1)\n", "\tf(1)\n", "f(2)\n")
    assert found.code == "not_found"
    assert "lines 1-1 with another indentation" in found.message


def test_not_found_shows_the_closest_place_and_the_first_difference() -> None:
    found = error(CODE, "def g():\n    return 2\n")
    assert found.code == "not_found"
    assert "First difference at line 6:\n-    return 2\n+    return 1" in found.message
    assert "5\tdef g():" in found.message


@pytest.mark.parametrize(
    ("text", "old", "hint"),
    [
        (CODE, "def f():\n\treturn  1\n\n\ndef g():", "only the blanks differ"),
        (CODE, "class Missing:", "Read the file again"),
        (CODE, "def f():\n...\ndef g():", "quote every line"),
        ('x = "a"\n', 'x = \\"a\\"', "escaped once too often"),
    ],
)
def test_hints_name_the_mistake(text: str, old: str, hint: str) -> None:
    assert hint in error(text, old).message


def test_an_error_stays_small() -> None:
    text = "".join(f"line {k} {'x' * 500}\n" for k in range(5000))
    old = text[: len(text) // 2].replace("line 7 ", "LINE 7 ")
    assert len(error(text, old).message) < 6000


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d d", "\te ", "“f”"]), max_size=10)


@given(LINES, st.integers(0, 9), st.integers(1, 4))
def test_a_repeated_block_is_never_guessed(lines: list[str], start: int, length: int) -> None:
    text = "\n".join(lines) + "\n"
    block = "\n".join(lines[start : start + length])
    assume(block)
    assert error(text + "z\n" + block + "\n", block).code == "ambiguous"


@given(st.text("ab \n“", max_size=30), st.data())
def test_a_unique_exact_quote_always_applies(text: str, data: st.DataObject) -> None:
    assume(text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    old, new = text[start:end], data.draw(st.text("xyz\n", max_size=5))
    assume(old != new)
    count = sum(text.startswith(old, at) for at in range(len(text)))
    found = locate(text, old, new)
    if count == 1:
        assert found == EditMatch((Edit(start, end, new),))
    else:
        assert isinstance(found, MatchError)
        assert found.code == "ambiguous"


@given(LINES, LINES, LINES, st.booleans())
def test_nothing_outside_the_spans_changes(
    lines: list[str], old: list[str], new: list[str], replace_all: bool
) -> None:
    """Whatever tier applies: what an edit puts lies in its span, and reads as the quote there."""
    text = "\n".join(lines)
    found = locate(text, "\n".join(old), "\n".join(new), replace_all=replace_all)
    if isinstance(found, MatchError):
        return
    result = apply_edits(text, found.edits)
    at = grown = 0
    for edit in found.edits:
        assert at <= edit.start <= edit.end <= len(text)
        assert result[at + grown : edit.start + grown] == text[at : edit.start]
        at, grown = edit.end, grown + len(edit.text) - (edit.end - edit.start)
    assert result[at + grown :] == text[at:]


@given(LINES, st.data())
def test_a_blurred_quote_keeps_every_character_that_new_leaves_alone(
    lines: list[str], data: st.DataObject
) -> None:
    """Trailing blanks, indentation and quotes of the file survive where `new` repeats `old`."""
    assume(any(line.strip() for line in lines))
    blur = data.draw(st.sampled_from([str.rstrip, lambda line: line.replace("“", '"')]))
    old = [blur(line) for line in lines]
    at = data.draw(st.integers(0, len(old) - 1))
    new = [*old[:at], "NEW", *old[at:]]
    found = locate("\n".join(lines), "\n".join(old), "\n".join(new))
    if isinstance(found, EditMatch) and not found.repair:
        result = apply_edits("\n".join(lines), found.edits).split("\n")
        result.remove("NEW")
        assert result == lines or found.tier == "exact"


def sources() -> list[str]:
    """Real files, those of this program and its tests."""
    folders = [PACKAGE, PACKAGE.parent / "tests"]
    paths = sorted(path for folder in folders for path in folder.glob("**/*.py"))
    return [text for path in paths if (text := path.read_text("utf-8"))]


def test_duplicating_any_block_makes_its_quote_ambiguous(rng: random.Random) -> None:  # A9
    """1,000 random blocks of real files; a sample of them in a plain run."""
    texts = sources()
    for _ in range(1_000 if FULL else 200):
        text = rng.choice(texts)
        lines = text.splitlines(keepends=True)
        start = rng.randrange(len(lines))
        size = rng.choice([1, 1, 2, 3, 5, 8])
        block = "".join(lines[start : start + size])
        place = rng.choice([k for k in range(len(lines) + 1) if not start < k < start + size])
        doubled = "".join([*lines[:place], block, *lines[place:]])
        quote = block if rng.random() < 0.5 else block.removesuffix("\n")
        if not quote:
            continue
        found = locate(doubled, quote, quote + "# new")
        assert isinstance(found, MatchError), (quote, found)
        assert found.code == "ambiguous"
        whole = locate(doubled, quote, quote + "# new", near_line=10**9)
        assert isinstance(whole, MatchError)


def test_a_character_that_was_not_shown_is_named() -> None:
    found = error("\x0btop\none\n\x0ctwo\nthree\n", "one\ntwo\n", "1\n2\n")
    assert found.code == "not_found"
    assert "Line 3 holds a control character, U+000C" in found.message


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a\n" * 190_000, "a"),
        ("a\n" * 190_000, "a\na\n"),
        ("a \n" * 190_000, "a\na"),
        ("  a\n" * 190_000, "a\na"),
        ("  a\n" * 50_000, "a\n" * 200),
        ("“a”\n" * 190_000, '"a"'),
        ("a" * 400_000, "a" * 20_000),
    ],
    ids=["letters", "lines", "blanks", "indents", "a long quote", "look-alikes", "overlapping"],
)
@pytest.mark.parametrize("replace_all", [False, True])
def test_places_without_number_are_not_all_looked_at(
    text: str, old: str, replace_all: bool
) -> None:
    """They took 25 to 100 s: a model's quote must not keep everything waiting."""
    found = locate(text, old, "b", replace_all=replace_all)
    assert isinstance(found, MatchError)
    assert found.code == "ambiguous"
    assert "times, too often" in found.message
    assert len(found.lines) <= MAX_NAMED_LINES
