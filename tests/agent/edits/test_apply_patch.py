"""A patch that a model sent unasked: its grammar, and where its chunks belong."""

import pytest

from kode_sidecar.core.text.apply_patch import parse_patch
from kode_sidecar.core.text.chunk_place import locate_chunk
from kode_sidecar.core.text.edit_match import EditMatch, MatchError
from kode_sidecar.core.text.file_patch import (
    FileAdd,
    FileDelete,
    FilePatch,
    FileUpdate,
    PatchChunk,
    PatchError,
)
from kode_sidecar.core.text.text_edit import apply_edits
from kode_sidecar.core.text.unified_patch import unified_begins_at, unified_readings

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


def parse_unified(patch: str) -> tuple[FilePatch, ...]:
    """The files of a diff in its likeliest reading."""
    return unified_readings(patch).readings[0]


def test_all_of_the_grammar() -> None:
    assert parse_patch(PATCH) == (
        FileAdd("new.py", "a = 1\n\n"),
        FileUpdate(
            "old.py",
            (
                PatchChunk(
                    ("class A:", "def f(self):"), ("x = 1", "y = 2", ""), ("x = 1", "y = 3", "")
                ),
                PatchChunk((), ("last",), (), at_end=True),
            ),
        ),
        FileDelete("gone.py"),
        FileUpdate("here.py", (), "there.py"),
    )


@pytest.mark.parametrize("wrapped", ["```diff\n{}```", "apply_patch <<'EOF'\n{}EOF\n", "\r\n{}"])
def test_what_models_wrap_around_it(wrapped: str) -> None:
    assert parse_patch(wrapped.format(PATCH)) == parse_patch(PATCH)
    added, *others = parse_patch(PATCH.replace("\n", "\r\n"))
    assert added == FileAdd("new.py", "a = 1\r\n\r\n")  # a new file keeps its line ends
    assert others == list(parse_patch(PATCH)[1:])


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


def applied(text: str, chunk: PatchChunk) -> str:
    found = locate_chunk(text, chunk)
    assert isinstance(found, EditMatch), found
    return apply_edits(text, found.edits)


def test_a_unique_chunk_needs_no_context() -> None:
    assert applied("a\nb\n", PatchChunk(("nowhere",), ("a",), ("A",))) == "A\nb\n"
    assert applied("a\nb", PatchChunk((), ("b",), ("B",))) == "a\nB"
    assert applied("a \nb\n", PatchChunk((), ("a", "b"), ("a", "B"))) == "a \nB\n"


def test_a_chunk_is_made_of_whole_lines() -> None:
    for text in ("max = 1\n", "x = 10\n", "max = 1", "x = 10"):
        assert isinstance(locate_chunk(text, PatchChunk((), ("x = 1",), ("x = 2",))), MatchError)
    assert applied("max = 1\nx = 1", PatchChunk((), ("x = 1",), ("x = 2",))) == "max = 1\nx = 2"


def test_context_decides_among_several_places() -> None:
    found = locate_chunk(TEXT, PatchChunk((), OLD, NEW))
    assert isinstance(found, MatchError)
    assert found.code == "ambiguous"
    assert applied(TEXT, PatchChunk(("class B:",), OLD, NEW)) == TEXT[:-2] + "2\n"
    found = locate_chunk(TEXT, PatchChunk(("class A:",), OLD, NEW))
    assert isinstance(found, MatchError), "two places lie below it"
    assert found.code == "ambiguous"
    for context in (("def f(self):",), ("class C:",)):
        assert isinstance(locate_chunk(TEXT, PatchChunk(context, OLD, NEW)), MatchError)
    assert applied(TEXT, PatchChunk((), OLD, NEW, at_end=True)) == TEXT[:-2] + "2\n"


def test_lines_that_are_only_added_say_where() -> None:
    assert applied(TEXT, PatchChunk(("class B:",), (), ("    y = 0",))).endswith(
        "class B:\n    y = 0\n    def f(self):\n        x = 1\n"
    )
    assert applied("a", PatchChunk((), (), ("b",), at_end=True)) == "a\nb\n"
    assert applied("", PatchChunk((), (), ("b",))) == "b\n"
    assert applied("a", PatchChunk(("a",), (), ("b",))) == "a\nb\n"
    found = locate_chunk(TEXT, PatchChunk((), (), ("y",)))
    assert isinstance(found, MatchError)
    assert found.code == "empty_old"


def test_blank_lines_between_files_and_before_the_end() -> None:
    patch = """*** Begin Patch

*** Add File: new.py
+a = 1

*** Update File: old.py
@@
-x
+y

*** Delete File: gone.py

*** End Patch"""
    assert parse_patch(patch) == (
        FileAdd("new.py", "a = 1\n"),
        FileUpdate("old.py", (PatchChunk((), ("x",), ("y",)),)),
        FileDelete("gone.py"),
    )


def test_an_indented_patch_or_header() -> None:
    indented = "".join(f"  {line}\n" for line in PATCH.splitlines())
    assert parse_patch(indented) == parse_patch(PATCH)
    assert parse_patch(PATCH.replace("*** Update File: here", "  *** Update File: here")) == (
        parse_patch(PATCH)
    )
    moved = "*** Begin Patch\n  *** Update File: a\n  *** Move to: b\n@@\n-x\n+y\n*** End Patch"
    assert parse_patch(moved) == (FileUpdate("a", (PatchChunk((), ("x",), ("y",)),), "b"),)
    inside = "*** Begin Patch\n*** Update File: a\n x\n *** Add File: b\n+y\n*** End Patch"
    assert parse_patch(inside) == (
        FileUpdate("a", (PatchChunk((), ("x", "*** Add File: b"), ("x", "*** Add File: b", "y")),)),
    )


def test_a_blank_line_that_only_sets_chunks_apart() -> None:
    assert applied("a\nb\n", PatchChunk((), ("a", ""), ("A", ""))) == "A\nb\n"


def test_lines_without_a_place_go_to_the_end_of_the_file() -> None:
    (file,) = parse_patch("*** Begin Patch\n*** Update File: a\n@@\n+new\n*** End Patch")
    assert isinstance(file, FileUpdate)
    assert applied("x\ny\n", file.chunks[0]) == "x\ny\nnew\n"
    assert applied("x\ny", file.chunks[0]) == "x\ny\nnew\n"
    last = PatchChunk((), ("x",), ("x", "new"), at_end=True)
    assert applied("x\ny\nx\n", last) == "x\ny\nx\nnew\n"
    assert applied("x\ny\nx", last) == "x\ny\nx\nnew\n"


UNIFIED = """diff --git a/one.py b/one.py
index 1..2 100644
--- a/one.py
+++ b/one.py
@@ -4,2 +4,2 @@ def f():
 same
-old
+new
@@ -9 +9,2 @@
 tail
+more
\\ No newline at end of file
--- /dev/null
+++ b/new.py
@@ -0,0 +1,2 @@
+a
+b
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
--- a/from.py
+++ b/to.py
@@ -1 +1 @@
-x
+y
"""


def test_a_unified_diff() -> None:
    assert unified_begins_at(UNIFIED) is not None
    assert parse_unified(UNIFIED) == (
        FileUpdate(
            "one.py",
            (
                PatchChunk((), ("same", "old"), ("same", "new"), line=4),
                PatchChunk((), ("tail",), ("tail", "more"), line=9),
            ),
        ),
        FileAdd("new.py", "a\nb\n"),
        FileDelete("gone.py"),
        FileUpdate("from.py", (PatchChunk((), ("x",), ("y",), line=1),), "to.py"),
    )
    assert parse_unified(f"```diff\n{UNIFIED}```") == parse_unified(UNIFIED)
    assert unified_begins_at("a\n--- b\n") is None


def test_files_of_a_git_diff_that_have_no_lines_are_not_left_out() -> None:
    header = "diff --git a/a b.py b/c/d.py\nsimilarity index 100%\n"
    moved = f"{header}rename from a b.py\nrename to c/d.py\n"
    empty = "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n"
    gone = "diff --git a/y b/y\ndeleted file mode 100644\nindex e69de29..0000000\n"
    files = (FileUpdate("a b.py", (), "c/d.py"), FileAdd("x", ""), FileDelete("y"))
    assert unified_begins_at(moved) is not None
    assert parse_unified(moved) == files[:1]
    assert parse_unified(f"{moved}{empty}{gone}{UNIFIED}") == (*files, *parse_unified(UNIFIED))
    assert parse_unified(f"```diff\n{UNIFIED}{gone}{empty}\n{moved}```") == (
        *parse_unified(UNIFIED),
        *reversed(files),
    )


def test_a_mode_that_cannot_be_changed_is_told() -> None:
    mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    with pytest.raises(PatchError, match="the mode of x"):
        parse_unified(mode + UNIFIED)


def test_a_line_number_only_decides_among_places_that_fit() -> None:
    assert applied("x\ny\nx\n", PatchChunk((), ("x",), ("X",), line=3)) == "x\ny\nX\n"
    assert applied("x\ny\n", PatchChunk((), ("x",), ("X",), line=2)) == "X\ny\n"
    assert isinstance(locate_chunk("x\ny\nx\n", PatchChunk((), ("x",), ("X",), line=2)), MatchError)
