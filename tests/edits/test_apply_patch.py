"""A patch that a model sent unasked: its grammar, and where its chunks belong."""

import pytest

from kode_sidecar.text.apply_patch import (
    Chunk,
    FileAdd,
    FileDelete,
    FileUpdate,
    PatchError,
    locate_chunk,
    parse_patch,
)
from kode_sidecar.text.edit_match import Match, MatchError
from kode_sidecar.text.text_edit import apply_edits

PATCH = """*** Begin Patch
*** Add File: new.py
+a = 1
+
*** Update File: old.py
@@ class A:
@@   def f(self):
 x = 1
-y = 2
+y = 3

@@
-last
*** End of File
*** Delete File: gone.py
*** Update File: here.py
*** Move to: there.py
*** End Patch
"""


def test_all_of_the_grammar() -> None:
    assert parse_patch(PATCH) == (
        FileAdd("new.py", "a = 1\n\n"),
        FileUpdate(
            "old.py",
            (
                Chunk(("class A:", "def f(self):"), ("x = 1", "y = 2", ""), ("x = 1", "y = 3", "")),
                Chunk((), ("last",), (), at_end=True),
            ),
        ),
        FileDelete("gone.py"),
        FileUpdate("here.py", (), "there.py"),
    )


@pytest.mark.parametrize("wrapped", ["```diff\n{}```", "apply_patch <<'EOF'\n{}EOF\n", "\r\n{}"])
def test_what_models_wrap_around_it(wrapped: str) -> None:
    assert parse_patch(wrapped.format(PATCH)) == parse_patch(PATCH)
    assert parse_patch(PATCH.replace("\n", "\r\n")) == parse_patch(PATCH)


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (PATCH.replace("*** End Patch\n", ""), "no `\\*\\*\\* End Patch`"),
        (PATCH.replace("*** Begin Patch\n", ""), "does not begin"),
        (PATCH.replace("+a = 1", "a = 1"), "does not begin with +"),
        (PATCH.replace("-y = 2", "y = 2"), "begins with none of"),
        (PATCH.replace("gone.py", "new.py"), "names new.py twice"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "Lines follow"),
        ("*** Begin Patch\nx\n*** End Patch", "neither part of a file"),
        (PATCH + "and then some", "stands outside"),
    ],
)
def test_what_is_refused(patch: str, reason: str) -> None:
    with pytest.raises(PatchError, match=reason):
        parse_patch(patch)


TEXT = "class A:\n    def f(self):\n        x = 1\n\nclass B:\n    def f(self):\n        x = 1\n"
OLD, NEW = ("        x = 1",), ("        x = 2",)


def applied(text: str, chunk: Chunk) -> str:
    found = locate_chunk(text, chunk)
    assert isinstance(found, Match), found
    return apply_edits(text, found.edits)


def test_a_unique_chunk_needs_no_context() -> None:
    assert applied("a\nb\n", Chunk(("nowhere",), ("a",), ("A",))) == "A\nb\n"
    assert applied("a\nb", Chunk((), ("b",), ("B",))) == "a\nB"
    assert applied("a \nb\n", Chunk((), ("a", "b"), ("a", "B"))) == "a \nB\n"


def test_a_chunk_is_made_of_whole_lines() -> None:
    for text in ("max = 1\n", "x = 10\n", "max = 1", "x = 10"):
        assert isinstance(locate_chunk(text, Chunk((), ("x = 1",), ("x = 2",))), MatchError)
    assert applied("max = 1\nx = 1", Chunk((), ("x = 1",), ("x = 2",))) == "max = 1\nx = 2"


def test_context_decides_among_several_places() -> None:
    found = locate_chunk(TEXT, Chunk((), OLD, NEW))
    assert isinstance(found, MatchError)
    assert found.code == "ambiguous"
    assert applied(TEXT, Chunk(("class B:",), OLD, NEW)) == TEXT[:-2] + "2\n"
    found = locate_chunk(TEXT, Chunk(("class A:",), OLD, NEW))
    assert isinstance(found, MatchError), "two places lie below it"
    assert found.code == "ambiguous"
    for context in (("def f(self):",), ("class C:",)):
        assert isinstance(locate_chunk(TEXT, Chunk(context, OLD, NEW)), MatchError)
    assert applied(TEXT, Chunk((), OLD, NEW, at_end=True)) == TEXT[:-2] + "2\n"


def test_lines_that_are_only_added_say_where() -> None:
    assert applied(TEXT, Chunk(("class B:",), (), ("    y = 0",))).endswith(
        "class B:\n    y = 0\n    def f(self):\n        x = 1\n"
    )
    assert applied("a", Chunk((), (), ("b",), at_end=True)) == "a\nb\n"
    assert applied("", Chunk((), (), ("b",))) == "b\n"
    assert applied("a", Chunk(("a",), (), ("b",))) == "a\nb\n"
    found = locate_chunk(TEXT, Chunk((), (), ("y",)))
    assert isinstance(found, MatchError)
    assert found.code == "empty_old"
