"""Quotes that look the same: letters composed otherwise, tabs quoted as blanks, elisions."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.edit_match import EditMatch, MatchError, locate
from kode_sidecar.core.text.look_alikes import folded
from kode_sidecar.core.text.omission import elision
from kode_sidecar.core.text.text_edit import apply_edits
from kode_sidecar.errors import KodeError
from tests.process.test_edit_variants import results, texts
from tests.support.edit_editor import Desk
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import only_change_set, sidecar


def nfd(one: str) -> str:
    return unicodedata.normalize("NFD", one)


def edited(before: str, old: str, new: str) -> str:
    found = locate(before, old, new)
    assert isinstance(found, EditMatch), found
    return apply_edits(before, found.edits)


@pytest.mark.parametrize("word", ["café", "이름", "Nguyễn", "Å", "ĝ̂x", "ক\u09cb"])
def test_a_quote_in_the_other_form_is_found_and_the_form_of_the_file_stays(word: str) -> None:
    for form, other in ((nfd, str), (str, nfd)):
        before, after = form(f"a = '{word}'\nb\n"), form(f"a = '{word}!é'\nb\n")
        assert edited(before, other(f"'{word}'"), other(f"'{word}!é'")) == after


def test_other_rungs_climb_with_it() -> None:
    before = nfd("    café = 1\n    thé = 2\n")
    assert edited(before, "café = 1\nthé = 2", "café = 1\nthé = 3") == before.replace("2", "3")


def test_letters_are_whole_and_places_single() -> None:
    assert isinstance(locate(nfd("cafés"), "cafe\u0301\u0302", "x"), MatchError)
    twice = locate(nfd("é = 1\n") + "x\n" + nfd("é = 1\n"), "é = 1", "é = 2")
    assert isinstance(twice, MatchError)
    assert twice.code == "ambiguous"


LETTERS = st.text(st.sampled_from("aeé\u0301\u0302 \nḗ한ᄒ\u1161\u11ab"), min_size=1, max_size=12)


@given(head=LETTERS, part=LETTERS, tail=LETTERS, new=LETTERS)
def test_what_is_outside_of_the_place_stays_byte_for_byte(
    head: str, part: str, tail: str, new: str
) -> None:
    before = head + part + tail
    found = locate(before, unicodedata.normalize("NFC", part), new)
    if isinstance(found, EditMatch):
        (edit,) = found.edits
        after = apply_edits(before, found.edits)
        assert after == before[: edit.start] + edit.text + before[edit.end :]


TABS = "def f():\n\tif a:\n\t\treturn 1\n\treturn 2\n"
QUOTE = "    if a:\n        return 1\n    return 2\n"


@pytest.mark.parametrize("width", [2, 4, 8])
def test_blanks_for_tabs_over_several_levels(width: int) -> None:
    def wide(lines: str) -> str:
        return lines.replace("    ", " " * width)

    new = wide(QUOTE.replace("1", "7") + "    while b:\n        pass\n")
    wanted = "def f():\n\tif a:\n\t\treturn 7\n\treturn 2\n\twhile b:\n\t\tpass\n"
    assert edited(TABS, wide(QUOTE), new) == wanted
    blanks, quote = wide("    if a:\n        b\n"), "\tif a:\n\t\tb\n"
    assert edited(blanks, quote, quote + "\t\t\tc\n") == blanks + wide("            c\n")


def test_tabs_that_are_not_one_number_of_blanks() -> None:
    for quote in (QUOTE.replace("        ", "      "), QUOTE.replace("        ", "     ")):
        assert isinstance(locate(TABS, quote, quote + "x\n"), MatchError)
    odd = locate(TABS, QUOTE, QUOTE + "      odd\n")
    assert isinstance(odd, MatchError)
    assert isinstance(locate(TABS + TABS, QUOTE, QUOTE + "x\n"), MatchError)


def test_quotes_stay_whole_where_the_model_writes_some_as_they_are() -> None:
    before = '"""One.\n\nMore.\n"""\n'
    quote, new = "”””One.\n\nMore.\n”””", '"""Two.\n\nMore.\n”””'
    assert edited(before, quote, new) == before.replace("One", "Two")
    assert edited("f(\n)\ng(\n)\n", "g（\n）", "g（\n1\n)\nh(\n）") == "f(\n)\ng(\n1\n)\nh(\n)\n"
    half = '"""\na\nb\n'
    assert edited(half, "”””\na\nb", '”””\na\nc = """C."""\nb') == '"""\na\nc = """C."""\nb\n'


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("“a” „“", '""', '""'),
        ("say(“a”)", 'say("a", "b")', 'say(“a”, "b")'),
        ("x = “a” + b", 'x = "c" + "a" + b', 'x = "c" + "a" + b'),
        ("‘a’ “b”", "'a' 'c' \"b\"", "‘a’ 'c' “b”"),
    ],
)
def test_a_pair_of_quotes_is_of_one_kind(before: str, new: str, after: str) -> None:
    assert edited(before, folded(before), new) == after


@pytest.mark.parametrize(
    ("old", "new", "left_out"),
    [
        ("a()\nb()\nc()\nd()\n", "a()\n    ...\nd2()\n", "..."),
        ("{\n  a\n  b\n}\n", "{\n  …\n}\n", "…"),
        ("def f():\n    pass\n", "def f():\n    ...\n", None),
        ("def f():\n    ...\n", "def f():\n    ...\n\ndef g():\n    ...\n", None),
        ("a\nb\nc\n", "a...\n", None),
        ('"""Old."""\nreturn 1\n', '"""New."""\n...\n', None),
        ("a()\nb()\nc()\n", "a()\n    ...\nc()\n", "..."),
        ("    a()\n    b()\n", "    ...\n    b()\n", "..."),
        ("    a()\n    b()\n", "    x()\n    ...\n    b()\n", "..."),
        ("def f():\n    a()\n    b()\n", "def f():\n    ...\n    b()\n", "..."),
        ("{\n  a\n}\n", "{\n  ...\n}\n", "..."),
        ("    pass\n", "    ...\n", None),
        ("def f():\n    a()\ng()\n", "def f():\n    ...\ng()\n", None),
        (">>> f()\n1\n", ">>> for a in b:\n...     c\n...\n1\n", None),
        ("a\nb\n", "a\n...\nb\n", None),
        ('"""Old."""\na()\nreturn 1\n', '"""New."""\n...\n', "..."),
    ],
)
def test_bare_dots_in_place_of_code(old: str, new: str, left_out: str | None) -> None:
    assert elision(old, new) == left_out


async def test_bare_dots_are_refused_in_every_dialect(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.file("a.js", "a()\nb()\nc()\nd()\n")
    new = "a()\n  ...\nd()\n"
    patch = (
        "*** Begin Patch\n*** Update File: a.js\n a()\n-b()\n-c()\n+  ...\n d()\n*** End Patch\n"
    )
    await desk.use("read_file", path="a.js")
    for name, arguments in (
        ("propose_edit", {"path": "a.js", "edits": [{"old": "a()\nb()\nc()\nd()\n", "new": new}]}),
        ("propose_edit", {"patch": patch}),
        ("propose_file", {"action": "overwrite", "path": "a.js", "content": new}),
    ):
        with pytest.raises(KodeError, match="stands for text that is left out"):
            await desk.use(name, **arguments)


NAMES = {nfd("café/é.md"): "hi\n", "a\u202fb.txt": "x\n", "с.py": "y\n", "z\u200bz.md": "q\n"}
LOOKS = "сonfig = 1\na\u200bb = 3\n"


@pytest.mark.program
async def test_names_and_lines_that_only_look_like_what_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / nfd("café")).mkdir()
    for name, content in {**NAMES, "k.py": LOOKS}.items():
        (tmp_path / name).write_bytes(content.encode())
    calls = [
        *(("read_file", {"path": name}) for name in ("a b.txt", "c.py", "zz.md", "café/é.md")),
        ("propose_edit", {"path": "café/é.md", "edits": [{"old": "hi", "new": "bye"}]}),
        ("propose_file", {"action": "create", "path": "café/é.md", "content": ""}),
        ("propose_edit", {"path": "k.py", "edits": [{"old": "config", "new": ""}]}),
        ("propose_edit", {"path": "k.py", "edits": [{"old": "ab = 3", "new": ""}]}),
    ]
    script = [answer(*(tool_call(*call) for call in calls)), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        reported = results(world)
        assert "Did you mean a\u202fb.txt (U+202F for your U+0020)?" in reported[0]
        assert "с.py (U+0441 for your U+0063)" in reported[1]
        assert "z\u200bz.md (U+200B is in one of both and not seen)" in reported[2]
        assert "hi" in reported[3]
        assert "Proposed, not yet applied" in reported[4]
        assert "exists already" in reported[5]
        assert "Line 1 only looks like it (U+0441 for your U+0063)" in reported[6]
        assert "Line 2 only looks like it (U+200B is in one of both and not seen)" in reported[7]
        await world.decide(only_change_set(session))
        assert texts(world)[nfd("é.md")] == "bye\n"


@pytest.mark.program
async def test_through_the_real_process(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_bytes(nfd("nom = 'café'\n").encode())
    (tmp_path / "t.py").write_bytes(TABS.encode())
    calls = [
        ("n.txt", "nom = 'café'", "nom = 'thé'"),
        ("t.py", QUOTE, QUOTE.replace("1", "7")),
    ]
    edits = [
        tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})
        for path, old, new in calls
    ]
    many = [{"old": "a", "new": "b"}] * 10_000
    large = tool_call("propose_edit", {"path": "t.py", "edits": many})
    async with sidecar([answer(*edits, large), answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        reported = results(world)
        await world.decide(only_change_set(session))
        assert texts(world) == {"n.txt": nfd("nom = 'thé'\n"), "t.py": TABS.replace("1", "7")}
        assert "one call takes at most 1,000 edits" in reported[2]
